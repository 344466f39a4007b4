"""kvlint: a linter for the serving configuration of large language models.

The library is two functions, imported when they are first used:

    report = kvlint.check(["k8s/"])                      # the content of `check --format json`, as typed objects
    kvlint.kv_cache_bytes(config, 8192, engine="mlx-lm")  # what an engine holds for that many tokens, in bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvlint.library import check as check
    from kvlint.models.architecture import UnknownArchitecture as UnknownArchitecture
    from kvlint.sizing.api import kv_cache_bytes as kv_cache_bytes

__version__ = "0.1.0"
__all__ = ["UnknownArchitecture", "__version__", "check", "kv_cache_bytes"]

_HOMES = {
    "check": "kvlint.library",
    "kv_cache_bytes": "kvlint.sizing.api",
    "UnknownArchitecture": "kvlint.models.architecture",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kvlint' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found
