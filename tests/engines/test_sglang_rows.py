"""SGLang through the whole pipeline: from a command line and a device's memory to what its own code made of them.

Each row's arguments stand in a manifest and its memory in `kvlint.toml`.  Its model is the bundled catalogue's; a configuration
with an image encoder, whose size the catalogue leaves out, or with positions that are in dispute is given as a file.  `-s`
prints the table.
"""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvlint.engines import engine
from kvlint.engines.options import options
from kvlint.facts import Fact
from kvlint.models import catalogue
from kvlint.pipeline import check, evaluate, memory_project
from kvlint.subjects import Server

SHARED = Path(__file__).resolve().parents[2] / "../shared"
ROWS = SHARED / "observed/sglang-pool.jsonl"
pytestmark = pytest.mark.skipif(not ROWS.is_file(), reason="the observations are not beside the repository")

SWITCHES = ("disable_", "enable_")
REFUSED = ("engine-refuses-settings", "window-beyond-model", "malformed-value", "unknown-flag", "removed-flag")
DRAFT = {
    "architectures": ["LlamaForCausalLMEagle"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "torch_dtype": "bfloat16",
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
MANIFEST = """apiVersion: v1
kind: Pod
metadata: {{name: row}}
spec:
  containers:
    - name: sglang
      image: lmsysorg/sglang:v{version}
      command: [python3, -m, sglang.launch_server]
      args: {args}
"""


@cache
def rows() -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines())


def words(row: dict[str, Any]) -> list[str]:
    given = ["--model-path", row["model"]]
    for name, value in row["inputs"]["args"].items():
        flag = "--" + name.replace("_", "-")
        given += [flag] if name.startswith(SWITCHES) else [flag, str(value)]
    if "speculative_algorithm" in row["inputs"]["args"]:
        given += ["--speculative-draft-model-path", "draft"]
    return given


def project(row: dict[str, Any]) -> tuple[dict[str, str], str]:
    """The manifest, and what stands in `kvlint.toml`."""
    files = {"pod.yaml": MANIFEST.format(version=row["sglang"], args=json.dumps(words(row)))}
    given = row["inputs"]
    config = (
        f'[[hardware]]\nmatch = "**"\nmemory = "{given["gpu_total_mib"]}MiB"\ncapability = {given["sm"] / 10}\n'
        f'free = "{given["free_before_load_gib"]}GiB"\nloaded_free = "{given["free_after_load_gib"]}GiB"\n'
    )
    if "speculative_algorithm" in given["args"]:
        files["draft.json"] = json.dumps(DRAFT)
        config += '[[model]]\nid = "draft"\nconfig = "draft.json"\n'
    seen = encoder(row["model"])
    if seen is not None:
        files["model.json"] = seen
        config += f'[[model]]\nid = "{row["model"]}"\nconfig = "model.json"\n'
    return files, config


@cache
def encoder(model: str) -> str | None:
    """The configuration of a model with an image encoder, or with positions that the catalogue doubts; None for the others."""
    text = (SHARED / "facts/models" / f"{model.replace('/', '__')}.json").read_text(encoding="utf-8")
    config, entry = json.loads(text), catalogue.find(model)
    disputed = entry is not None and catalogue.doubted(catalogue.text_config(config), entry.context)
    return text if "vision_config" in config or disputed else None


def can_be_given(row: dict[str, Any]) -> bool:
    """The model is in the catalogue, and a release of the data beside this one has every flag."""
    if catalogue.find(row["model"]) is None:
        return False
    known = options("sglang")
    releases = known.neighbours(row["sglang"]).releases
    flags = [word for word in words(row) if word.startswith("--")]
    return any(all(known.lookup(flag, release) for flag in flags) for release in releases)


def server(row: dict[str, Any]) -> Server:
    (group,) = evaluate(memory_project(*project(row))).groups
    return group.live[0]


def refused(row: dict[str, Any]) -> set[str]:
    report = check(memory_project(*project(row)))
    return {each.rule for each in report.findings if each.severity == "error" and each.rule in REFUSED}


def value(found: Server, name: str) -> Any:
    fact = found.get(name)
    return fact.value if isinstance(fact, Fact) else None if fact is None else f"unknown: {fact.reason}"


def disagreements(row: dict[str, Any]) -> list[str]:
    out = row["out"]
    if not out["starts"]:
        return [] if refused(row) else ["an error was expected"]
    found = server(row)
    if value(found, "start_refusal"):
        return [f"refused: {value(found, 'start_refusal')}"]
    ranks = out["attn_dp"]

    def each(name: str) -> Any:
        total = value(found, name)
        return total // ranks if isinstance(total, int) else total

    price = value(found, "pool_token_bytes")
    pairs = [
        ("bytes_per_token_per_rank", float(price) if isinstance(price, Fraction) else price),
        ("max_total_num_tokens", each("pool_tokens")),
        ("max_running_requests", each("batch_width")),
        ("swa_tokens", each("sliding_pool_tokens")),
        ("max_mamba_cache_size", value(found, "state_blocks")),
    ]
    return [f"{name}: {got} for {out.get(name)}" for name, got in pairs if got != out.get(name)]


def test_rows_through_the_pipeline() -> None:
    """Bytes, tokens, slots, requests and refusals, exactly, in at least 97 % of the rows that can be given."""
    given = [row for row in rows() if can_be_given(row)]
    wrong = {row["id"]: (row, found) for row in given if (found := disagreements(row))}
    table: dict[str, Counter[str]] = {}
    for row in given:
        kind = "started" if row["out"]["starts"] else "refused"
        table.setdefault(row["sglang"], Counter())[f"{kind} ok" if row["id"] not in wrong else f"{kind} wrong"] += 1
    print()
    for release, counts in table.items():
        print(f"{release:>14}  " + "  ".join(f"{name} {counts[name]:3}" for name in sorted(counts)))
    print(f"{'all':>14}  {len(given) - len(wrong)} of {len(given)} rows that can be given, of {len(rows())}")
    for row, found in wrong.values():
        print(row["id"], row["sglang"], row["model"], row["inputs"], found)
    assert len(given) >= Fraction(9, 10) * len(rows())
    assert len(given) - len(wrong) >= Fraction(97, 100) * len(given)


def test_started_rows_have_no_error_of_these_rules() -> None:
    """A sample: judging every rule on every row takes long."""
    started = [row for row in rows() if row["out"]["starts"] and can_be_given(row)][::17]
    assert {row["id"]: refused(row) for row in started if refused(row)} == {}


def test_the_engine_is_registered() -> None:
    assert engine("sglang").name == "sglang"
