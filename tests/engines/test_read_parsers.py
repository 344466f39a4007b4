"""scripts/readers/read_parsers.py: a parser is followed through its helpers, and what cannot be told is not guessed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from kvlint.engines.options import options

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/readers")]

import build_flags  # noqa: E402
import read_parsers  # noqa: E402

SERVE = """
class SubCliServe:
    @staticmethod
    def add_parser_api_server():
        parser = SubCliServe.subparsers.add_parser('api_server', help=SubCliServe.api_server.__doc__)
        parser.set_defaults(run=SubCliServe.api_server)
        parser.add_argument('model_path', type=str, help='the model')
        group = parser.add_argument_group('engine')
        tp_act = ArgumentHelper.tp(group)
        group._group_actions.append(tp_act)
        ArgumentHelper.device(group)
        ArgumentHelper.policy(group)
        ArgumentHelper.level(group, default='INFO')
        ArgumentHelper.several(parser)
        {more}
"""
UTILS = """
class ArgumentHelper:
    @staticmethod
    def tp(parser):
        return parser.add_argument('--tp', type=int, default=1)

    @staticmethod
    def device(parser, default: str = 'cuda', choices: list[str] = ['cuda', 'ascend']):
        return parser.add_argument('--device', type=str, default=default, choices=choices)

    @staticmethod
    def policy(parser):
        from lmdeploy.messages import Policy

        def _parse(text):
            return int(text)

        parser.add_argument('--policy', type=int, choices=list(Policy), default=0)
        return parser.add_argument('--late-policy', type=_parse, default=Policy.NONE)

    @staticmethod
    def level(parser, default=None):
        import logging
        return parser.add_argument('--level', default=default, choices=list(logging._nameToLevel.keys()))

    @staticmethod
    def several(parser):
        group = parser.add_mutually_exclusive_group()
        group.add_argument('-o', '--one-thing', action='store_true', required=False)
        group.add_argument('--async', type=int, dest='async_', nargs='+')
        return group

    @staticmethod
    def unused(parser):
        return parser.add_argument('--unused')
"""
MESSAGES = "import enum\nclass Policy(enum.IntEnum):\n    '''About.'''\n    NONE = 0\n    INT8 = 8\n"


def tree(root: Path, more: str = "pass") -> Path:
    for name, text in (("messages", MESSAGES), ("cli/utils", UTILS), ("cli/serve", SERVE.format(more=more))):
        path = root / f"lmdeploy/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_a_parser_is_followed_through_its_helpers(tmp_path: Path) -> None:
    found: dict[str, dict[str, Any]] = {
        each["flags"][0]: each for each in read_parsers.flags("lmdeploy", tree(tmp_path))
    }
    assert list(found) == ["model_path", "--tp", "--device", "--policy", "--late-policy", "--level", "-o", "--async"]
    assert found["--tp"] == {"flags": ["--tp"], "dest": "tp", "type": "int", "default": 1}
    assert (found["--device"]["choices"], found["--device"]["default"]) == (["cuda", "ascend"], "cuda")
    assert found["--policy"]["choices"] == [0, 8]
    assert found["-o"] == {
        "flags": ["-o", "--one-thing"],
        "dest": "one_thing",
        "type": "bool",
        "action": "store_true",
        "nargs": 0,
        "default": False,
    }
    assert (found["--async"]["dest"], found["--async"]["nargs"]) == ("async_", "+")


def test_what_only_a_running_program_has_is_left_out(tmp_path: Path) -> None:
    found = {each["flags"][0]: each for each in read_parsers.flags("lmdeploy", tree(tmp_path))}
    assert "choices" not in found["--level"]
    assert found["--level"]["default"] == "INFO"
    assert found["--late-policy"]["type"] == "_parse"
    assert found["--late-policy"]["computed"]
    assert "default" not in found["--late-policy"]


@pytest.mark.parametrize(
    "more",
    [
        "if sys.platform == 'linux':\n            parser.add_argument('--linux')",
        "for name in NAMES: parser.add_argument(name)",
        "add_more(parser)",
    ],
)
def test_a_statement_that_is_not_understood_ends_the_program(tmp_path: Path, more: str) -> None:
    with pytest.raises(SystemExit, match="not understood"):
        read_parsers.flags("lmdeploy", tree(tmp_path, more))


@pytest.mark.parametrize("engine", read_parsers.ENGINES)
def test_the_lists_that_were_read_fill_the_gaps(engine: str) -> None:
    """Each release once, oldest first, and none of those that were extracted elsewhere."""
    more, given = (build_flags.read(build_flags.SOURCES / f"{engine}.{part}.json") for part in ("read.flags", "flags"))
    assert set(more["order"]) == {*more["releases"], *given["releases"]}
    assert not {*more["releases"]} & {*given["releases"]}
    assert more["order"] == read_parsers.ordered(more["order"]) == list(options(engine).releases)
