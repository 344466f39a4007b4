"""`kvlint diff`: capacity before and after.

Qwen3-8B: 36 layers × 2 × 8 KV heads × 128 × 2 bytes = 147,456 bytes a token; a vLLM block of 16 tokens is 2,359,296 bytes, and
⌊8 GiB ÷ 2,359,296⌋ = 3,640 blocks.  40,960 tokens are 2,560 blocks, 5.625 GiB; 16,384 tokens are 1,024 blocks, 2.250 GiB.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from repository import CHAT, CONFIG

from kvlint.capacity import Capacity, Measure, binding, concurrency, floors, paired, smallest
from kvlint.config import load
from kvlint.facts import Assumed, Fact, Range, Unknown
from kvlint.source import Source

SERVE = "#!/bin/sh\nexec uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-8B --max-model-len 40960 --max-num-seqs 8\n"
SHORT = SERVE.replace("40960", "16384")
POOL = '[[hardware]]\nmatch = "**"\navailable_kv = "8GiB"\n'
FLOOR = POOL + '[[floor]]\nmatch = "**"\nmin_concurrency = 2\n'


def diff(repo: Any, *arguments: str) -> Any:
    return repo.kvlint("diff", *arguments)


def measures(repo: Any, *arguments: str, side: str = "after") -> dict[str, Any]:
    (server,) = diff(repo, *arguments, "--format", "json").json["servers"]
    found = server[side]
    return {name: each.get("value", each) for name, each in found["measures"].items()} | {
        "by": found["limited_by"]["concurrency"]
    }


def test_a_longer_window_costs_concurrency(repo: Any) -> None:
    repo.commit({"serve.sh": SHORT, "kvlint.toml": POOL})
    repo.write({"serve.sh": SERVE})
    before, after = measures(repo, "HEAD", side="before"), measures(repo, "HEAD")
    assert (before["request_kv_bytes"], after["request_kv_bytes"]) == (1024 * 2359296, 2560 * 2359296)
    assert before["pool_bytes"] == after["pool_bytes"] == 8 * 2**30
    assert (before["concurrency"], after["concurrency"]) == (3, 1)  # 3640 ÷ 1024 = 3.55, 3640 ÷ 2560 = 1.42
    assert (before["by"], after["by"]) == (["pool"], ["pool"])
    assert after["headroom_bytes"] == 8 * 2**30 - 2560 * 2359296
    result = diff(repo, "HEAD")
    assert result.status == 0
    shown = " ".join(result.out.split())
    assert "HEAD → work tree serve.sh#serve vllm, Qwen/Qwen3-8B window 16,384 → 40,960" in shown
    assert "KV of one request 2.25 GiB → 5.625 GiB KV pool 8 GiB" in shown
    assert "concurrency 3 → 1 limited by pool" in shown
    assert shown.endswith("servers: 1 changed")


def test_two_revisions_without_the_work_tree(repo: Any) -> None:
    first = repo.commit({"serve.sh": SHORT, "kvlint.toml": POOL})
    repo.commit({"serve.sh": SERVE})
    repo.write({"serve.sh": "#!/bin/sh\n"})
    result = diff(repo, first[:10], "HEAD")
    assert "16,384 → 40,960" in result.out
    assert diff(repo, "HEAD", "HEAD").out.endswith("servers: 1 unchanged\n")


def test_each_side_has_its_own_configuration(repo: Any) -> None:
    repo.commit({"serve.sh": SHORT, "kvlint.toml": POOL.replace("8GiB", "4GiB")})
    repo.write({"kvlint.toml": POOL})
    assert measures(repo, "HEAD", side="before")["concurrency"] == 1  # 1820 ÷ 1024 = 1.78
    assert measures(repo, "HEAD")["concurrency"] == 3
    repo.write({"fixed.toml": POOL})
    assert diff(repo, "HEAD", "--config", "fixed.toml").out.endswith("servers: 1 unchanged\n")


def test_the_smallest_limit_binds(repo: Any) -> None:
    repo.commit({"serve.sh": SHORT.replace("seqs 8", "seqs 2"), "kvlint.toml": POOL})
    found = measures(repo, "HEAD")
    assert (found["concurrency"], found["by"], found["batch_width"]) == (2, ["batch width"], 2)


def test_a_limit_in_front_binds(repo: Any) -> None:
    swap = f"models:\n  qwen:\n    concurrencyLimit: 1\n    cmd: {SHORT.splitlines()[1].removeprefix('exec ')} --port ${{PORT}}\n"
    repo.commit({"llama-swap.yaml": swap, "kvlint.toml": POOL})
    found = measures(repo, "HEAD")
    assert (found["concurrency"], found["by"], found["admitted"]) == (1, ["admission"], 1)


def test_an_engine_without_a_pool_has_what_its_budget_leaves(chat: Any) -> None:
    found = measures(chat, "HEAD")
    assert found["pool_bytes"] == 46_385_646_796 - 17 * 2**30  # ⌊48 GiB × 0.9⌋ - 17 GiB
    assert found["max_concurrency"] == pytest.approx(found["pool_bytes"] / found["request_kv_bytes"])
    assert found["headroom_bytes"] == found["pool_bytes"] - 2 * found["request_kv_bytes"]


def test_what_is_unknown_says_why(repo: Any) -> None:
    repo.commit({"serve.sh": SHORT})
    repo.write({"serve.sh": SERVE})
    out = diff(repo, "HEAD").out
    assert "unknown: no device is named" in out
    assert "at most 8 by batch width" in out
    assert diff(repo, "HEAD", "--format", "json").status == 0


def test_a_range_prints_both_ends(repo: Any) -> None:
    repo.commit({"serve.sh": SHORT, "kvlint.toml": '[[hardware]]\nmatch = "**"\ndevice = "nvidia-l40s"\n'})
    repo.write({"serve.sh": SERVE})
    (row,) = [line for line in diff(repo, "HEAD").out.splitlines() if line.startswith("  KV pool")]
    assert "between " in row
    assert " and " in row


def test_servers_that_came_and_went(repo: Any) -> None:
    repo.commit({"a.sh": SHORT, "kvlint.toml": POOL})
    repo.write({"a.sh": None, "b.sh": CHAT})
    shown = diff(repo, "HEAD").out
    assert "a.sh#a  vllm, Qwen/Qwen3-8B; removed" in shown
    assert "; added" in shown
    assert "servers: 1 added, 1 removed" in shown


def test_a_server_that_moved_is_the_same(repo: Any) -> None:
    repo.commit({"old/serve.sh": SHORT, "kvlint.toml": POOL})
    repo.write({"old/serve.sh": None, "new/serve.sh": SERVE})
    assert "new/serve.sh#serve  vllm, Qwen/Qwen3-8B; was old/serve.sh#serve" in diff(repo, "HEAD").out
    repo.write({"new/serve.sh": None, "elsewhere/run.sh": SHORT})
    assert "elsewhere/run.sh#run" not in diff(repo, "HEAD").out  # the same numbers: unchanged


def one(identity: str, model: str | None = "m", engine: str = "vllm") -> Capacity:
    return Capacity(identity, engine, model, {}, (), (), (), True)


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        (["d/a.yaml#x"], ["d/a.yaml#x"], [("d/a.yaml#x", "d/a.yaml#x")]),
        (["d/a.yaml#x", "d/a.yaml#y"], ["e/b.yaml#x"], [("d/a.yaml#x", "e/b.yaml#x"), ("d/a.yaml#y", None)]),
        (["d/a.yaml#x"], ["d/a.yaml#y"], [("d/a.yaml#x", "d/a.yaml#y")]),
        (["d/a.yaml#x"], ["e/b.yaml#y"], [("d/a.yaml#x", "e/b.yaml#y")]),
        (["a#x", "b#x"], ["c#x"], [(None, "c#x"), ("a#x", None), ("b#x", None)]),
    ],
)
def test_matching_by_name_then_place_then_model(
    before: list[str], after: list[str], pairs: list[tuple[str | None, str | None]]
) -> None:
    found = paired(map(one, before), map(one, after))
    assert [(each.before and each.before.id, each.after and each.after.id) for each in found] == pairs


def test_servers_of_different_models_or_engines_are_not_matched_by_them() -> None:
    assert paired([one("a#x", "m")], [one("b#y", "n")])[0].before is None
    assert paired([one("a#x", None)], [one("b#y", None)])[0].before is None
    assert paired([one("a#x")], [one("b#y", engine="sglang")])[0].before is None


def test_a_broken_floor_fails(repo: Any) -> None:
    repo.commit({"serve.sh": SHORT, "kvlint.toml": FLOOR})
    result = diff(repo, "HEAD")
    assert (result.status, "1 of 1 floors kept" in result.out) == (0, True)
    repo.write({"serve.sh": SERVE})
    for format_ in ("text", "json", "markdown"):
        assert diff(repo, "HEAD", "--format", format_).status == 1
    assert "floor broken: serve.sh#serve: 1 concurrency, at least 2 promised" in diff(repo, "HEAD").out


def test_a_floor_that_one_known_limit_breaks_says_the_limit(repo: Any) -> None:
    """A pool of 8 GiB holds one request of 40,960 × 147,456 B = 5.625 GiB, whatever the batch width is."""
    measured = '[[hardware]]\nmatch = "**"\navailable_kv = "8GiB"\n' + FLOOR
    served = "#!/bin/sh\nexec uvx --from vllm==0.22.1 vllm serve Qwen/Qwen3-8B --max-model-len 40960\n"
    repo.commit({"serve.sh": served, "kvlint.toml": measured})
    result = diff(repo, "HEAD")
    assert result.status == 1
    told = next(line for line in result.out.splitlines() if line.startswith("floor broken"))
    assert told.startswith("floor broken: serve.sh#serve: at least 2 concurrency promised, but batch width is unknown")
    assert "at most 1 by pool" in told


def test_a_floor_of_warm_slots(chat: Any) -> None:
    floor = '[[floor]]\nmatch = "**"\nmin_warm_slots = 1\n'
    chat.write({"kvlint.toml": CONFIG + floor})
    assert diff(chat, "HEAD").status == 1  # 0.12 slots at 200,000 tokens
    chat.write({"chat.sh": CHAT.replace("200000", "131072")})
    assert diff(chat, "HEAD").status == 0  # 1.2 slots
    once = '[[workload]]\nmatch = "**"\nreuse = "none"\n'
    chat.write({"chat.sh": CHAT, "kvlint.toml": CONFIG + floor + once})
    assert diff(chat, "HEAD").status == 0


def test_floors_match_and_merge(repo: Any) -> None:
    other = '[[floor]]\nmatch = "other.sh"\nmin_concurrency = 5\n'
    repo.commit({"serve.sh": SHORT, "kvlint.toml": FLOOR + other})
    assert diff(repo, "HEAD").status == 0
    repo.write({"kvlint.toml": FLOOR + other.replace("other", "serve")})
    assert diff(repo, "HEAD").status == 1


def fact(value: Any) -> Fact[Any]:
    return Fact(value, Assumed("test"))


GONE = Unknown("hardware.memory", "no device is named", "name it")


@pytest.mark.parametrize(
    ("readings", "limits", "state"),
    [
        ([fact(4)], {}, "kept"),
        ([fact(3)], {}, "broken"),
        ([fact(Range(1, 2, 3))], {}, "broken"),
        ([fact(Range(1, 3, 5))], {}, "doubtful"),
        ([fact(Range(3, 4, 5))], {}, "kept"),
        ([fact(3), fact(5)], {}, "doubtful"),
        ([fact(3), fact(2)], {}, "broken"),
        ([GONE], {"pool": GONE}, "unknown"),
        ([GONE], {"pool": GONE, "batch width": fact(8)}, "unknown"),
        ([GONE], {"pool": GONE, "batch width": fact(3)}, "broken"),
    ],
)
def test_a_floor_is_broken_only_where_that_is_certain(readings: list[Any], limits: dict[str, Any], state: str) -> None:
    measure = Measure(tuple(((str(number),), value) for number, value in enumerate(readings)))
    server = Capacity("a#x", "vllm", None, {"concurrency": measure}, (limits,), (), (), True)
    config = load(Source("kvlint.toml", '[[floor]]\nmatch = "**"\nmin_concurrency = 4\nmin_warm_slots = 1\n'))
    assert [floor.state for floor in floors([server], config)] == [state]


def test_what_binds_within_ranges() -> None:
    assert binding({"pool": fact(Range(2, 5, 9)), "batch width": fact(4)}) == "pool or batch width"
    assert binding({"pool": fact(Range(5, 6, 9)), "batch width": fact(4)}) == "batch width"
    assert binding({"pool": fact(Fraction(43, 10)), "batch width": fact(4)}) == "pool or batch width"  # whole requests
    assert binding({"pool": GONE, "batch width": fact(4)}) == ""
    assert binding({}) == ""
    found = smallest(pool=fact(Range(2, 5, 9)), width=fact(4))
    assert isinstance(found, Fact)
    assert found.value == Range(2, 4, 4)
    assert isinstance(concurrency({"pool": GONE}), Unknown)
    assert isinstance(concurrency({}), Unknown)


@pytest.mark.parametrize(
    "arguments", [("nowhere",), ("HEAD", "nowhere"), ("--format",), (), ("HEAD", "HEAD", "HEAD"), ("-x",)]
)
def test_what_cannot_be_compared_is_two(chat: Any, arguments: tuple[str, ...]) -> None:
    result = diff(chat, *arguments)
    assert (result.status, result.out) == (2, "")


def test_a_bad_configuration_at_a_revision_is_two_and_says_which(chat: Any) -> None:
    chat.commit({"kvlint.toml": "x = 1\n"})
    chat.write({"kvlint.toml": CONFIG})
    result = diff(chat, "HEAD")
    assert result.status == 2
    assert "at HEAD: kvlint.toml:1:1" in result.err


def test_outside_a_repository_is_two(tmp_path: Any, repo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    result = repo.kvlint("diff", "HEAD", cwd="../plain")
    assert (result.status, result.err) == (2, "kvlint: not a git repository (or any of the parent directories): .git\n")


def test_json_is_complete_and_markdown_is_inert(repo: Any) -> None:
    repo.commit({"kvlint.toml": POOL})
    repo.write({"a|b <x>.sh": SHORT})
    document = diff(repo, "HEAD", "--format", "json").json
    assert json.loads(json.dumps(document)) == document
    assert [(each["status"], each["before"]) for each in document["servers"]] == [("added", None)]
    text = diff(repo, "HEAD", "--format", "markdown").out
    assert r"### `a\x7cb <x>.sh#a\x7cb <x>`" in text
