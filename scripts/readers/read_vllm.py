#!/usr/bin/env python3
"""Read the options and variables of vLLM's releases from their files, as `vllm serve` declares them.

    python scripts/readers/read_vllm.py write RELEASE=DIR...     # into data/engines/vllm.read.flags.json, others stay
    python scripts/readers/read_vllm.py compare RELEASE=DIR...   # with data/engines/vllm.flags.json, where both have a release

DIR holds an unpacked release (`DIR/vllm/...`).  The functions that add arguments are followed statement by statement, and the
arguments that vLLM makes of its config classes are made as it makes them; nothing is imported or run.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from build_flags import SOURCES, fold, fold_names, read, render, spread, unfold
from vllm_source import Class, Function, Tree, method
from vllm_walk import PARSER, Refused, Walk

# A variable asked for by its name, or by a constant that is named for one.
ASKED = re.compile(
    r"(?:(?:environ(?:\.get)?|getenv)\s*[(\[]\s*|\w*env\w*\s*=\s*)[\"'](VLLM_\w+)[\"']"
    r"|[\"'](VLLM_\w+)[\"']\s+(?:not\s+)?in\s+os\.environ",
    re.IGNORECASE,
)
# Types with a meaning of their own; any other is text to the parser.
CONVERTERS = ("human_readable_int", "human_int_or_auto", "int", "float", "bool", "truth", "optional_str", "json", "json_loads",
              "json_or_str", "kvs", "snake", "device_ids", "parse_reasoning_parser")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("write", "compare"):
        commands.add_parser(name).add_argument("trees", nargs="+", metavar="RELEASE=DIR")
    args = parser.parse_args()
    trees = {release: Tree(Path(directory)) for release, directory in (tree.split("=", 1) for tree in args.trees)}
    found = {release: options_of(tree) for release, tree in trees.items()}
    if args.command == "compare":
        print(*differences(found), sep="\n")
        return
    path = SOURCES / "vllm.read.flags.json"
    path.write_text(
        render(joined(read(path), found, {at: variables(tree) for at, tree in trees.items()})), encoding="utf-8"
    )


def joined(known: dict[str, Any], found: dict[str, Any], names: dict[str, list[str]]) -> dict[str, Any]:
    """What is known, with the releases that were read now in the place of what was known of them."""
    lists: dict[str, Any] = {}
    unfold(known, lists)
    lists.update(found)
    order = sorted(lists, key=ordered)
    table = known.get("environment", {"releases": [], "names": {}})
    before = {
        at: [n for n, spans in table["names"].items() if at in spread(table["releases"], spans)]
        for at in table["releases"]
    }
    read_at = {**before, **names}
    return {
        "engine": "vllm",
        "source": "scripts/readers/read_vllm.py over the published source distributions, of 0.15.0 and 0.15.1 over the wheels",
        "order": order,
        "releases": order,
        "options": fold(order, lists),
        "environment": {"releases": order, "names": fold_names({release: read_at[release] for release in order})},
    }


def ordered(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release))


def differences(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """One line for each release, and one for each record that differs from the one given."""
    given: dict[str, list[dict[str, Any]]] = {}
    unfold(read(SOURCES / "vllm.flags.json"), given)
    for release in (release for release in given if release in found):
        unlike = dict(differing(given[release], found[release]))
        yield f"{release}: {len(given[release])} given, {len(found[release])} read, {len(unlike)} differ"
        yield from (f"  {name} {how}" for name, how in unlike.items())


def differing(given: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The options that differ: by each key what was given and what was read, or which list alone has it."""
    theirs, ours = ({entry["flags"][0]: meant(entry) for entry in entries} for entries in (given, found))
    for name in sorted({*theirs, *ours}):
        a, b = theirs.get(name), ours.get(name)
        if a is None or b is None:
            yield name, "read only" if a is None else "given only"
        elif a != b:
            yield name, {key: (a.get(key), b.get(key)) for key in sorted({*a, *b}) if a.get(key) != b.get(key)}


def meant(entry: dict[str, Any]) -> dict[str, Any]:
    """Without what decides nothing: a type that is no converter is text, a deprecation is none of the parser's."""
    kind = entry.get("type")
    plain = kind is not None and kind not in CONVERTERS and not str(kind).startswith("json:")
    kept = {key: value for key, value in entry.items() if key != "deprecated"}
    return {**kept, "type": "str"} if plain else kept


def variables(tree: Tree) -> list[str]:
    """The names of vLLM's own that it reads: those of the table in vllm/envs.py, and those asked for elsewhere."""
    module = tree.module("vllm.envs")
    table = module.names.get("environment_variables") if module else None
    if not isinstance(table, ast.Dict):
        raise Refused(f"{tree.root}: vllm/envs.py has no table of variables")
    if not all(isinstance(key, ast.Constant) for key in table.keys):
        raise Refused(f"{tree.root}: a variable's name is no literal")
    names = {str(key.value) for key in table.keys if isinstance(key, ast.Constant)}
    for path in tree.root.glob("vllm/**/*.py"):
        names |= {found for pair in ASKED.findall(path.read_text(encoding="utf-8")) for found in pair if found}
    return sorted(name for name in names if name.startswith("VLLM_"))


def options_of(tree: Tree) -> list[dict[str, Any]]:
    """Every option of `vllm serve`, each as a record of our own, in the order in which they are added."""
    walk = Walk()
    command = tree.module("vllm.entrypoints.cli.serve")
    owner = command.find("ServeSubcommand") if command else None
    if isinstance(owner, Class):
        init = method(owner, "subparser_init")
        assert init is not None
        walk.run(init[1], {"self": owner, "subparsers": PARSER}, owner)
    else:
        scripts = tree.module("vllm.scripts")
        entry = scripts.find("main") if scripts else None
        assert isinstance(entry, Function)
        walk.run(Function(entry.module, up_to_serve(entry.node)), {}, None)
    return walk.records


def up_to_serve(function: Any) -> Any:
    """The body of a command line's `main` up to where the next subcommand's parser is made."""
    after = [at for at, node in enumerate(function.body) if "make_arg_parser" in ast.unparse(node)]
    return ast.FunctionDef(**{**vars(function), "body": function.body[: after[0] + 1]})


if __name__ == "__main__":
    main()
