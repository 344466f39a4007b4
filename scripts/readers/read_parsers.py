#!/usr/bin/env python3
"""Read the flags of releases whose parser is built by plain calls of `add_argument`: LMDeploy and mlx-lm.

    python scripts/readers/read_parsers.py write ENGINE RELEASE=DIR...    # writes data/engines/ENGINE.read.flags.json
    python scripts/readers/read_parsers.py compare ENGINE RELEASE=DIR...  # against the releases of data/engines/ENGINE.flags.json

DIR holds what a release unpacks to (`lmdeploy/`, `mlx_lm/`).  Nothing of it is run: the function that builds the parser is
followed statement by statement, and so are the helpers that it hands its parser to.  A statement that does something else with
a parser ends the program.  A converter is named as it is written; choices that only a running program has are left out.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from build_flags import ROOT, SOURCES, correct, fold, read, record, render, unfold

sys.path.insert(0, str(ROOT))

from kvlint.engines.versions import parse


class Source(NamedTuple):
    """Where an engine builds its parser.

    `files`: read for functions, constants and enumerations, the last counts; `start`: the function that is followed; `types`: the
    data's names of converters.
    """

    files: tuple[str, ...]
    start: str
    types: Mapping[str, str]


ENGINES = {
    "lmdeploy": Source(
        ("lmdeploy/messages.py", "lmdeploy/cli/utils.py", "lmdeploy/cli/serve.py"),
        "SubCliServe.add_parser_api_server",
        {},
    ),
    "mlx-lm": Source(
        ("mlx_lm/generate.py", "mlx_lm/server.py"),
        "main",
        {"json.loads": "json", "parse_size": "size", "_parse_size": "size", "lambda x: x.split(',')": "comma_list"},
    ),
}
PARSER = object()  # a parser or a group of one
CREATORS = ("ArgumentParser", "add_parser", "add_argument_group", "add_mutually_exclusive_group")
HARMLESS = ("set_defaults", "parse_args", "append")


class Unread(Exception):
    """An expression whose value only a running program has."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "compare"])
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("trees", nargs="+", metavar="RELEASE=DIR")
    args = parser.parse_args()
    trees = dict(tree.split("=", 1) for tree in args.trees)
    lists = {release: flags(args.engine, Path(trees[release])) for release in ordered(trees)}
    given = read(SOURCES / f"{args.engine}.flags.json")
    if args.command == "compare":
        for line in compared(args.engine, given, lists):
            print(line)
        return
    missing = [release for release in lists if release not in given["releases"]]
    found = {
        "engine": args.engine,
        "source": f"{', '.join(ENGINES[args.engine].files)} of each release's package; by scripts/readers/read_parsers.py",
        "releases": missing,
        "order": ordered({*lists, *given["releases"]}),
        "options": fold(missing, {release: lists[release] for release in missing}),
    }
    (SOURCES / f"{args.engine}.read.flags.json").write_text(render(found), encoding="utf-8")


def ordered(releases: Iterable[str]) -> list[str]:
    return sorted(releases, key=lambda release: parse(release) or ((), 0, 0))


