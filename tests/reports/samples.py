"""A small report made by hand: several files, spans over lines and in pieces, CRLF, wide characters, every part filled."""

from __future__ import annotations

from fractions import Fraction

from kvlint.diagnostics import Diagnostic, Edit, Fix, NotUnderstood, Related, Report, Suggestion, Unchecked
from kvlint.facts import Range
from kvlint.ruleset.diagnose import numbered
from kvlint.source import Source, Span

NIX = Source(
    "mac/chat.nix",
    "{ services.chat = {\n"
    "    # 会話 🦊 server\n"
    '    model = "日本/qwen-🦊";  window = 131072;\n'
    "    streams = 2;\n"
    "  };\n"
    "}\n",
)
YAML = Source(
    "k8s/base dir/qwen#1.yaml",
    "args:\r\n  - --max-model-len\r\n  - '65536'\r\n  - --served-\\\r\n    model-name\r\n  - qwen\r\n",
)
SHELL = Source("run.sh", "exec vllm serve Qwen/Qwen3-8B --max-num-sequences 4\n")


def at(source: Source, text: str, nth: int = 0) -> Span:
    """The place of `text`, its `nth` time."""
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(text, start + 1)
    return source.span(start, start + len(text))


def pieces(source: Source, *texts: str) -> Span:
    return Span(source, tuple((at(source, text).start, at(source, text).end) for text in texts))


def findings() -> list[Diagnostic]:
    return [
        Diagnostic(
            "cold-prompt-cache",
            "error",
            "certain",
            "a 131,072 token conversation caches 12.207 GiB, but 1.786 GiB is left",
            at(NIX, "131072"),
            related=(
                Related(at(NIX, "2", 1), "cause", "streams = 2"),
                Related(at(NIX, '"日本/qwen-🦊"'), "use", "model = 日本/qwen-🦊"),
            ),
            server="mac/chat.nix#chat",
            servers=("mac/chat.nix#chat",),
            values={"slot_bytes": 13107200000, "warm_slots": Fraction(7, 4), "pool_bytes": Range(1, 2, 3)},
            suggestions=(
                Suggestion("window", 143086, "a window of 143,086 fits"),
                Suggestion("window", 107315, "a window of 107,315 satisfies every rule"),
            ),
            subject="window",
        ),
        Diagnostic(
            "window-beyond-model",
            "warning",
            "margin",
            "a window of 65,536 is longer than the 40,960 positions of the model; within 4% of the limit",
            at(YAML, "'65536'"),
            related=(Related(at(YAML, "args:\r\n  - --max-model-len\r\n"), "counterpart", "the arguments"),),
            server="k8s/base dir/qwen#1.yaml#qwen/vllm",
            subject="window",
        ),
        Diagnostic(
            "window-beyond-model",
            "note",
            "certain",
            "written over a fold: 100% sure, really",
            pieces(YAML, "--served-", "model-name"),
            subject="served_names",
        ),
        Diagnostic(
            "unknown-flag",
            "error",
            "certain",
            "vLLM 0.11.0 has no flag --max-num-sequences",
            at(SHELL, "--max-num-sequences"),
            fix=Fix(
                "unsafe",
                "replace '--max-num-sequences' with '--max-num-seqs'",
                (Edit(at(SHELL, "--max-num-sequences"), "--max-num-seqs"),),
            ),
            subject="--max-num-sequences",
        ),
    ]


def report() -> Report:
    return Report(
        findings=numbered(findings()),
        unchecked=[
            Unchecked("cold-prompt-cache", "run.sh#run", "hardware.memory", "name a device in [[hardware]]"),
            Unchecked("window-beyond-model", "run.sh#run", "hardware.memory", "name a device in [[hardware]]"),
            Unchecked("unknown-flag", None, "engine.version", "pin the engine's version"),
        ],
        not_understood=[NotUnderstood("old/broken.yaml", 3, "a mapping where a list was expected")],
        files_read=12,
        files_recognized=3,
        suppressed=1,
    )
