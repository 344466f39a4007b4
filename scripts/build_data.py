"""Compile rules/ and data/ into kvlint/_data/: `python scripts/build_data.py [--check]`.

    rules.json          what `check` needs of every rule, and the names that conditions may read
    rule_pages.json     prose and examples, for `explain` and the documentation
    coefficients.json   data/coefficients.toml

Rule files are read with every scalar a string, validated by data/schema/rule.schema.json, and their expressions and messages
are compiled once, so that a mistake is found here, with its place.  `--check` writes nothing and fails where a file is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kvlint.ruleset import conditions, load, messages  # noqa: E402
from kvlint.ruleset.conditions import ConditionError  # noqa: E402
from kvlint.ruleset.scopes import Scope  # noqa: E402

Place = tuple[str | int, ...]
COMPILED = ("theme", "summary", "subject", "kind", "engines", "when", "holds", "mark", "edit")
PAGE = ("why", "fix", "notes", "references", "since", "examples")


class Invalid(Exception):
    """Mistakes in the sources, one a line, each with its place."""


@dataclass(frozen=True)
class RuleFile:
    """A rule file as read: `data` with strings as its only scalars, and where each value stands."""

    path: Path
    data: dict[str, Any]
    nodes: Mapping[Place, yaml.Node]

    def complaint(self, at: Place, message: str, column: int = 1) -> str:
        """`file:line:column: message`; `column` counts in the value, where the value is written as one plain piece."""
        while at not in self.nodes:
            at = at[:-1]
        node = self.nodes[at]
        plain = isinstance(node, yaml.ScalarNode) and not node.style and node.start_mark.line == node.end_mark.line
        start = node.start_mark
        field = ".".join(map(str, at))
        place = f"{self.path.relative_to(ROOT).as_posix()}:{start.line + 1}:{start.column + (column if plain else 1)}"
        return f"{place}: {field + ': ' if field else ''}{message}"


@dataclass(frozen=True)
class Vocabulary:
    """data/names.toml: the engines, and for each subject the names that its rules may read, with their units."""

    engines: frozenset[str]
    subjects: Mapping[str, Mapping[str, str]]
    units: Mapping[str, Mapping[str, str]]

    def names(self, subject: str) -> dict[str, str]:
        return load.assemble(self.subjects.get(subject, {}), self.units)


def read_toml(name: str) -> dict[str, Any]:
    data: dict[str, Any] = tomllib.loads((ROOT / "data" / name).read_text(encoding="utf-8"))
    return data


def read_vocabulary() -> Vocabulary:
    data = read_toml("names.toml")
    engines, subjects = data.pop("engines"), data.pop("subjects")
    groups = {**data, "coefficient": read_toml("coefficients.toml")}
    units = {group: {name: entry["unit"] for name, entry in names.items()} for group, names in groups.items()}
    return Vocabulary(frozenset(engines), subjects, units)


def read_rule_file(path: Path) -> RuleFile:
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise Invalid(f"{path.relative_to(ROOT)}: {error}") from error
    if root is None:
        raise Invalid(f"{path.relative_to(ROOT)}: empty")
    nodes: dict[Place, yaml.Node] = {}
    return RuleFile(path, _plain(root, (), nodes), nodes)


def _plain(node: yaml.Node, at: Place, nodes: dict[Place, yaml.Node]) -> Any:
    nodes[at] = node
    if isinstance(node, yaml.MappingNode):
        return {key.value: _plain(value, (*at, key.value), nodes) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, index), nodes) for index, item in enumerate(node.value)]
    return node.value if "files" in at or at[-1:] == ("config",) else node.value.strip()


def mistakes(rule: RuleFile, vocabulary: Vocabulary) -> Iterator[str]:
    """What is wrong with a rule file, in its order of gravity: a file of the wrong shape is not looked at further."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    schema = json.loads((ROOT / "data/schema/rule.schema.json").read_text(encoding="utf-8"))
    shape = [
        rule.complaint(tuple(error.absolute_path), error.message.replace("\n", " ")[:300])
        for error in sorted(Draft202012Validator(schema).iter_errors(rule.data), key=lambda error: list(error.path))
    ]
    yield from shape
    if shape:
        return
    if rule.data["name"] != rule.path.stem:
        yield rule.complaint(("name",), f"the file is called {rule.path.stem}.yaml")
    yield from _unnameable(rule, vocabulary)
    yield from _unreadable(rule, vocabulary)


def _unnameable(rule: RuleFile, vocabulary: Vocabulary) -> Iterator[str]:
    """Marks, suggestions, edits and engines that name nothing."""
    names = vocabulary.names(rule.data["subject"])
    roots = {name.rpartition(".")[0] for name in names} | {"program", rule.data["subject"]}
    suggest = rule.data.get("suggest", {})
    named: list[tuple[Place, set[str]]] = [(("mark",), set(names) | roots), (("edit", "to"), set(names))]
    named += [(("suggest", how), set(names)) for how in suggest if how != "text"]
    for at, allowed in named:
        value = _get(rule.data, at)
        if value is not None and value not in allowed:
            yield rule.complaint(at, f"unknown name `{value}`")
    for at, text in _scopes(rule.data):
        try:
            engine = Scope.parse(text).engine
        except ValueError as error:
            yield rule.complaint(at, str(error))
            continue
        if engine not in vocabulary.engines:
            yield rule.complaint(at, f"unknown engine `{engine}`")


