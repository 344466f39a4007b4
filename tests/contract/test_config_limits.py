"""Values that no configuration can mean are refused, at their place, with status 2; their neighbours are taken."""

from __future__ import annotations

from typing import Any

import pytest
from contract_inputs import chat

from kvlint import config
from kvlint.config import ConfigError, load
from kvlint.source import Source

HARDWARE = '[[hardware]]\nmatch = "**"\n'
WORKLOAD = '[[workload]]\nmatch = "**"\n'
ENGINE = '[[engine]]\nmatch = "**"\nname = "vllm"\n'
FLOOR = '[[floor]]\nmatch = "**"\n'


def coefficient(name: str, said: str) -> str:
    return f'[coefficients]\n{name} = {{{said}, reason = "measured"}}\n'


REFUSED = [
    (HARDWARE + "count = 0\n", "3:9: must be at least 1"),
    (HARDWARE + "count = -1\n", "3:9: must be at least 1"),
    (HARDWARE + "count = 1.5\n", "3:9: expected a whole number"),
    (HARDWARE + 'memory = "0GiB"\n', "3:10: must be at least 1,048,576 bytes"),
    (HARDWARE + "memory = 128\n", "a number without a unit is bytes"),
    (HARDWARE + 'memory = "-1GiB"\n', "3:10: expected bytes"),
    (HARDWARE + 'memory = "9999999999GiB"\n', "3:10: must be at most"),
    (HARDWARE + f'memory = "{"9" * 5000}"\n', "3:10: expected bytes"),
    (HARDWARE + 'ceiling = "0"\n', "3:11: must be at least"),
    (HARDWARE + 'budget = "0.5"\n', "3:10: must be at least"),
    (HARDWARE + 'memory = "24GiB"\nbudget = "48GiB"\n', "4:10: budget cannot exceed memory, which is 24GiB"),
    (HARDWARE + 'memory = "24GiB"\nfree = "25GiB"\n', "4:8: free cannot exceed memory"),
    (HARDWARE + 'loaded_free = "9GiB"\nfree = "8GiB"\n', "3:15: loaded_free cannot exceed free"),
    (HARDWARE + 'memory = "24GiB"\navailable_kv = "30GiB"\n', "4:16: available_kv cannot exceed memory"),
    (HARDWARE + "capability = 0\n", "3:14: must be at least 1"),
    (HARDWARE + "capability = 89\n", "3:14: must be below 20"),
    (HARDWARE + 'device = " "\n', "3:10: expected a text that is not empty"),
    ('[[hardware]]\nmatch = ""\n', "2:9: expected a text that is not empty"),
    (WORKLOAD + "window = 0\n", "3:10: must be at least 1"),
    (WORKLOAD + "window = -131072\n", "3:10: must be at least 1"),
    (WORKLOAD + "window = 9" + "0" * 30 + "\n", "3:10: must be at most"),
    (WORKLOAD + "streams = 0\n", "3:11: must be at least 1"),
    (WORKLOAD + "tokens = 0\n", "3:10: must be at least 1"),
    (WORKLOAD + "max_output = 0\n", "3:14: must be at least 1"),
    (WORKLOAD + "shared_prefix = -1\n", "3:17: must be at least 0"),
    (WORKLOAD + "window = 4096\ntokens = 6000\n", "4:10: tokens cannot exceed window, which is 4096"),
    (WORKLOAD + "window = 4096\nshared_prefix = 6000\n", "4:17: shared_prefix cannot exceed window"),
    (ENGINE + 'version = ">=0.33,<0.31"\n', "4:11: no version satisfies"),
    (ENGINE + 'version = ">0.31,<=0.31"\n', "4:11: no version satisfies"),
    (ENGINE + 'version = ">=0.31,<"\n', "4:11: '>=0.31,<' is no list of bounds"),
    ('[[model]]\nid = "a/b"\nweights = "0"\n', "3:11: must be above 0"),
    (FLOOR + "min_warm_slots = -1\n", "3:18: must be at least 0"),
    (FLOOR + "min_concurrency = 1e999999999\n", "3:19: expected a number of at most 40 characters"),
    ('[[ignore]]\nat = "x"\nuntil = "2027-01-31x"\n', "3:9: expected a date"),
    ('[[ignore]]\nat = ""\n', "2:6: expected a text that is not empty"),
    ('exclude = [""]\n', "1:12: expected a text that is not empty"),
    ('[[parity]]\nequal = ["a", "b"]\nat_most = ["a", "b"]\n', "3:11: [[parity]] takes equal or at_most, not both"),
    ('[[derived]]\nat = "a"\nis = "x of y"\nat_most = "x of y"\n', "4:11: [[derived]] takes is or at_most"),
    (coefficient("holdback", "value = 2.0"), "2:21: must be below 1"),
    (coefficient("holdback", "value = 1"), "2:21: must be below 1"),
    (coefficient("holdback", "value = -0.1"), "2:21: must be at least 0"),
    (coefficient("admission_slack", "value = 0"), "must be above 0"),
    (coefficient("least_useful_window", "value = 0.5"), "expected a whole number"),
    (coefficient("usable_share_of_nominal", "low = 0.9, high = 1.1"), "must be at most 1"),
    (coefficient("non_torch_bytes", "low = 3, high = 1"), "low cannot exceed high, which is 1"),
    (coefficient("non_torch_bytes", "low = 1, nominal = 9, high = 3"), "nominal cannot exceed high, which is 3"),
    (coefficient("non_torch_bytes", "low = 1"), "2:19: a coefficient needs a value, or low and high"),
    (coefficient("non_torch_bytes", "value = 2, low = 1, high = 3"), "not value and low"),
    ('[coefficients]\nholdback = {value = 0.1, reason = ""}\n', "2:35: expected a text that is not empty"),
]


