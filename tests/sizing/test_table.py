"""The sizing table's borders, by arithmetic: usable = ⌊48 GiB × 0.9⌋ = 46,385,646,796; less 17 GiB = 28,132,035,788."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvlint.sizing import budget
from kvlint.sizing.search import largest
from kvlint.sizing.table import table
from kvlint.units import GIB

WINDOWS = [32768, 65536, 100000, 107315, 107316, 131072, 143086, 143087, 200000, 214630, 214631]


def sized(state: int = 0):
    usable = budget.usable_of_budget.plain(48 * GIB, Fraction("0.10"))
    assert usable == 46_385_646_796
    return table(WINDOWS, lambda w: 65536 * w + state, usable_bytes=usable, weights_bytes=17 * GIB, streams=2)


def test_rows_at_the_printed_digits():
    rows = {row.window: row for row in sized().rows}
    assert rows[131072].live_kv_bytes == 16 * GIB  # 2 × 131,072 × 65,536
    assert rows[131072].slot_bytes == 8 * GIB
    assert rows[131072].prompt_cache_capacity_bytes == 28_132_035_788 - 16 * GIB
    assert float(rows[131072].warm_slots) == pytest.approx(1.2749999999068677, rel=1e-15)
    assert f"{rows[200000].live_kv_bytes / GIB:.3f}" == "24.414"
    assert f"{rows[200000].prompt_cache_capacity_bytes / GIB:.3f}" == "1.786"
    assert f"{float(rows[200000].warm_slots):.3f}" == "0.146"


def test_borders_are_exact():
    rows = {row.window: row for row in sized().rows}
    assert rows[214630].fits
    assert not rows[214631].fits
    assert rows[143086].one_warm_slot
    assert not rows[143087].one_warm_slot
    assert rows[107315].slot_per_stream
    assert not rows[107316].slot_per_stream
    assert rows[214631].prompt_cache_capacity_bytes < 0
    assert rows[214631].warm_slots == 0


def test_largest_windows():
    assert (lambda b: (b.fits, b.one_warm_slot, b.slot_per_stream))(sized().largest) == (214630, 143086, 107315)
    with_state = sized(153_944_064).largest
    assert (with_state.fits, with_state.one_warm_slot, with_state.slot_per_stream) == (212281, 140737, 104966)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_largest_finds_the_border(border, upper):
    assert largest(lambda n: n <= border, upper) == min(border, upper)
