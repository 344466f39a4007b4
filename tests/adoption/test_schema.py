"""The JSON Schema of the configuration is current, and refuses what the reader refuses."""

from __future__ import annotations

import datetime
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kvlint import config
from kvlint.config import ConfigError, load
from kvlint.source import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "data/schema/kvlint.schema.json").read_text(encoding="utf-8"))

# Every key that the contract gives.
WHOLE = """\
select = ["all"]
exclude = ["old/**"]
fail_on = "never"
[severity]
unpinned-engine = "warning"
budget = "off"
[coefficients]
holdback = {value = 0.10, reason = "allocator overhead"}
non_torch_bytes = {low = 1, nominal = 2, high = 3.5, reason = "measured"}
[[hardware]]
match = "mac/**"
device = "apple-m4-max-128gb"
memory = "128GiB"
count = 1
unified = true
ceiling = "107 GB"
budget = 51539607552
available_kv = "3.81GiB"
[[workload]]
match = "mac/**#chat"
window = 131072
streams = 2
tokens = 6000
max_output = 4096
reuse = "none"
shared_prefix = 4000
[[engine]]
match = "**"
name = "mlx-lm"
version = ">=0.31,<0.33"
[[model]]
id = "acme/private-7b"
config = "models/private-7b/config.json"
weights = "4.2GiB"
[[parity]]
name = "window"
equal = ["a#b:window", "c.yaml#x[y=z]"]
[[parity]]
at_most = ["small", "large"]
[[derived]]
at = "app.plist#EnvironmentVariables.KV_BYTES"
is = "kv_bytes_per_token of chat"
[[ignore]]
rule = "width-beyond-admission"
at = "mac/llama-swap.yaml"
reason = "one user"
until = 2027-01-31
[[per_file_ignore]]
match = "legacy/**"
rules = ["unpinned-engine"]
[[floor]]
match = "**"
min_warm_slots = 2
min_concurrency = 1.5
"""
REFUSED = [
    "selekt = []",
    "select = 1",
    'fail_on = "fatal"',
    "[[hardware]]\ncount = 1",
    '[[hardware]]\nmatch = "**"\ncount = -1',
    '[[hardware]]\nmatch = "**"\nmemory = "12 gigs"',
    '[[hardware]]\nmatch = "**"\nunified = "yes"',
    '[[workload]]\nmatch = "**"\nwindow = 1.5',
    '[[workload]]\nmatch = "**"\nreuse = "always"',
    '[[engine]]\nmatch = "**"\nname = "vlm"',
    '[[model]]\nweights = "1GiB"',
    '[[ignore]]\nreason = "x"',
    '[[ignore]]\nrule = "x"',
    '[[per_file_ignore]]\nrules = ["x"]',
    '[[floor]]\nmatch = "**"\nmin_warm_slots = "two"',
    "[coefficients]\nholdback = {value = 0.1}",
    "[severity]\nx = 3",
    'hardware = "x"',
]


def builder() -> Any:
    spec = importlib.util.spec_from_file_location("build_schema", ROOT / "scripts/build_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(value: Any) -> Any:
    """A date as text, as JSON has it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def accepted(text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(SCHEMA).is_valid(plain(tomllib.loads(text))))


def test_it_is_current() -> None:
    assert json.dumps(builder().build()) == json.dumps(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_kind_of_value_and_every_description_is_meant() -> None:
    module = builder()
    kinds = {*config.TOP.values(), *config.COEFFICIENT.values()}
    kinds |= {kind for keys in config.TABLES.values() for kind in keys.values()}
    assert kinds <= module.KINDS.keys()
    names = {*config.TOP, *config.TABLES, "severity", "coefficients"}
    names |= {f"{table}.{key}" for table, keys in config.TABLES.items() for key in keys}
    assert module.SAID.keys() <= names


def test_the_whole_of_the_contract_is_read() -> None:
    load(Source("kvlint.toml", WHOLE))
    assert accepted(WHOLE)


@pytest.mark.parametrize("text", REFUSED)
def test_what_the_reader_refuses_the_schema_refuses(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^kvlint\.toml:\d+:\d+: "):
        load(Source("kvlint.toml", text + "\n"))
    assert not accepted(text)