@pytest.mark.parametrize(("text", "told"), REFUSED)
def test_what_cannot_be_is_refused_at_its_place(text: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(Source("kvlint.toml", text))
    assert str(refused.value).startswith("kvlint.toml:")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        HARDWARE + 'memory = "24GiB"\nbudget = "24GiB"\nfree = "24GiB"\nloaded_free = "0"\navailable_kv = 0\n',
        HARDWARE + "capability = 12.1\ncount = 1\n",
        WORKLOAD + "window = 1\nstreams = 1\ntokens = 1\nshared_prefix = 0\n",
        ENGINE + 'version = ">=0.31,<=0.31"\n',
        ENGINE + 'version = "~=0.31.0"\n',
        ENGINE + 'version = "v0.11.0-cu128, built by us"\n',
        FLOOR + "min_warm_slots = 0\nmin_concurrency = 1.5\n",
        '[[ignore]]\nat = "x"\nuntil = 2027-01-31T10:00:00Z\n',
        coefficient("holdback", "value = 0"),
        coefficient("usable_spread", "low = -0.15, high = 0.15"),
        coefficient("non_torch_bytes", "low = 1, nominal = 2, high = 3.5"),
    ],
)
def test_what_may_just_be_is_taken(text: str) -> None:
    load(Source("kvlint.toml", text))


def test_every_number_of_the_tables_has_bounds() -> None:
    kinds = {kind for keys in config.TABLES.values() for kind in keys.values()}
    assert "number" not in kinds
    assert kinds >= config.BOUNDS.keys()


def test_the_command_ends_with_status_2(project: Any) -> None:
    project.write({"chat.sh": chat(), "kvlint.toml": coefficient("holdback", "value = 2.0")})
    result = project.run("check")
    assert (result.status, result.out) == (2, "")
    assert "kvlint.toml:2:21: must be below 1" in result.err


@pytest.mark.parametrize("said", ["window=0", "streams=0", "tokens=²", "max_output=" + "9" * 5000, "reuse=always"])
def test_a_comment_that_says_what_cannot_be_is_told(project: Any, said: str) -> None:
    found = project.write({"chat.sh": chat(said)}).check()
    assert [each["rule"] for each in found["findings"] if each["rule"] == "misplaced-directive"]
