"""Compile rules/ and data/ into kvlint/_data/: `python scripts/build_data.py [--check]`.

    rules.json          what `check` needs of every rule, and the names that conditions may read
    rule_pages.json     prose and examples, for `explain` and the documentation
    coefficients.json   data/coefficients.toml
    admission.json      data/admission.toml

Rule files are read with every scalar a string, validated by data/schema/rule.schema.json, and their expressions and messages
are compiled once, so that a mistake is found here, with its place.  `--check` writes nothing and fails where a file is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from kvlint import compiled  # noqa: E402
from kvlint.ruleset import conditions, load, messages  # noqa: E402
from kvlint.ruleset.conditions import ConditionError  # noqa: E402
from kvlint.ruleset.scopes import Scope  # noqa: E402

SCHEMA = ROOT / "data/schema/rule.schema.json"
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
    try:
        return RuleFile(path, _plain(root, (), nodes), nodes)
    except Invalid as error:
        raise Invalid(f"{path.relative_to(ROOT)}: {error}") from error


def _plain(node: yaml.Node, at: Place, nodes: dict[Place, yaml.Node]) -> Any:
    nodes[at] = node
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise Invalid(f"line {node.start_mark.line + 1}: a key is given twice")
        return {key.value: _plain(value, (*at, key.value), nodes) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, index), nodes) for index, item in enumerate(node.value)]
    return node.value if "files" in at or at[-1:] == ("config",) else node.value.strip()


def mistakes(rule: RuleFile, vocabulary: Vocabulary) -> Iterator[str]:
    """What is wrong with a rule file, in its order of gravity: a file of the wrong shape is not looked at further."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = [best_match([error]) for error in Draft202012Validator(schema).iter_errors(rule.data)]
    shape = [rule.complaint(tuple(error.absolute_path), error.message.replace("\n", " ")[:300]) for error in errors]
    yield from shape
    if shape:
        return
    if rule.data["name"] != rule.path.stem:
        yield rule.complaint(("name",), f"the file is called {rule.path.stem}.yaml")
    if "kind" in rule.data and rule.data["subject"] != "problem":
        yield rule.complaint(("kind",), "only problems are of a kind")
    for example in ("good", "silent"):
        if "finds" in rule.data["examples"][example]:
            yield rule.complaint(("examples", example, "finds"), "nothing is found here")
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
    names = frozenset(units)
    for at, offset, text in _conditions(rule.data):
        yield from _failure(rule, at, offset, partial(conditions.compile, text, names))
    for at, text in _templates(rule.data):
        yield from _failure(rule, at, 0, partial(messages.compile, text, units))
    for field in ("severity", "message"):
        if {"if", "for"} & set(cases(rule.data, field)[-1]):
            yield rule.complaint((field,), "the last case must hold for all")


def _failure(rule: RuleFile, at: Place, offset: int, compile_: Callable[[], object]) -> Iterator[str]:
    try:
        compile_()
    except ConditionError as error:
        yield rule.complaint(at, f"{error.message} (in `{error.expression}`)", offset + error.column)


def _conditions(data: Mapping[str, Any]) -> Iterator[tuple[Place, int, str]]:
    """Each condition with its place, and where in the value at that place it begins."""
    yield from (((field,), 0, data[field]) for field in ("when", "holds") if field in data)
    for index, row in enumerate(cases(data, "severity")):
        if "if" in row:
            written = data["severity"] if isinstance(data["severity"], str) else data["severity"][index]
            yield ("severity", index), len(written) - len(row["if"]), row["if"]
    yield from (
        (("message", index, "if"), 0, row["if"]) for index, row in enumerate(cases(data, "message")) if "if" in row
    )


def _templates(data: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from ((("message", index, "say"), row["what"]) for index, row in enumerate(cases(data, "message")))
    if "text" in data.get("suggest", {}):
        yield ("suggest", "text"), data["suggest"]["text"]


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
    return {"coefficients.json": read_toml("coefficients.toml"), "admission.json": read_toml("admission.toml")}


def build_memory() -> dict[str, Any]:
    conflicts = [
        {key: row[key] for key in row if key != "source"} for row in read_toml("engines/conflicts.toml")["conflict"]
    ]
    return {"mlx-lm_memory.json": read_toml("engines/mlx-lm.memory.toml"), "conflicts.json": conflicts}


BUILDERS: tuple[Callable[[], dict[str, Any]], ...] = (build_rules, build_coefficients, build_memory)


def build() -> dict[str, str]:
    """The text of every compiled file by its name in kvlint/_data/; raises `Invalid`."""
    contents = {name: content for builder in BUILDERS for name, content in builder().items()}
    return {name: json.dumps(content, indent=1, ensure_ascii=False) + "\n" for name, content in contents.items()}


def stale(texts: Mapping[str, str]) -> list[str]:
    return [name for name, text in texts.items() if not holds(compiled.DIRECTORY / name, text)]


def holds(path: Path, text: str) -> bool:
    """Whether the file is there and its text is `text`."""
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
        (compiled.DIRECTORY / name).write_text(texts[name], encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