def _unreadable(rule: RuleFile, vocabulary: Vocabulary) -> Iterator[str]:
    """Expressions and templates that do not compile."""
    units = vocabulary.names(rule.data["subject"])
    texts: list[tuple[Place, str, Callable[[str], object]]] = []

    def condition(text: str) -> object:
        return conditions.compile(text, frozenset(units))

    def template(text: str) -> object:
        return messages.compile(text, units)

    texts += [((field,), rule.data[field], condition) for field in ("when", "holds") if field in rule.data]
    for field in ("severity", "message"):
        for index, case in enumerate(cases(rule.data, field)):
            at: Place = (field, index) if isinstance(rule.data[field], list) else (field,)
            if "if" in case:
                texts.append((at, case["if"], condition))
            if field == "message":
                texts.append((at, case["what"], template))
    if "text" in rule.data.get("suggest", {}):
        texts.append((("suggest", "text"), rule.data["suggest"]["text"], template))
    for at, text, compile_ in texts:
        try:
            compile_(text)
        except ConditionError as error:
            yield rule.complaint(at, f"{error.message} (in `{error.expression}`)", error.column)
    for field in ("severity", "message"):
        if {"if", "for"} & set(cases(rule.data, field)[-1]):
            yield rule.complaint((field,), "the last case must hold for all")


def cases(data: Mapping[str, Any], field: str) -> list[dict[str, str]]:
    """The cases of a severity or message as rows of `what`, `for`, `if`."""
    written = data[field] if isinstance(data[field], list) else [data[field]]
    if field == "message":
        return [{"what": row} if isinstance(row, str) else _renamed(row) for row in written]
    rows = []
    for text in written:
        head, _, condition = text.partition(" if ")
        what, _, scopes = head.partition(" for ")
        rows.append({key: value for key, value in (("what", what), ("for", scopes), ("if", condition)) if value})
    return rows


def _renamed(row: Mapping[str, str]) -> dict[str, str]:
    return {"what": row["say"], **{key: row[key] for key in ("for", "if") if key in row}}


def _scopes(data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from ((("engines", index), text) for index, text in enumerate(data.get("engines", ())))
    for field in ("severity", "message"):
        for index, case in enumerate(cases(data, field)):
            yield from (((field, index), text) for text in case.get("for", "").split(" or ") if text)


def _get(data: Any, at: Place) -> Any:
    for step in at:
        data = data.get(step) if isinstance(data, dict) else None
    return data


def build_rules() -> dict[str, Any]:
    vocabulary = read_vocabulary()
    files = [read_rule_file(path) for path in sorted((ROOT / "rules").glob("*/*.yaml"))]
    wrong = [mistake for file in files for mistake in mistakes(file, vocabulary)]
    names = [file.path.stem for file in files]
    wrong += [f"rules/: two rules are called {name}" for name in sorted({n for n in names if names.count(n) > 1})]
    if wrong:
        raise Invalid("\n".join(wrong))
    rules = {file.path.stem: _compiled(file) for file in files}
    pages = {file.path.stem: {key: file.data[key] for key in PAGE if key in file.data} for file in files}
    return {
        "rules.json": {"subjects": vocabulary.subjects, "units": vocabulary.units, "rules": rules},
        "rule_pages.json": pages,
    }


def _compiled(file: RuleFile) -> dict[str, Any]:
    data = {**file.data, "theme": file.path.parent.name}
    row = {key: data[key] for key in COMPILED if key in data}
    row |= {field: cases(data, field) for field in ("severity", "message")}
    if "suggest" in data:
        row["suggest"] = list(data["suggest"].items())
    return row


def build_coefficients() -> dict[str, Any]:
    return {"coefficients.json": read_toml("coefficients.toml")}


BUILDERS: tuple[Callable[[], dict[str, Any]], ...] = (build_rules, build_coefficients)


def build() -> dict[str, str]:
    """The text of every compiled file by its name in kvlint/_data/; raises `Invalid`."""
    contents = {name: content for builder in BUILDERS for name, content in builder().items()}
    return {name: json.dumps(content, indent=1, ensure_ascii=False) + "\n" for name, content in contents.items()}


def stale(texts: Mapping[str, str]) -> list[str]:
    return [name for name, text in texts.items() if not _is(load.DATA / name, text)]


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where a compiled file is stale")
    check = parser.parse_args().check
    try:
        texts = build()
    except Invalid as error:
        print(error, file=sys.stderr)
        return 1
    changed = stale(texts)
    if check:
        print("\n".join(f"kvlint/_data/{name} is stale: run scripts/build_data.py" for name in changed))
        return 1 if changed else 0
    for name in changed:
        (load.DATA / name).write_text(texts[name], encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