def compared(engine: str, given: dict[str, Any], lists: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """For each release that was extracted elsewhere too: how many records are equal, then each that is not.

    What the corrections by hand make equal is said to be so.
    """
    others: dict[str, list[dict[str, Any]]] = {}
    unfold(given, others)
    corrections = read(SOURCES / f"{engine}.hand.flags.json").get("corrections", [])
    releases = read(SOURCES / f"{engine}.read.flags.json").get("order", given["releases"])
    for release, found in lists.items():
        if release not in others:
            continue
        theirs, ours = by_name(others[release]), by_name(found)
        same = sum(entry == theirs.get(name) for name, entry in ours.items())
        yield f"{release}: {len(theirs)} given, {len(ours)} read, {same} equal"
        settled = [dict(entry) for entry in others[release]], [dict(entry) for entry in found]
        for entries in settled:
            correct(releases, release, entries, corrections)
        after = [by_name(entries) for entries in settled]
        for name in sorted({*theirs, *ours}):
            one, other = theirs.get(name, {}), ours.get(name, {})
            unlike = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
            by_hand = " (equal as corrected by hand)" if after[0].get(name) == after[1].get(name) else ""
            if unlike:
                what = ", ".join(f"{key} {one.get(key)!r} -> {other.get(key)!r}" for key in unlike)
                yield f"  {name}: {what}{by_hand}"


def by_name(entries: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["flags"][0]: entry for entry in entries}


def flags(engine: str, root: Path) -> list[dict[str, Any]]:
    """The options that the parser of a release is given, as `build_flags.py` has them."""
    source = ENGINES[engine]
    walk = Walk(source.types)
    for name in source.files:
        walk.learn(ast.parse((root / name).read_text(encoding="utf-8")).body)
    walk.follow(walk.functions[source.start], {})
    return [record(engine, raw) for raw in walk.found]


@dataclass
class Walk:
    """A parser as it is built, without running what builds it."""

    types: Mapping[str, str]
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    members: dict[str, list[Any]] = field(default_factory=dict)  # of enumerations of numbers
    constants: dict[str, Any] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)

    def learn(self, body: Sequence[ast.stmt]) -> None:
        """Keep functions, static methods under their class, enumerations, and what is written in capitals."""
        for item in body:
            if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name) and item.targets[0].id.isupper():
                self.constants[item.targets[0].id] = self.known(item.value, {})
            elif isinstance(item, ast.FunctionDef):
                self.functions[item.name] = item
            elif isinstance(item, ast.ClassDef):
                self.functions |= {f"{item.name}.{f.name}": f for f in item.body if isinstance(f, ast.FunctionDef)}
                if any(ast.unparse(base) in ("enum.IntEnum", "IntEnum") for base in item.bases):
                    values = [each.value for each in item.body if isinstance(each, ast.Assign)]
                    self.members[item.name] = [ast.literal_eval(value) for value in values]

    def follow(self, function: ast.FunctionDef, local: dict[str, Any]) -> Any:
        """The statements of one function; what it returns."""
        for item in function.body:
            if isinstance(item, (ast.Expr, ast.Return)) and item.value is not None:
                value = self.result(item.value, local)
                if isinstance(item, ast.Return):
                    return value
            elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                local[item.targets[0].id] = self.result(item.value, local)
            elif self.touches(item, local):
                raise SystemExit(f"{function.name}: not understood: {ast.unparse(item)}")
        return None

    def result(self, node: ast.expr, local: dict[str, Any]) -> Any:
        """What an expression makes: a parser, or a value; None for what is not known."""
        if not isinstance(node, ast.Call):
            return self.known(node, local)
        owner, _, method = ast.unparse(node.func).rpartition(".")
        if method == "add_argument" and local.get(owner) is PARSER:
            self.found.append(self.added(node, local))
            return None
        if method in CREATORS:
            return PARSER
        helper = self.functions.get(f"{owner}.{method}" if owner else method)
        if helper is not None and self.touches(node, local):
            return self.follow(helper, self.bound(helper, node, local))
        if self.touches(node, local) and method not in HARMLESS:
            raise SystemExit(f"not understood: {ast.unparse(node)}")
        return self.known(node, local)

    def touches(self, node: ast.AST, local: Mapping[str, Any]) -> bool:
        """Whether a parser is named in it."""
        return any(isinstance(each, ast.Name) and local.get(each.id) is PARSER for each in ast.walk(node))

    def bound(self, function: ast.FunctionDef, call: ast.Call, local: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a helper: what the call gives, else their defaults."""
        names, defaults = [arg.arg for arg in function.args.args], function.args.defaults
        found = {
            name: self.known(node, {}) for name, node in zip(names[len(names) - len(defaults) :], defaults, strict=True)
        }
        found |= {name: self.known(node, local) for name, node in zip(names, call.args, strict=False)}
        return found | {key.arg: self.known(key.value, local) for key in call.keywords if key.arg}

    def added(self, call: ast.Call, local: Mapping[str, Any]) -> dict[str, Any]:
        """One option, in the terms of the lists that were extracted elsewhere."""
        given = {key.arg: key.value for key in call.keywords if key.arg and key.arg != "help"}
        names = [ast.literal_eval(arg) for arg in call.args]
        kind = given.pop("type", None)
        found = {key: self.known(node, local) for key, node in given.items() if key != "default"}
        if found.get("action") == "store_true":
            return {"flags": names, **found, "type": "bool", "default": self.default(given, local) or False}
        text = "str" if kind is None else ast.unparse(kind)
        return {"flags": names, **found, "type": self.types.get(text, text), "default": self.default(given, local)}

    def default(self, given: Mapping[str, ast.expr], local: Mapping[str, Any]) -> Any:
        if "default" not in given:
            return None
        try:
            return self.value(given["default"], local)
        except Unread as unread:
            return f"expr:{unread}"

    def known(self, node: ast.expr, local: Mapping[str, Any]) -> Any:
        try:
            return self.value(node, local)
        except Unread:
            return None

    def value(self, node: ast.expr, local: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Name) and node.id in {**self.constants, **local}:
            return {**self.constants, **local}[node.id]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "list" and len(node.args) == 1:
            members = self.members.get(ast.unparse(node.args[0]))
            if members is not None:
                return list(members)
        try:
            return ast.literal_eval(node)
        except ValueError:
            raise Unread(ast.unparse(node)) from None


if __name__ == "__main__":
    main()
