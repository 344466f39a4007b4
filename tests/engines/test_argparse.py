"""Argument lists as the engines read them: places, unknown parts, classes of releases, and no list that breaks the reader."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.engines.argparse import Reading, classes, read
from kvlint.engines.options import ENGINES, options
from kvlint.facts import Unknown
from kvlint.source import HOLE, Source, Text


def texts(line: str) -> list[Text]:
    """Words of a line; `…` stands for an unknown part, `……` alone for words that are not known."""
    source = Source("line", line)
    found, at = [], 0
    for word in line.split(" "):
        whole = Text.of(source, at, at + len(word))
        if word == "……":
            found.append(Text.unknown(whole.span, "not set here", splice=True))
        elif "…" in word:
            cut = word.index("…")
            hole = Text.unknown(source.span(at + cut, at + cut + 1), "not set here")
            found.append(Text.join([whole.slice(0, cut), hole, whole.slice(cut + 1)]))
        else:
            found.append(whole)
        at += len(word) + 1
    return found


def kinds(reading: Reading) -> list[str]:
    return [problem.kind for problem in reading.problems]


def test_values_keep_their_places() -> None:
    reading = read("vllm", "0.33.0", texts("org/m --max_model_len=32K -tp 2"))
    window, width = reading.settings["max_model_len"], reading.settings["tensor_parallel_size"]
    assert (window.typed, width.typed) == (32768, 2)
    assert window.name.span.text == "--max_model_len"
    assert window.value is not None
    assert window.value.span.text == "32K"
    assert (window.value.span.start, window.value.span.end) == (22, 25)
    assert [text.value for text in reading.positionals] == ["org/m"]
    assert not reading.refused


@pytest.mark.parametrize(
    ("engine", "release", "line", "expected"),
    [
        ("vllm", "0.33.0", "m --max-num 4", ["ambiguous-flag"]),
        ("vllm", "0.33.0", "m --swap-space 4", ["removed-flag"]),
        ("vllm", "0.33.0", "m --no-such 4 --max-model-len 12x", ["malformed-value", "unknown-flag"]),
        ("vllm", "0.33.0", "m --max-num-seqs 0", ["out-of-range"]),
        ("vllm", "0.33.0", "m --kv-cache-dtype int8", ["malformed-value"]),
        ("vllm", "0.33.0", "m --max-model-len", ["missing-value"]),
        ("mlx-lm", "0.31.3", "--model m --kv-bits 8", ["unknown-flag"]),
        ("mlx-lm", "0.32.2", "--model m --prompt-cache-bytes 8GiB", ["malformed-value"]),
        ("mlx-lm", "0.32.2", "--model m --cache-limit-gb 8", ["removed-flag"]),
        ("sglang", "0.5.23", "--context-length 32k", ["missing-model"]),
        ("llama-server", "b11434", "-m m.gguf --ctx-size=4096", ["unknown-flag"]),
        ("llama-server", "b11434", "-m m.gguf --draft-max 8", ["removed-flag"]),
        ("tgi", "3.3.7", "--model-id m --max-total-tokens 4k", ["malformed-value"]),
        ("tgi", "3.3.7", "--model-id m --model-id n", ["conflict"]),
        ("tgi", "3.3.7", "--model-id m --max-input-tokens -1", ["malformed-value"]),
        ("trtllm", "snapshot-00209af", "m --max_batch 4", ["unknown-flag"]),
        ("trtllm", "snapshot-00209af", "--tp_size 4", ["missing-model"]),
        ("lmdeploy", "0.16.0", "m --session-l 4096", []),
        ("ollama", "v0.33.0-rc2", "--port 1", ["unknown-flag"]),
    ],
)
def test_what_an_engine_refuses(engine: str, release: str, line: str, expected: list[str]) -> None:
    assert kinds(read(engine, release, texts(line))) == expected


def test_an_unknown_value_is_never_malformed() -> None:
    reading = read("vllm", "0.33.0", texts("m --max-model-len … --kv-cache-dtype=… --max-num-seqs 1…"))
    assert reading.problems == ()
    assert all(isinstance(reading.typed(dest), Unknown) for dest in ("max_model_len", "kv_cache_dtype", "max_num_seqs"))


def test_unknown_words_leave_the_line_open() -> None:
    for line in ("……", "--max-model-len 4096 ……", "--max-model-len ……", "--max-num-seqs 4 …… 8"):
        reading = read(
            "sglang",
            "0.5.23",
            texts(line.replace("max-model-len", "context-length").replace("num-seqs", "total-tokens")),
        )
        assert reading.open, line
        assert "missing-model" not in kinds(reading), line


def test_a_file_comes_before_the_command_line() -> None:
    source = Source("c.yaml", "max-model-len: 8192\nmax-num-seqs: 64\nenable-prefix-caching: false\n")

    def load(name: Text) -> Text | None:
        return Text.of(source, 0, len(source.text)) if name.value == "c.yaml" else None

    reading = read("vllm", "0.33.0", texts("m --max-model-len 4096 --config c.yaml"), load=load)
    assert (reading.typed("max_model_len"), reading.typed("max_num_seqs")) == (4096, 64)
    assert reading.settings["max_num_seqs"].values[0].span.text == "64"
    assert reading.settings["max_num_seqs"].source == "file"
    assert kinds(reading) == ["ineffective-flag"]
    assert not reading.refused  # `false` is dropped: read from the engine's source
    assert read("vllm", "0.33.0", texts("m --config unseen.yaml"), load=load).open


def test_a_file_cannot_blow_up() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}]\n" for a, b in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    source = Source("c.yaml", bomb)
    reading = read("vllm", "0.33.0", texts("m --config c.yaml"), load=lambda _: Text.of(source, 0, len(bomb)))
    assert kinds(reading) == ["config-file"]


def test_releases_are_grouped_by_what_they_make_of_a_line() -> None:
    groups = classes("vllm", texts("m --swap-space 4 --max-model-len 4096"), options("vllm").releases)
    assert sorted(release for members, _ in groups for release in members) == sorted(options("vllm").releases)
    verdicts = {release: reading.refused for members, reading in groups for release in members}
    assert (verdicts["0.17.1"], verdicts["0.18.0"], verdicts["0.33.0"]) == (False, True, True)
    assert len(groups) < 8


def test_python_in_front_of_the_module_has_its_own_parser() -> None:
    line = texts("org/m")
    assert kinds(read("vllm", "0.9.2", line, entry="python -m vllm.entrypoints.openai.api_server")) == [
        "stray-argument"
    ]
    late = read("vllm", "0.33.0", line, entry="python -m vllm.entrypoints.openai.api_server")
    assert not late.refused
    assert "model" not in late.settings
    assert kinds(late) == ["ineffective-flag"]


@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine != "ollama"])
def test_every_option_of_the_newest_release_is_read_and_an_invented_one_is_not(engine: str) -> None:
    data = options(engine)
    release = data.releases[-1]
    base = "m.gguf-model"
    for spelling, option in data.at(release).by_spelling.items():
        if option.action in ("help", "removed") or spelling == "--config":  # replaced by what the file says
            continue
        values = 0 if option.nargs == 0 else 2 if option.nargs == 2 else 1
        reading = read(engine, release, [Text(base), Text(spelling), *[Text(HOLE)] * values], entry="api_server")
        assert any(given.option is option and given.spelling == spelling for given in reading.options), spelling
    assert "unknown-flag" in kinds(read(engine, release, texts("m --kvlint-invented 3")))


words = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="-=._+ aOtp39{}\"'" + HOLE, max_size=10),
    st.sampled_from(
        [s for engine in ENGINES for option in options(engine).options for s in (*option.spellings, *option.off)]
    ),
    st.sampled_from(
        [
            "--",
            "-",
            "-O",
            "-O3",
            "-O=",
            "-O.",
            "--config",
            "c.yaml",
            "-cc.a.b=1",
            "--x.y+",
            "-1",
            "-0.5",
            "--model",
            '{"a":1}',
        ]
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(ENGINES), st.lists(words, max_size=8), st.sampled_from([None, "serve", "api_server"]), st.data())
def test_no_list_breaks_the_reader(engine: str, line: list[str], entry: str | None, data: st.DataObject) -> None:
    args = [Text(word) for word in line]
    file = Source("c.yaml", data.draw(st.text(alphabet="ab:-[]{}&*! \n'\"|>#" + HOLE, max_size=30)))
    release = data.draw(st.sampled_from(options(engine).releases))

    def load(_: Text) -> Text:
        return Text.of(file, 0, len(file.text))

    reading = read(engine, release, args, entry=entry, load=load)
    grouped = classes(engine, args, options(engine).releases, entry=entry, load=load)
    alike = next(one for members, one in grouped if release in members)
    assert kinds(alike) == kinds(reading)
    assert {d: repr(g.typed) for d, g in alike.settings.items()} == {
        d: repr(g.typed) for d, g in reading.settings.items()
    }
