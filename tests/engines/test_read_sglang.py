"""What `scripts/readers/read_sglang.py` makes of the forms in which SGLang declared its flags; nothing of a tree is run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/readers")]

import build_flags  # noqa: E402
import read_sglang  # noqa: E402
from static_values import Tree, Unread  # noqa: E402

CALLS = '''
import sys
from sglang.srt.parsers import Registry
from sglang.srt.utils import *
raise SystemExit("a file that is run")
BACKENDS = ["triton", "fa3"]
BACKENDS.append("flashinfer")
MORE = [*BACKENDS, "unquant"]

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    port: int = 30000
    queued: int = sys.maxsize
    capacity: int = 10 * 1000
    trust: bool = False
    backend: str = MORE[0]
    seed: int = compute()

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        """Declares them."""
        parsers = list(Registry.known.keys())
        parser.add_argument("--model-path", "--model", type=str, required=True, help="The model.")
        parser.add_argument("--port", type=int, default=ServerArgs.port)
        parser.add_argument("--queued", type=int, default=ServerArgs.queued)
        parser.add_argument("--capacity", type=int, default=ServerArgs.capacity)
        parser.add_argument("--trust", action="store_true", help="Trust" " it (deprecated)")
        parser.add_argument("--backend", type=str, choices=MORE, default=ServerArgs.backend)
        parser.add_argument("--kernel", type=str, choices={"b", "a"})
        parser.add_argument("--reasoning-parser", choices=["auto"] + parsers)
        parser.add_argument("--modes", nargs="*", choices=[m.name.lower() for m in Mode])
        parser.add_argument("--seed", type=int, default=ServerArgs.seed, choices=seeds())
        parser.add_argument("--ratio", type=float, nargs="?", const=0.5)
        parser.add_argument("--old", action=DeprecatedAction, help="--old is deprecated.")
        parser.add_argument("--older", action=Warns, default=argparse.SUPPRESS)
        parser.add_argument("--oldest", action=Warns, error_message="use --port")

class DeprecatedAction(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        raise ValueError(self.help)

class Warns(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        print("deprecated")
'''
PARSERS = 'class Registry:\n    known: Dict[str, type] = {"qwen3": Qwen3, "glm45": Glm}\n'
UTILS = "from enum import Enum\nclass Mode(Enum):\n    NONE = 0\n    ALL = 1\n"

FIELDS = """
from sglang.srt.choices import BACKENDS, Backend

class Model:
    _NS_PATH = "model"
    model_path: A[str, Arg(help="Path.", aliases=["--model"], resolvable=True)]
    revision: A[Optional[str], "The revision."] = None
    trust: A[bool, "Trust it."] = False
    hidden: A[int, Arg(help="none", no_cli=True)] = 1
    inner: Optional[str] = None
    derived = Derived(fn="a.b")
    tp: A[int, Arg(help="TP.", cli_name="--tp-size")] = 1
    layers: A[Optional[List[int]], "Layers."] = None
    prefixes: A[List[str], Arg(help="Several.", nargs="*")] = msgspec.field(default_factory=list)
    compiler: A[Optional[Literal["eager", "inductor"]], "Compiler."] = None
    tf32: A[Optional[bool], Arg(help="TF32.", action=argparse.BooleanOptionalAction)] = None
    lora_paths: A[Optional[Union[str, List[str]]], Arg(action=LoRAPathAction, action_kwargs={"type": str, "nargs": "*"})] = None
    graph: A[Optional[str], Arg(help="Graph.", type_parser=parse_graph, choices=Backend.ALL)] = None
    length: A[int | None, Arg(help="Length.", type_parser=human_readable_int)] = None
    window: A[
        int,
        Arg(help="Window."),
        NS("schedule"),
    ] = 1024 * 1024
"""
NAMESPACES = """
from sglang.srt.fields import Model

def _parsers():
    module = sys.modules.get("sglang.srt.registry")
    if module is not None:
        return list(module.KNOWN)
    from sglang.srt.names import NAMES

    return list(NAMES)

class ServerArgs:
    @staticmethod
    def add_cli_args(parser):
        add_cli_args_from_dataclass(parser, ServerArgs)
        parsers = _parsers()
        if envs.ORACLE.get():
            parsers.append("oracle")
        parser.add_argument("--reasoning-parser", type=str, choices=["auto"] + parsers, default=_declared_default("revision"))
        parser.add_argument("--amd", action=DeprecatedStoreConstAction, nargs=None, choices=["amd"], dest="trust", default=False)

