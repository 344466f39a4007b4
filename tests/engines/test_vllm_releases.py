"""vLLM's options in the releases between those of the first data: each row was looked up in that release's own text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import kvlint
from kvlint.engines.argparse import Reading, read
from kvlint.engines.options import options
from kvlint.source import Source, Text

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/readers")]

import build_flags  # noqa: E402
import read_vllm  # noqa: E402
import vllm_source  # noqa: E402

VLLM = options("vllm")

# vllm/engine/arg_utils.py of the release at that line; the release before has no such line.
SINCE = [
    ("--config-format", "0.6.1", 249), ("--allowed-local-media-path", "0.6.4", 273), ("--compilation-config", "0.6.5", 914),
    ("--generation-config", "0.6.6", 950), ("--enable-sleep-mode", "0.7.0", 946), ("--model-impl", "0.7.2", 383),
    ("--speculative-config", "0.8.2", 783), ("--data-parallel-size", "0.8.3", 429), ("--cuda-graph-sizes", "0.9.0", 797),
    ("--disable-hybrid-kv-cache-manager", "0.9.1", 856), ("--enable-log-requests", "0.10.1", 1748),
    ("--data-parallel-external-lb", "0.11.1", 820), ("--allow-deprecated-quantization", "0.14.0", 655),
    ("--mamba-cache-mode", "0.15.0", 945), ("--language-model-only", "0.17.0", 1029), ("--gdn-prefill-backend", "0.18.0", 1328),
    ("--kv-cache-dtype-skip-layers", "0.19.0", 1010), ("--ir-op-priority", "0.20.0", 1361), ("--spec-tokens", "0.22.0", 1466),
    ("--max-num-scheduled-tokens", "0.26.0", 1430), ("--fault-tolerance-config", "0.27.0", 1187),
    ("--ec-manager-config", "0.28.0", 1636), ("--max-num-queued-reqs", "0.29.0", 1603), ("--max-num-active-seqs", "0.31.0", 1689),
    ("--enable-hc-sp", "0.32.0", 1271),
]  # fmt: skip
# The last release with it and the line there; the release after has none.
GONE = [
    ("--engine-use-ray", "0.6.1", 1046), ("--max-context-len-to-capture", "0.6.3.post1", 475),
    ("--worker-use-ray", "0.6.6.post1", 403), ("--speculative-model", "0.8.2", 789), ("--num-scheduler-steps", "0.10.0", 803),
    ("--rope-scaling", "0.11.0", 541), ("--disable-log-requests", "0.16.0", 2088), ("--swap-space", "0.17.1", 951),
    ("--max-num-partial-prefills", "0.26.0", 1444), ("--calculate-kv-scales", "0.27.1", 1218),
]  # fmt: skip


def words(line: str) -> list[Text]:
    source = Source("line", line)
    found, at = [], 0
    for word in line.split(" "):
        found.append(Text.of(source, at, at + len(word)))
        at += len(word) + 1
    return found


def reading(release: str, line: str, file: str | None = None, entry: str | None = None) -> Reading:
    config = Source("c.yaml", file or "")
    return read("vllm", release, words(line), entry=entry, load=lambda name: Text.of(config, 0, len(config.text)))


def kinds(found: Reading) -> list[str]:
    return [problem.kind for problem in found.problems]


@pytest.mark.parametrize(("flag", "release", "line"), SINCE)
def test_a_flag_begins_in_a_release(flag: str, release: str, line: int) -> None:
    before = VLLM.releases[VLLM.index[release] - 1]
    assert VLLM.lookup(flag, release) is not None
    assert VLLM.lookup(flag, before) is None


@pytest.mark.parametrize(("flag", "last", "line"), GONE)
def test_a_flag_ends_with_a_release(flag: str, last: str, line: int) -> None:
    after = VLLM.releases[VLLM.index[last] + 1]
    assert VLLM.lookup(flag, last) is not None
    assert VLLM.lookup(flag, after) is None
    assert VLLM.history(flag, after).gone == after


@pytest.mark.parametrize(
    ("flag", "first", "last"),
    [
        ("--chat-template-text-format", "0.6.4", "0.6.4.post1"),  # vllm==0.6.4:vllm/entrypoints/openai/cli_args.py:143
        ("--mm-cache-preprocessor", "0.6.5", "0.6.5"),  # vllm==0.6.5:vllm/engine/arg_utils.py:584
        ("--guided-decoding-backend", "0.8.0", "0.11.2"),  # vllm==0.11.2:vllm/engine/arg_utils.py:730, in a loop
        ("--guided-decoding-disable-fallback", "0.9.0", "0.11.2"),
    ],
)
def test_flags_that_came_and_went(flag: str, first: str, last: str) -> None:
    standing = VLLM.history(flag).releases
    assert standing[-1] == last
    assert VLLM.releases.index(first) in [VLLM.releases.index(release) for release in standing]


def test_every_published_release_is_known() -> None:
    """Nothing lies between two releases but candidates and builds."""
    assert len(VLLM.releases) == 66
    assert VLLM.neighbours("0.14.1").kind == VLLM.neighbours("0.8.5.post1").kind == "exact"
    assert VLLM.neighbours("0.15.0rc2").releases == ("0.14.1", "0.15.0")


@pytest.mark.parametrize(
    ("release", "entry", "stands"),
    [("0.9.2", "serve", True), ("0.9.2", "api_server", False), ("0.10.0", "api_server", True)],
)
def test_options_that_only_the_command_has(release: str, entry: str, stands: bool) -> None:
    """vllm==0.9.2:vllm/entrypoints/cli/serve.py:56-75 adds them, vllm==0.10.0:vllm/entrypoints/openai/cli_args.py:230."""
    assert (VLLM.at(release, entry).find("--data-parallel-start-rank") is not None) == stands
    assert (VLLM.at(release, entry).find("--headless") is not None) == stands


@pytest.mark.parametrize(
    ("release", "line", "typed"),
    [
        ("0.8.5", "m --max-num-batched-tokens 8k", ["malformed-value"]),  # plain int: arg_utils.py:721, config.py:1842
        ("0.9.1", "m --max-num-batched-tokens 8k", []),  # vllm==0.9.1:vllm/engine/arg_utils.py:240
        ("0.13.0", "m --max-model-len auto", ["malformed-value"]),
        ("0.14.0", "m --max-model-len auto", []),  # vllm==0.14.0:vllm/engine/arg_utils.py, human_readable_int_or_auto
        ("0.23.0", "m --max-model-len 0", ["out-of-range"]),  # vllm==0.23.0:vllm/config/model.py, max_model_len < 1
        ("0.22.1", "m --max-model-len 0", []),
        ("0.22.1", "m --tensor-parallel-size 0", []),
        ("0.23.0", "m --tensor-parallel-size 0", ["out-of-range"]),  # vllm==0.23.0:vllm/config/parallel.py, ge=1
        ("0.18.1", "m --moe-backend FlashInfer-CUTLASS", []),  # arg_utils.py: s.lower().replace("-", "_")
        ("0.18.1", "m --moe-backend flash", ["malformed-value"]),
        ("0.6.0", "m --load-format tensor", ["malformed-value"]),  # vllm==0.6.0:vllm/config.py, LoadFormat
        ("0.26.0", "m --enable-per-request-metrics --disable-log-stats", ["conflict"]),  # cli_args.py of 0.25.0 on
    ],
)
def test_values(release: str, line: str, typed: list[str]) -> None:
    assert kinds(reading(release, line)) == typed


# vllm/utils.py, vllm/utils/__init__.py or vllm/utils/argparse_utils.py of the releases at both sides of each edge
@pytest.mark.parametrize(
    ("release", "line", "problems"),
    [
        ("0.8.2", "--model m", ["missing-argument"]),
        ("0.8.3", "--model m", ["conflict"]),
        ("0.11.0", "--model m", ["conflict"]),
        ("0.11.1", "--model m", []),
        ("0.16.0", "--served-model-name a --port 1", []),
        ("0.17.0", "--served-model-name a --port 1", ["missing-model"]),
        ("0.8.5", "m --help=all", ["malformed-value"]),
        ("0.9.0", "m --help=all", ["help"]),
        ("0.9.1", "m --compilation-config 3", []),
        ("0.9.2", "m --compilation-config 3", ["malformed-value"]),
        ("0.17.1", "m --compilation-config.level 3", []),
        ("0.18.0", "m --compilation-config.level 3", ["malformed-value"]),
        ("0.12.0", "m -O.mode=3", []),
        ("0.13.0", "m -O.mode=3", ["out-of-range"]),
    ],
)  # fmt: skip
def test_the_parser_changes_its_habits(release: str, line: str, problems: list[str]) -> None:
    found = reading(release, line)
    assert kinds(found)[:1] == problems or (problems == ["missing-argument"] and found.refused)


def test_dotted_keys() -> None:
    """0.9.0 turned every underscore of the word to a dash, up to 0.9.1 each value stayed text."""
    line = "m --kv-transfer-config.kv_connector X --kv-transfer-config.kv_rank 1"
    settings = {release: reading(release, line).typed("kv_transfer_config") for release in ("0.9.1", "0.9.2")}
    assert settings["0.9.1"] == {"kv_connector": "X", "kv_rank": "1"}
    assert settings["0.9.2"] == {"kv_connector": "X", "kv_rank": 1}
    assert "kv_connector" not in (reading("0.9.0", line).typed("kv_transfer_config") or {})
    assert reading("0.8.5.post1", line).refused  # no such option yet


@pytest.mark.parametrize(
    ("release", "entry", "line", "file", "outcome"),
    [
        ("0.6.3", "serve", "m --config c.yaml", "enforce-eager: true", "refused"),  # --enforce-eager True
        ("0.6.4", "serve", "m --config c.yaml", "enforce-eager: true", "on"),
        ("0.8.2", "serve", "--config c.yaml", "model: m\nenforce-eager: true", "refused"),  # No model_tag specified!
        ("0.8.3", "serve", "--config c.yaml", "model: m\nenforce-eager: true", "on"),
        ("0.27.1", "api_server", "--config c.yaml --model m", "enforce-eager: false", "absent"),
        ("0.28.0", "api_server", "--config c.yaml --model m", "enforce-eager: false", "off"),
        (
            "0.10.1.1",
            "api_server",
            "--port 1 --config c.yaml",
            "enforce-eager: true",
            "refused",
        ),  # --port --enforce-eager
        ("0.10.2", "api_server", "--port 1 --config c.yaml", "enforce-eager: true", "on"),
    ],
)
def test_files(release: str, entry: str, line: str, file: str, outcome: str) -> None:
    found = reading(release, line, file, entry=f"vllm.{entry}" if entry == "api_server" else None)
    given = found.settings.get("enforce_eager")
    said = "refused" if found.refused else "absent" if given is None else "on" if given.typed else "off"
    assert said == outcome


@pytest.mark.parametrize(("tag", "refused"), [("v0.11.0", True), ("v0.11.1", False)])
def test_the_entrypoint_of_the_image(tmp_path: Path, tag: str, refused: bool) -> None:
    """vllm==0.11.0:docker/Dockerfile:542 starts the module, vllm==0.11.1:docker/Dockerfile:500 `vllm serve`."""
    text = f"services:\n  chat:\n    image: vllm/vllm-openai:{tag}\n    command: Qwen/Qwen3-8B --max-model-len 4096\n"
    (tmp_path / "compose.yaml").write_text(text, encoding="utf-8")
    found = {each.rule for each in kvlint.check([str(tmp_path)]).findings}
    assert bool(found & {"stray-argument", "ineffective-flag"}) == refused


def test_variables_by_release() -> None:
    """Tables of vllm/envs.py, and what other modules ask for."""

    def standing(name: str) -> list[str]:
        return [release for at, release in enumerate(VLLM.releases) if VLLM.environment[name] >> at & 1]

    assert standing("VLLM_HOST_IP") == list(VLLM.releases)
    assert standing("VLLM_ATTENTION_BACKEND")[-1] == "0.14.1"
    assert standing("VLLM_BATCH_INVARIANT")[0] == "0.11.1"


# --- the reader of releases -------------------------------------------------------------------------------------------

# What the given lists have otherwise, with the releases, and why.  `deprecated` and names of types that convert nothing aside.
SLIPS = {
    "choices": "the given lists leave what is no literal list; enumerations and aliases are in the files",
    "default": "likewise, constants of a module and members of an enumeration",
    "computed": "likewise",
    "optional": "None itself among choices of a list that is no literal",
    "entry": "added by the command only; vllm==0.9.2:vllm/entrypoints/cli/serve.py:56-75, 0.18.1:same, --grpc",
    "type": {
        "--max-num-batched-tokens": "plain int until 0.9.1",
        "--override-pooler-config": 'the class is a forward reference, "PoolerConfig", no dataclass',
        "--moe-backend": "lower case, dashes to underscores", "--linear-backend": "likewise",
        "--sparse-indexer-topk-backend": "likewise", "--limit-mm-per-prompt": "a subclass of dict is JSON from 0.31.0",
        "--logging-config": "json:LoggingConfig by an alias of its arguments",
    },
    "field": "arguments that go through a name of their own",
}  # fmt: skip


def given_and_read() -> list[tuple[str, dict[str, object]]]:
    lists: list[dict[str, list[dict[str, object]]]] = [{}, {}]
    for found, name in zip(lists, ("vllm.flags.json", "vllm.read.flags.json"), strict=True):
        build_flags.unfold(build_flags.read(build_flags.SOURCES / name), found)
    given, ours = lists
    return [(release, dict(read_vllm.differing(given[release], ours[release]))) for release in given]


def test_the_lists_that_were_extracted_elsewhere_agree() -> None:
    """Every record of 23 releases; four options of 0.11.0, added in a loop, are in the files and not in the given list."""
    only, slips = set(), set()
    for release, unlike in given_and_read():
        for name, how in unlike.items():
            if isinstance(how, str):
                only.add((release, name, how))
                continue
            assert isinstance(how, dict)
            slips |= {(key, name) for key in how if key != "type" or name not in SLIPS["type"]}
    assert {(release, how) for release, _, how in only} == {("0.11.0", "read only")}
    assert {name.rpartition("-disable")[0] or name for _, name, _ in only} == {
        "--guided-decoding",
        "--guided-decoding-backend",
    }
    assert {key for key, _ in slips} <= SLIPS.keys() - {"type"}


SERVE = """
from vllm.engine.arg_utils import EngineArgs
from vllm.entrypoints.cli_args import make_arg_parser
class ServeSubcommand:
    def subparser_init(self, subparsers):
        serve_parser = subparsers.add_parser("serve")
        serve_parser.add_argument("model_tag", nargs="?")
        return make_arg_parser(serve_parser)
