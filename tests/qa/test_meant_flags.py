"""What a flag that is none was meant to be: an abbreviation of one that is gone, a slip, or another word altogether."""

from __future__ import annotations

from pathlib import Path

import pytest

import kvlint
from kvlint.engines import nearness
from kvlint.engines.argparse import read
from kvlint.engines.nearness import closest, distance, is_slip
from kvlint.source import Source, Text


def said(tmp_path: Path, line: str) -> dict[str, tuple[str, str | None]]:
    (tmp_path / "run.sh").write_text(
        f"#!/bin/sh\nuvx --from vllm==0.33.0 vllm serve Qwen/Qwen3-8B --revision r {line}\n"
    )
    findings = kvlint.check([tmp_path]).findings
    return {f.rule: (f.message, f.fix.edits[0].text if f.fix else None) for f in findings}


# `--swap-space` went with vLLM 0.18; in 0.9.2 `--max-seq-len` was short for `--max-seq-len-to-capture` (rows ap-0141 ff.)
@pytest.mark.parametrize(
    ("typed", "meant"), [("--swap-spa 4", "--swap-space"), ("--max-seq-len 4096", "--max-seq-len-to-capture")]
)
def test_an_abbreviation_of_a_flag_that_is_gone(tmp_path: Path, typed: str, meant: str) -> None:
    message, fix = said(tmp_path, typed)["removed-flag"]
    assert f"has no `{meant}` since" in message
    assert fix is None


def test_an_abbreviation_that_was_ambiguous_is_of_none() -> None:
    source = Source("line", "x")
    words = [Text.at(word, source.span(0, 1)) for word in ("m", "--enable-c", "4")]  # lora, chunked, … in 0.9.2
    assert all(problem.kind != "removed-flag" for problem in read("vllm", "0.33.0", words).problems)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--max-modle-len 4096", "--max-model-len"),
        ("--max-num-sequences 8", "--max-num-seqs"),
        ("--tensor-parallell 2", "--tensor-parallel-size"),
        ("--enable-prefix-cache", "--enable-prefix-caching"),
    ],
)
def test_a_slip_is_answered_with_the_flag(tmp_path: Path, typed: str, meant: str) -> None:
    assert f"did you mean `{meant}`?" in said(tmp_path, typed)["unknown-flag"][0]


def test_another_word_is_no_slip() -> None:
    assert not is_slip("--max-seq-len", "--max-log-len")
    assert "--max-log-len" not in closest("--max-seq-len", ["--max-log-len", "--max-model-len"])
    assert is_slip("--gpu-memory-utilisation", "--gpu-memory-utilization")
    assert is_slip("--maxmodel-len", "--max-model-len")


def test_what_a_flag_may_have_meant_is_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of no release are read by all of them, and hold the same flags again and again."""
    compared = []
    monkeypatch.setattr(nearness, "distance", lambda *pair: compared.append(pair) or distance(*pair))
    flags = " ".join(f"--tuned-{part}-of-a-fork" for part in ("paging", "routing", "sparse"))
    (tmp_path / "run.sh").write_text(f"vllm serve Qwen/Qwen3-8B {flags}\n" * 20)
    kvlint.check([tmp_path])
    assert compared
    assert len(compared) < 4 * len(set(compared))


def test_a_positional_that_is_not_read_is_named_as_it_stands() -> None:
    source = Source("line", "x")
    words = [Text.at(word, source.span(0, 1)) for word in ("org/model",)]
    reading = read("vllm", "0.11.0", words, entry="python -m vllm.entrypoints.openai.api_server")
    assert [(p.kind, p.data["flag"]) for p in reading.problems] == [("ineffective-flag", "org/model")]
