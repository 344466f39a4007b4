#!/usr/bin/env python3
"""Read SGLang's flags of every release from the sources of its wheels.

    python scripts/readers/read_sglang.py write RELEASE=DIR...      # writes data/engines/sglang.read.flags.json
    python scripts/readers/read_sglang.py compare RELEASE=DIR...    # against the releases of data/engines/sglang.flags.json

DIR holds what a wheel unpacks to: `sglang/srt` and, from 0.5.13, `sglang/jit_kernel` or `sglang/kernels`.  Nothing of it is run.

Up to 0.5.13 `ServerArgs.add_cli_args` declares each flag by a call of `add_argument`.  From 0.5.14 most are annotations of the
fields of `ServerArgs`, and from 0.5.20 of the classes that `_INPUT_NAMESPACES` lists; sglang/srt/arg_groups/arg_utils.py makes
calls of them.
What cannot be told without running the program is left out, and said on the error output.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from build_flags import ROOT, SOURCES, fold, read, record, render, unfold
from static_values import Module, Tree, Unread

sys.path.insert(0, str(ROOT))

from kvlint.engines.versions import parse

ENGINE = "sglang"
SWITCHES = ("store_true", "argparse.BooleanOptionalAction")
TARGET = SOURCES / f"{ENGINE}.read.flags.json"
SOURCE = (
    "sglang/srt/server_args.py, and from 0.5.20 sglang/srt/arg_groups/fields, of each wheel; "
    "by scripts/readers/read_sglang.py"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "compare"])
    parser.add_argument("trees", nargs="+", metavar="RELEASE=DIR")
    arguments = parser.parse_args()
    trees = dict(tree.split("=", 1) for tree in arguments.trees)
    releases = sorted(trees, key=lambda release: parse(release) or ((), 0, 0))
    lists = {release: flags(release, Path(trees[release])) for release in releases}
    given = read(SOURCES / f"{ENGINE}.flags.json")
    if arguments.command == "compare":
        for line in compared(given, lists):
            print(line)
        return
    missing = [release for release in releases if release not in given["releases"]]
    options = fold(missing, {release: lists[release] for release in missing})
    order = sorted({*releases, *given["releases"]}, key=lambda release: parse(release) or ((), 0, 0))
    found = {"engine": ENGINE, "source": SOURCE, "releases": missing, "order": order, "options": options}
    TARGET.write_text(render(found), encoding="utf-8")


def compared(given: dict[str, Any], lists: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """For each release that was extracted elsewhere too: how many records are equal, then each that is not."""
    others: dict[str, list[dict[str, Any]]] = {}
    unfold(given, others)
    for release, found in lists.items():
        if release not in others:
            continue
        ours, theirs = ({entry["flags"][0]: entry for entry in each} for each in (found, others[release]))
        same = sum(entry == theirs.get(name) for name, entry in ours.items())
        yield f"{release}: {len(others[release])} given, {len(found)} read, {same} equal"
        for name in sorted({*ours, *theirs}):
            one, other = ours.get(name, {}), theirs.get(name, {})
            unlike = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
            if unlike:
                yield f"  {name}: " + ", ".join(f"{key} {other.get(key)!r} -> {one.get(key)!r}" for key in unlike)


def flags(release: str, root: Path) -> list[dict[str, Any]]:
    """The options that the release's parser is given, as `build_flags.py` has them."""
    module = Tree(root).module("sglang.srt.server_args")
    if module is None:
        raise SystemExit(f"{root} has no sglang/srt/server_args.py")
    return [record(ENGINE, raw) for raw in Declarations(release, module).read()]