_INPUT_NAMESPACES = [Model]
ServerArgs = msgspec.defstruct("ServerArgs", [])
"""


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / "sglang/srt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def read(root: Path) -> dict[str, dict[str, Any]]:
    found = read_sglang.flags("1.0", root)
    return {entry["flags"][0]: {k: v for k, v in entry.items() if k not in ("flags", "dest")} for entry in found}


def test_flags_that_are_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = CALLS.replace('raise SystemExit("a file that is run")\n', "from sglang.srt.modes import Mode\n")
    found = read(
        tree(tmp_path, {"server_args.py": text, "parsers.py": PARSERS, "utils/__init__.py": "", "modes.py": UTILS})
    )
    assert found == {
        "--model-path": {"type": "str", "required": True},
        "--port": {"type": "int", "default": 30000},
        "--queued": {"type": "int", "default": 2**63 - 1},
        "--capacity": {"type": "int", "default": 10000},
        "--trust": {"type": "bool", "action": "store_true", "nargs": 0, "default": False, "deprecated": True},
        "--backend": {"type": "str", "choices": ["triton", "fa3", "flashinfer", "unquant"], "default": "triton"},
        "--kernel": {"type": "str", "choices": ["a", "b"]},
        "--reasoning-parser": {"type": "str", "choices": ["auto", "qwen3", "glm45"]},
        "--modes": {"type": "str", "nargs": "*", "choices": ["none", "all"]},
        "--seed": {"type": "int", "computed": True},
        "--ratio": {"type": "float", "nargs": "?", "const": 0.5},
        "--old": {"type": "bool", "action": "removed", "nargs": 0, "deprecated": True},
        "--older": {"type": "str"},
        "--oldest": {"type": "bool", "action": "removed", "nargs": 0},
    }
    said = capsys.readouterr().err
    assert "1.0 --seed: its default sglang.srt.server_args.compute cannot be told" in said
    assert "1.0 --seed: its choices sglang.srt.server_args.seeds cannot be told" in said


def test_nothing_of_a_tree_is_run(tmp_path: Path) -> None:
    """A module that would end the program is read like any other."""
    files = {"server_args.py": CALLS, "parsers.py": 'raise SystemExit("run")\n' + PARSERS, "utils.py": UTILS}
    assert read(tree(tmp_path, files))["--modes"]["choices"] == ["none", "all"]
    assert "sglang" not in sys.modules


def test_flags_that_are_fields(tmp_path: Path) -> None:
    choices = 'BACKENDS = ["a"]\nclass Backend:\n    FULL = "full"\n    OFF = "off"\n    ALL = (FULL, OFF)\n'
    files = {
        "server_args.py": NAMESPACES,
        "fields.py": FIELDS,
        "choices.py": choices,
        "names.py": 'NAMES = ["qwen3"]\n',
    }
    found = read(tree(tmp_path, files))
    assert found == {
        "--model-path": {"type": "str", "required": True},
        "--revision": {"type": "str"},
        "--trust": {"type": "bool", "action": "store_true", "nargs": 0, "default": False},
        "--tp-size": {"type": "int", "default": 1},
        "--layers": {"type": "int", "nargs": "+"},
        "--prefixes": {"type": "str", "nargs": "*"},
        "--compiler": {"type": "str", "choices": ["eager", "inductor"]},
        "--tf32": {"type": "bool", "action": "BooleanOptionalAction", "nargs": 0},
        "--lora-paths": {"type": "str", "nargs": "*"},
        "--graph": {"type": "parse_graph", "choices": ["full", "off"]},
        "--length": {"type": "human_readable_int"},
        "--window": {"type": "int", "default": 1048576},
        "--reasoning-parser": {"type": "str", "choices": ["auto", "qwen3"]},
        "--amd": {"type": "str", "choices": ["amd"], "default": False, "deprecated": True},
    }
    (tensor,) = (entry for entry in read_sglang.flags("1.0", tmp_path) if entry["flags"] == ["--tp-size"])
    assert tensor["dest"] == "tp"


def test_a_statement_that_is_not_understood_ends_it(tmp_path: Path) -> None:
    text = "class ServerArgs:\n    def add_cli_args(parser):\n        if x:\n            parser.add_argument('--a')\n"
    with pytest.raises(SystemExit, match=r"1\.0: not understood: if x"):
        read(tree(tmp_path, {"server_args.py": text}))


def test_what_only_the_program_could_tell(tmp_path: Path) -> None:
    module = Tree(tree(tmp_path, {"a.py": "A = f()\nB = [x for x in y if x]\nfrom c.d import C\n"})).module(
        "sglang.srt.a"
    )
    assert module is not None
    for name in "ABCD":
        with pytest.raises(Unread):
            module.named(name)


def test_the_table_of_differences(tmp_path: Path) -> None:
    lists = {"0.4.6": [{"flags": ["--a"], "type": "str"}, {"flags": ["--b"], "type": "int"}]}
    given = {"releases": ["0.4.6"], "options": [{"flags": ["--a"], "type": "str", "in": [["0.4.6", "0.4.6"]]}]}
    assert list(read_sglang.compared(given, lists)) == [
        "0.4.6: 1 given, 2 read, 1 equal",
        "  --b: flags None -> ['--b'], type None -> 'int'",
    ]


def test_the_lists_in_the_data_are_whole() -> None:
    """Every published release from 0.4.6, once, in either file; the order is that of the releases."""
    given, more = (
        json.loads((build_flags.SOURCES / f"sglang{end}.flags.json").read_text(encoding="utf-8"))
        for end in ("", ".read")
    )
    assert sorted([*given["releases"], *more["releases"]]) == sorted(more["order"])
    assert len(more["order"]) == 62
    assert more["order"] == sorted(more["order"], key=lambda release: build_flags_key(release))


def build_flags_key(release: str) -> tuple[int, ...]:
    number, _, post = release.partition(".post")
    return (*(int(part) for part in number.split(".")), int(post or 0))
