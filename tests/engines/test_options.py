"""The flags by release: against the extracted lists, and what is asked of them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from kvlint.engines.options import DATA, ENGINES, Options, options

ROOT = Path(__file__).resolve().parents[2]
FACTS = ROOT / "../shared/facts/engines"
sys.path.insert(0, str(ROOT / "scripts"))

import build_flags  # noqa: E402

needs_facts = pytest.mark.skipif(not FACTS.exists(), reason="the extracted flags are not beside the repository")


@needs_facts
@pytest.mark.parametrize("engine", ENGINES)
def test_sources_are_current(engine: str) -> None:
    facts = build_flags.gather(engine, FACTS / f"{build_flags.ENGINES[engine]}.flags.json", FACTS)
    assert build_flags.render(facts) == (build_flags.SOURCES / f"{engine}.flags.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ENGINES)
def test_compiled_data_is_current(engine: str) -> None:
    compiled = json.loads((DATA / f"{engine}.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(build_flags.compile_engine(engine))) == compiled


@needs_facts
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "ollama"])
def test_every_extracted_spelling_stands_in_its_release(engine: str) -> None:
    lists = json.loads((FACTS / f"{build_flags.ENGINES[engine]}.flags.json").read_text(encoding="utf-8"))["versions"]
    data = options(engine)
    for release, entries in lists.items():
        table = data.at(release)
        known = set(table.by_spelling) | {option.dest for option in table.positionals}
        expected = {
            flag
            for entry in entries
            for flag in (*entry["flags"], *entry.get("negated", []), *entry.get("negated_flags", []))
        }
        assert expected - known <= {"-p"}, release  # two options of TGI's list claim -p


def test_vllm_0_33_has_the_inverses_that_its_live_parser_has() -> None:
    """argument-parsing.md: the extracted list of 0.33.0 lacks 50 spellings, the enable/disable inverses among them."""
    table = options("vllm").at("0.33.0").by_spelling
    extracted = json.loads((build_flags.SOURCES / "vllm.flags.json").read_text(encoding="utf-8"))["options"]
    standing = [entry for entry in extracted if entry["in"][-1][1] == "0.33.0"]
    listed = {flag for entry in standing for flag in (*entry["flags"], *entry.get("off", []))}
    added = set(table) - listed - {"-h", "--help"}
    assert len(added) == 50
    assert {"--disable-prefix-caching", "--disable-log-requests", "--enable-hybrid-kv-cache-manager"} <= added


def test_history() -> None:
    vllm = options("vllm")
    swap = vllm.history("--swap-space")
    assert (swap.since, swap.releases[-1], swap.gone, swap.exact) == ("0.6.0", "0.17.1", "0.18.0", True)
    assert vllm.history("--task", "0.33.0").instead == "--runner and --convert"
    assert vllm.history("--disable-log-requests", "0.20.2").gone == "0.17.0"
    assert vllm.history("--disable-log-requests", "0.33.0").gone is None
    assert options("mlx-lm").history("--kv-bits").since == "0.32.0"
    assert options("mlx-lm").history("--cache-limit-gb").gone == "0.22.3"  # mlx_lm/server.py of 0.22.2 and 0.22.3
    assert options("mlx-lm").history("--draft-model").since == "0.23.2"  # not in mlx_lm/server.py of 0.23.1
    assert vllm.history("--no-such").releases == ()


def test_near_and_foreign_spellings() -> None:
    vllm = options("vllm")
    assert vllm.nearest("--max-modellen", "0.33.0")[0] == "--max-model-len"
    assert vllm.nearest("--tensor_paralel_size", "0.33.0")[0] == "--tensor-parallel-size"
    assert vllm.nearest("--completely-different-words", "0.33.0") == ()
    assert vllm.nearest("--max-num-sequences", "0.33.0") == ("--max-num-seqs",)
    assert vllm.nearest("--max-model-length", "0.33.0") == ("--max-model-len",)
    assert "llama-server" in vllm.owners("--ctx-size")
    assert "vllm" in options("mlx-lm").owners("--max-model-len")


@pytest.mark.parametrize(
    ("text", "kind", "releases"),
    [
        ("0.11.0", "exact", ("0.11.0",)),
        ("v0.11.0", "exact", ("0.11.0",)),
        ("0.6.3.post1", "exact", ("0.6.3.post1",)),
        ("v0.11.0-cu128", "exact", ("0.11.0",)),
        ("==0.11.0", "exact", ("0.11.0",)),
        ("0.11.1rc2", "between", ("0.11.0", "0.11.1")),
        ("0.34.0", "above", ("0.33.0",)),
        ("0.5.4", "below", ("0.6.0",)),
        (">=0.11,<0.13", "range", ("0.11.0", "0.11.1", "0.11.2", "0.12.0")),
        ("~=0.11.0", "range", ("0.11.0", "0.11.1", "0.11.2")),
        ("==0.11.*", "range", ("0.11.0", "0.11.1", "0.11.2")),
        (">=0.14,<0.15", "range", ("0.14.0", "0.14.1")),
        (">0.14.1,<0.15.0", "between", ("0.14.1", "0.15.0")),
    ],
)
def test_neighbours(text: str, kind: str, releases: tuple[str, ...]) -> None:
    place = options("vllm").neighbours(text)
    assert (place.kind, place.releases) == (kind, releases)


def test_neighbours_of_builds_and_of_nothing() -> None:
    llama = options("llama-server")
    assert llama.neighbours("b11434").kind == "exact"
    assert llama.neighbours("server-cuda-b9500").releases == ("b9093", "b11434")
    assert llama.neighbours("b20000").beyond == "newer"
    for text in ("latest", "", "nightly", "server-cuda"):
        assert llama.neighbours(text).releases == llama.releases
    assert options("mlx-lm").neighbours(">=0.31,<0.33").releases[-1] == "0.32.2"
    assert options("vllm").neighbours("llm==0.22.1").kind == "any"  # `vllm==llm==0.22.1` pins nothing


def test_environment() -> None:
    vllm = options("vllm")
    attention = vllm.environment["VLLM_ATTENTION_BACKEND"]
    assert attention >> vllm.index["0.11.0"] & 1
    assert not attention >> vllm.index["0.33.0"] & 1
    assert "LLAMA_ARG_CTX_SIZE" in options("llama-server").environment
    assert "OLLAMA_NUM_PARALLEL" in options("ollama").environment
    assert "MAX_TOTAL_TOKENS" in options("tgi").environment


@pytest.mark.parametrize("engine", ENGINES)
def test_loading_is_quick(engine: str) -> None:
    """Single-digit milliseconds on an idle machine; a loose bound against a slip of an order."""
    text = (DATA / f"{engine}.json").read_text(encoding="utf-8")
    best = min(_seconds(text) for _ in range(3))
    assert best < 0.05


def _seconds(text: str) -> float:
    start = time.process_time()
    Options(json.loads(text))
    return time.process_time() - start