@dataclass
class Declarations:
    """The flags of one release, as its parser is told of them."""

    release: str
    module: Module
    local: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Iterator[dict[str, Any]]:
        """What `add_cli_args` adds; a statement that might add more and is not understood ends the program."""
        owner = self.module.named("ServerArgs")
        self.local["_declared_default"] = self.declared
        for item in owner.method("add_cli_args").body:
            call = item.value if isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) else None
            if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
                self.assign(item.targets[0].id, item.value)
            elif call is not None and ast.unparse(call.func) == "parser.add_argument":
                yield self.added([self.module.value(each) for each in call.args], keywords(call))
            elif call is not None and ast.unparse(call) == "add_cli_args_from_dataclass(parser, ServerArgs)":
                yield from self.annotated()
            elif any(isinstance(each, ast.Name) and each.id == "parser" for each in ast.walk(item)):
                raise SystemExit(f"{self.release}: not understood: {ast.unparse(item)}")

    def assign(self, name: str, value: ast.expr) -> None:
        try:
            self.local[name] = self.module.value(value, self.local)
        except Unread:
            self.local.pop(name, None)

    def added(self, names: list[str], given: Mapping[str, ast.expr]) -> dict[str, Any]:
        """One call of `add_argument`."""
        action = text(given.get("action"))
        found = {
            "flags": names,
            "dest": text(given.get("dest")),
            "type": "bool" if action in SWITCHES else text(given.get("type")),
            "nargs": self.told("nargs", given),
            "action": action,
            "choices": self.choices(names, given.get("choices")),
            "default": False if action == "store_true" else None,
            "const": self.told("const", given),
            "required": self.told("required", given),
            "deprecated": deprecated(action, given.get("help")),
        }
        if "default" in given:
            found["default"] = self.default(names, given["default"])
        if "error_message" in given or self.stops(action):
            found.update(action="removed", type="bool", nargs=0)
        elif action == "DeprecatedStoreConstAction" and "nargs" in given:
            found["action"] = None
        return found

    def stops(self, action: str | None) -> bool:
        """Whether an action of SGLang's own does nothing but end the start: the flag is a word of farewell."""
        if action is None or action not in self.module.bound:
            return False
        return any(isinstance(item, ast.Raise) for item in self.module.named(action).method("__call__").body)

    def annotated(self) -> Iterator[dict[str, Any]]:
        """The fields of `ServerArgs` that are annotated for the command line."""
        for owner, name, annotation, default in self.fields():
            kind, meta = described(annotation)
            if meta is None or ast.unparse(meta.get("no_cli", ast.Constant(False))) == "True":
                continue
            scope = Declarations(self.release, owner, self.local)
            yield scope.of_field(name, kind, meta, default)

    def of_field(
        self, name: str, kind: ast.expr, meta: Mapping[str, ast.expr], default: ast.expr | None
    ) -> dict[str, Any]:
        """The call that is made of one field (add_cli_args_from_dataclass)."""
        flag = self.module.value(meta["cli_name"]) if "cli_name" in meta else "--" + name.replace("_", "-")
        names = [flag, *(self.module.value(meta["aliases"]) if "aliases" in meta else ())]
        given = {key: meta[key] for key in ("help", "action", "choices", "nargs", "const") if key in meta}
        if default is not None:
            given["default"] = default
        if flag.lstrip("-").replace("-", "_") != name:
            given["dest"] = ast.Constant(name)
        if "action" in meta:
            extra = meta.get("action_kwargs")
            given = {key: given[key] for key in ("help", "action", "default", "dest") if key in given}
            return self.added(names, {**given, **(self.module.value(extra) if extra is not None else {})})
        inner = plain(kind)
        of = ast.unparse(inner.value) if isinstance(inner, ast.Subscript) else None
        if of == "Literal":
            given.setdefault("choices", literals(inner))
            given["type"] = meta.get("type_parser", ast.Name("str"))
            given.pop("nargs", None)
        elif of in ("list", "List") and "type_parser" not in meta:
            given["type"] = element(inner)
            given.setdefault("nargs", ast.Constant("+"))
        elif ast.unparse(inner) == "bool":
            given = {key: given[key] for key in ("help", "default", "dest") if key in given}
            given["action"] = ast.Constant("store_true")
        else:
            given["type"] = meta.get("type_parser", element(inner))
            needed = meta.get("required")
            given["required"] = needed if needed is not None else ast.Constant(default is None)
        return self.added(names, given)

    def fields(self) -> Iterator[tuple[Module, str, ast.expr, ast.expr | None]]:
        owners = [self.module.named("ServerArgs")]
        if "_INPUT_NAMESPACES" in self.module.bound:
            owners = [*self.module.named("_INPUT_NAMESPACES"), *owners]
        for owner in owners:
            yield from ((owner.module, *each) for each in owner.fields())

    def declared(self, wanted: str) -> Any:
        """The default of a field of `ServerArgs`, as `_declared_default` looks it up."""
        for owner, name, _, default in self.fields():
            if name == wanted and default is not None:
                return owner.value(default)
        raise Unread(wanted)

    def told(self, key: str, given: Mapping[str, ast.expr]) -> Any:
        return self.module.value(given[key], self.local) if key in given else None

    def default(self, names: list[str], node: ast.expr) -> Any:
        if ast.unparse(node) == "argparse.SUPPRESS":
            return None
        try:
            return self.module.value(node, self.local)
        except Unread as unread:
            self.note(names, f"its default {unread}")
            return f"expr:{ast.unparse(node)}"

    def choices(self, names: list[str], node: ast.expr | None) -> list[Any] | None:
        """What the parser takes; a set has no order of its own."""
        if node is None:
            return None
        try:
            found = self.module.value(node, self.local)
        except Unread as unread:
            self.note(names, f"its choices {unread}")
            return None
        return sorted(found) if isinstance(found, (set, frozenset)) else list(found)

    def note(self, names: list[str], what: str) -> None:
        print(f"{self.release} {names[0]}: {what} cannot be told", file=sys.stderr)


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {key.arg: key.value for key in call.keywords if key.arg}


def text(node: ast.expr | None) -> str | None:
    """A word as it is written: a string's own text, or the name."""
    if node is None:
        return None
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)


def deprecated(action: str | None, about: ast.expr | None) -> bool:
    """Whether the action or the help says so."""
    return bool(action and action.startswith("Deprecated")) or (
        about is not None and "deprecated" in ast.unparse(about).lower()
    )


def described(annotation: ast.expr) -> tuple[ast.expr, Mapping[str, ast.expr] | None]:
    """Type and `Arg` of `A[type, Arg(...)]`; a text in the place of `Arg` is its help.  None: no flag."""
    if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("A", "Annotated")):
        return annotation, None
    kind, *rest = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    for each in rest:
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "Arg":
            return kind, keywords(each)
        if isinstance(each, (ast.Constant, ast.JoinedStr)):
            return kind, {"help": each}
    return kind, None


def plain(kind: ast.expr) -> ast.expr:
    """The type without `None`."""
    parts: list[ast.expr] = [kind]
    if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "Optional":
        return plain(kind.slice)
    if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "Union" and isinstance(kind.slice, ast.Tuple):
        parts = kind.slice.elts
    elif isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        parts = [kind.left, kind.right]
    some = [part for part in parts if ast.unparse(part) != "None"]
    return some[0] if len(some) == 1 else kind


def element(kind: ast.expr) -> ast.expr:
    """The converter of a type or of a list's elements: `str` unless it is a number."""
    inner = kind.slice if isinstance(kind, ast.Subscript) else kind
    return inner if ast.unparse(inner) in ("str", "int", "float") else ast.Name("str")


def literals(kind: ast.expr) -> ast.expr:
    assert isinstance(kind, ast.Subscript)
    return ast.List(elts=kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice])


if __name__ == "__main__":
    main()
