"""Which models of a llama-swap configuration are loaded beside each other, and what they take of a machine."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

MODELS = """
models:
  a: {cmd: "mlx_lm.server --model acme/a --port ${PORT}"}
  b: {cmd: "mlx_lm.server --model acme/b --port ${PORT}"}
  c: {cmd: "mlx_lm.server --model acme/c --port ${PORT}"}
"""
GROUP = "groups: {{g: {{{0}, members: [a, b]}}}}"
NESTED = "routing: {router: {use: group, settings: {groups: {g: {swap: false, members: [a, b]}}}}}"
MATRIX = "matrix: {{vars: {{x: a, y: b}}, sets: {{{0}}}}}"


def demanded(top: str, budgets: tuple[int, int, int]) -> int | None:
    """The GiB that are said to be asked of a machine with one; None where nothing is said of it."""
    toml = '[[hardware]]\nmatch = "**"\nceiling = "1GiB"\n'
    for name, budget in zip("abc", budgets, strict=True):
        toml += f'[[hardware]]\nmatch = "**#{name}"\nbudget = "{budget}GiB"\n'
    found = check_files({"config.yaml": top + MODELS}, toml).findings
    (message,) = (each.message for each in found if each.rule == "ceiling-exceeded")
    return int(message.partition(" GiB")[0].rpartition(" ")[2]) if "add up to" in message else None


@pytest.mark.parametrize(
    ("top", "budgets", "gib"),
    [
        ("", (10, 20, 40), 40),
        (GROUP.format("swap: false"), (10, 20, 40), 40),  # the group, or c
        (GROUP.format("swap: false"), (30, 20, 40), 50),
        (NESTED, (30, 20, 40), 50),
        (GROUP.format("exclusive: false"), (10, 20, 40), 60),  # one of the group, and c: it does not unload others
        (GROUP.format("persistent: true, swap: false"), (10, 20, 40), 70),
        (MATRIX.format('s: "x & y"'), (10, 20, 25), 30),
        (MATRIX.format('s: "x & y"'), (10, 20, 40), 40),  # what stands in no set is loaded alone
        (MATRIX.format('s: "x | y"'), (10, 20, 15), 20),
        (MATRIX.format('s: "(x | y) & c"'), (10, 20, 40), 60),
        (MATRIX.format('s: "x & y", t: "+s & c"'), (10, 20, 40), 70),
        (MATRIX.format('s: "x & +s"'), (10, 20, 40), 40),  # no meaning: nothing is known to be loaded together
        (MATRIX.format('s: "x & & y"'), (10, 20, 40), 40),
        (MATRIX.format('s: "x ! y"'), (10, 20, 40), 40),
        (MATRIX.format(f's: "{"(" * 3000}x & y{")" * 3000}"'), (10, 20, 40), 40),
    ],
)
def test_what_may_be_loaded_at_once(top: str, budgets: tuple[int, int, int], gib: int) -> None:
    assert demanded(top, budgets) == gib


@pytest.mark.parametrize(
    ("top", "found"),
    [
        ("", []),
        ("groups: {g: {swap: false, members: [a, b]}}", ["error"]),  # 0.6 + 0.6
        ("groups: {g: {swap: false, members: [a, c]}}", []),  # 0.6 + 0.2
        ('matrix: {sets: {s: "b & c", t: "a & b"}}', ["error"]),
        ('matrix: {sets: {s: "b & c", t: "a & c"}}', []),
    ],
)
def test_shares_of_those_that_are_loaded_together(top: str, found: list[str]) -> None:
    line = '{{cmd: "vllm serve {0} --port ${{PORT}} --gpu-memory-utilization {1}"}}'
    shares = (("a", "Qwen/Qwen3-8B", "0.6"), ("b", "Qwen/Qwen3-4B", "0.6"), ("c", "Qwen/Qwen3-0.6B", "0.2"))
    models = "".join(f"  {name}: {line.format(model, share)}\n" for name, model, share in shares)
    report = check_files({"config.yaml": f"{top}\nmodels:\n{models}"})
    assert [each.severity for each in report.findings if each.rule == "shared-device-overcommit"] == found


def test_copies_whose_size_is_not_known() -> None:
    models = "".join(f'  {name}: {{cmd: "mlx_lm.server --model acme/a --port ${{PORT}}"}}\n' for name in "ab")
    toml = '[[hardware]]\nmatch = "**"\nceiling = "9GiB"\nbudget = "4GiB"\n'
    report = check_files({"config.yaml": f"groups: {{g: {{swap: false, members: [a, b]}}}}\nmodels:\n{models}"}, toml)
    assert [each.message for each in report.findings if each.rule == "duplicate-weights"] == [
        "acme/a is loaded more than once on one device"
    ]