"""
CLI_ARGS = """
from vllm.engine.arg_utils import EngineArgs
MANY = 4 * 1024
def make_arg_parser(parser):
    group = parser.add_argument_group("a")
    for name, kind in [("--first", int), ("--second", bool)]:
        group.add_argument(name, type=kind, help=f"[DEPRECATED] {name}")
    group.add_argument("--level", "-l", type=int, default=MANY, choices=[1, 2])
    group.add_argument("--tokens", default=EngineArgs.tokens)
    if "serve" in wanted:
        pass
    return parser
"""
ARG_UTILS = """
from dataclasses import dataclass
@dataclass
class EngineArgs:
    tokens: int = 12
"""


def written(tmp_path: Path, cli_args: str, arg_utils: str = ARG_UTILS) -> vllm_source.Tree:
    files = {"entrypoints/cli/serve.py": SERVE, "entrypoints/cli_args.py": cli_args, "engine/arg_utils.py": arg_utils}
    for name, text in files.items():
        path = tmp_path / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return vllm_source.Tree(tmp_path)


def test_statements_are_followed(tmp_path: Path) -> None:
    tree = written(tmp_path, CLI_ARGS.replace('    if "serve" in wanted:\n        pass\n', ""))
    found = {entry["flags"][0]: entry for entry in read_vllm.options_of(tree)}
    assert list(found) == ["model_tag", "--first", "--second", "--level", "--tokens"]
    assert found["model_tag"]["entry"] == "serve"
    assert "entry" not in found["--first"]
    assert (found["--first"]["type"], found["--first"]["deprecated"]) == ("int", True)
    assert found["--second"]["type"] == "str"  # `bool` takes any text
    assert (found["--level"]["default"], found["--level"]["choices"]) == (4096, [1, 2])
    assert found["--tokens"]["default"] == 12


def test_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    with pytest.raises(read_vllm.Refused, match="if 'serve' in wanted"):
        read_vllm.options_of(written(tmp_path, CLI_ARGS))


def test_a_form_of_get_kwargs_that_was_not_read_is_refused(tmp_path: Path) -> None:
    kwargs = "from vllm.engine.arg_utils import EngineArgs\ndef make_arg_parser(parser):\n    get_kwargs(EngineArgs)\n"
    tree = written(tmp_path, kwargs, ARG_UTILS + "\ndef get_kwargs(cls):\n    return {}\n")
    with pytest.raises(LookupError, match="a form that was not read yet"):
        read_vllm.options_of(tree)
