"""The largest window that satisfies a monotone condition: suggestions are sizing functions inverted."""

from __future__ import annotations

from collections.abc import Callable

LIMIT = 2**33  # tokens; beyond any model's positions


def largest(fits: Callable[[int], bool], upper: int = LIMIT) -> int:
    """The largest `n` in [0, upper] with `fits(n)`, for a `fits` that never becomes true again; 0 if `fits(1)` is false."""
    if upper <= 0 or not fits(1):
        return 0
    low, step = 1, 1
    while low + step <= upper and fits(low + step):
        low += step
        step *= 2
    high = min(low + step, upper + 1)
    if low + step > upper and fits(upper):
        return upper
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
