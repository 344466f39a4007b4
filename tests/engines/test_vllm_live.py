"""vLLM's parser, run on these lines: releases whose parsers had been read only, at each edge that the run showed."""

from __future__ import annotations

import pytest

from kvlint.engines.argparse import Reading, read
from kvlint.source import Source, Text


def reading(release: str, line: str, file: str = "", entry: str = "serve") -> Reading:
    source, config = Source("line", line), Source("c.yaml", file)
    found, at = [], 0
    for word in line.split(" "):
        found.append(Text.of(source, at, at + len(word)))
        at += len(word) + 1
    return read("vllm", release, found, entry=entry, load=lambda name: Text.of(config, 0, len(config.text)))


def stage(found: Reading) -> str:
    """Where the line ends: in the parser, in the checks of what was parsed, or nowhere."""
    stages = [problem.stage for problem in found.problems if problem.stage != "note"]
    return stages[0] if stages else "accepted"


@pytest.mark.parametrize("release", ["0.6.4.post1", "0.8.3", "0.9.1", "0.10.1.1", "0.21.0", "0.32.0"])
@pytest.mark.parametrize("file", ["", "\n", "# nothing\n", "~\n", "- a\n"])
def test_a_file_without_a_mapping_ends_the_start(release: str, file: str) -> None:
    """AttributeError: 'NoneType' object has no attribute 'items', in load_config_file."""
    found = reading(release, "m --config c.yaml", file)
    assert [problem.kind for problem in found.problems] == ["config-file"]


def test_an_empty_mapping_is_a_file() -> None:
    assert stage(reading("0.32.0", "m --config c.yaml", "{}\n")) == "accepted"


def test_a_repeated_key_has_its_last_value() -> None:
    """Seen as max_num_seqs=2, seed=3; the first value would have left the word `true` over."""
    found = reading("0.9.1", "m --config c.yaml", "max-num-seqs: 1\nseed: 3\nmax-num-seqs: 2\n")
    assert stage(found) == "accepted"
    assert (found.typed("max_num_seqs"), found.typed("seed"), len(found.options)) == (2, 3, 3)
    file = "disable-log-requests: 'true'\ndisable-log-requests: false\n"
    assert stage(reading("0.9.1", "m --config c.yaml", file)) == "accepted"


def test_a_merged_key_counts() -> None:
    """Seen as seed=3."""
    file = "additional-config: &a {seed: 3}\n<<: *a\n"
    assert reading("0.32.0", "m --config c.yaml", file).typed("seed") == 3
