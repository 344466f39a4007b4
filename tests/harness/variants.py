"""The same configuration as other people write it: variants of a rule's examples that must be judged alike.

A variant that cannot be made of an example (a block scalar of a shell script) is left out, never approximated.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from kvlint.ruleset.load import Example, Find
from kvlint.source import Span

Files = dict[str, str]

_PATH_KEY = re.compile(r'^((?:match|at|config)\s*=\s*")', re.MULTILINE)
_PLAIN_TABLE = re.compile(r"^\[(?!\[)|\A\s*[A-Za-z_]+\s*=", re.MULTILINE)
_LABELS = re.compile(r"^metadata:\n((?:  .*\n)*?)  labels:\n", re.MULTILINE)
_BINDING = re.compile(r"\s*[\w\"'.-]+\s*=")
_TEMPLATE = "    example.com/release: {{ .Release.Name }}\n"


@dataclass(frozen=True)
class Variant:
    name: str
    files: Mapping[str, str]
    config: str | None
    finds: tuple[Find, ...]


def of(example: Example) -> Iterator[Variant]:
    """The example itself and every variant that can be made of it alone."""
    yield Variant("plain", example.files, example.config, example.finds)
    for name, change in (("block_scalar", block_scalar), ("crlf", crlf), ("templated", templated)):
        changed = {path: change(path, text) for path, text in example.files.items()}
        if name not in example.excluded and any(changed.values()):
            files = {path: changed[path] or text for path, text in example.files.items()}
            yield Variant(name, files, example.config, example.finds)


def joined(bad: Example, good: Example) -> Iterator[Variant]:
    """Both examples in one project, both ways round: as documents of one file, and as two directories."""
    if "joined" in (*bad.excluded, *good.excluded):
        return
    for first, second, order in ((bad, good, "bad, good"), (good, bad, "good, bad")):
        documents = _documents(first, second)
        if documents:
            yield Variant(f"joined ({order}) in a file", documents, bad.config, bad.finds)
        config = _configs(first.config, second.config)
        if config is not None:
            files = {
                f"{folder}/{path}": text
                for folder, each in (("a", first), ("b", second))
                for path, text in each.files.items()
            }
            yield Variant(f"joined ({order}) in directories", files, config or None, bad.finds)


def _documents(first: Example, second: Example) -> Files:
    """One file of several documents, where both examples are one file of Kubernetes manifests under one configuration."""
    paths = {*first.files, *second.files}
    if len(paths) != 1 or first.config != second.config:
        return {}
    path = paths.pop()
    texts = [each.files[path].removeprefix("---\n") for each in (first, second)]
    return {path: "---\n".join(texts)} if all(_is_manifest(path, text) for text in texts) else {}


def _configs(first: str | None, second: str | None) -> str | None:
    """Both configurations, each for its directory; None where a table that stands once would stand twice."""
    configs = [(folder, config) for folder, config in (("a", first), ("b", second)) if config]
    if len(configs) == 2 and any(_PLAIN_TABLE.search(config) for _, config in configs):
        return None
    return "\n".join(_PATH_KEY.sub(rf"\g<1>{folder}/", config) for folder, config in configs)


def _is_yaml(path: str) -> bool:
    return PurePosixPath(path).suffix in (".yaml", ".yml")


def _is_manifest(path: str, text: str) -> bool:
    return _is_yaml(path) and re.search(r"^apiVersion:", text, re.MULTILINE) is not None


def crlf(path: str, text: str) -> str | None:
    """Line ends as on Windows."""
    return text.replace("\n", "\r\n")


def templated(path: str, text: str) -> str | None:
    """A label that Helm fills in, in a manifest that is otherwise the same."""
    if not _is_manifest(path, text):
        return None
    if _LABELS.search(text):
        return _LABELS.sub(lambda match: match[0] + _TEMPLATE, text, count=1)
    changed = re.sub(r"^metadata:\n", f"metadata:\n  labels:\n{_TEMPLATE}", text, count=1, flags=re.MULTILINE)
    return changed if changed != text else None


class _Block(str):
    """A string that is written as a block scalar."""

    style = "|"


class _Folded(_Block):
    style = ">"


class _Dumper(yaml.SafeDumper):
    pass


def _represent(dumper: yaml.SafeDumper, text: _Block) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=text.style)


_Dumper.add_representer(_Block, _represent)
_Dumper.add_representer(_Folded, _represent)


def block_scalar(path: str, text: str) -> str | None:
    """A container's command as a shell script in a block scalar; a compose service's command as one folded string."""
    if not _is_yaml(path) or "# kvlint:" in text:
        return None
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return None
    changed = [_blocked(document) for document in documents]
    if not any(changed):
        return None
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)


def _blocked(node: Any) -> bool:
    """Rewrite every command below `node` in place; whether there was one."""
    if not isinstance(node, dict | list):
        return False
    inner = [_blocked(child) for child in (node.values() if isinstance(node, dict) else node)]
    below = any(inner)
    if isinstance(node, list):
        return below
    command, args = node.get("command"), node.get("args", [])
    if not _words(command) or not _words(args) or command[0].endswith("sh"):
        return below
    words = [shlex.quote(word) for word in (*command, *args)]
    if "name" in node and "image" in node:
        node |= {"command": ["/bin/sh", "-c"], "args": [_Block("exec " + " \\\n  ".join(words) + "\n")]}
    elif "image" in node and "args" not in node:
        node["command"] = _Folded("\n\n".join(words))
    else:
        return below
    return True


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(word, str) and "$" not in word and "\n" not in word for word in value
    )


def suppressed(files: Mapping[str, str], rule: str, spans: Sequence[Span]) -> Files | None:
    """The files with a comment that hides `rule` above each place; None where a format has no comments."""
    places = {(span.path, _owner_line(files[span.path], span)) for span in spans if span.path in files}
    changed = {path: text.splitlines(keepends=True) for path, text in files.items()}
    for path, line in sorted(places, reverse=True):
        comment = _comment(path, f"kvlint: ignore[{rule}] an example")
        if comment is None:
            return None
        lines = changed[path]
        indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
        lines.insert(line - 1, f"{indent}{comment}\n")
    return {path: "".join(lines) for path, lines in changed.items()} if places else None


def _comment(path: str, text: str) -> str | None:
    suffix = PurePosixPath(path).suffix
    if suffix == ".json":
        return None
    return f"<!-- {text} -->" if suffix in (".plist", ".xml") else f"# {text}"


def _owner_line(text: str, span: Span) -> int:
    """The line (1-based) above which the contract wants the comment: of the YAML key or list item that owns the scalar, of the
    binding in Nix and TOML, else of the first line of a continued command.
    """
    if _is_yaml(span.path):
        return _yaml_owner(text, span) or span.line
    lines = text.splitlines()
    line = span.line
    if PurePosixPath(span.path).suffix in (".nix", ".toml"):
        while line > 1 and not _BINDING.match(lines[line - 1]):
            line -= 1
        return line
    while line > 1 and lines[line - 2].endswith("\\"):
        line -= 1
    return line


def _yaml_owner(text: str, span: Span) -> int | None:
    try:
        roots = [root for root in yaml.compose_all(text, Loader=yaml.SafeLoader) if root is not None]
    except yaml.YAMLError:
        return None
    owner: int | None = None
    stack: list[tuple[yaml.Node, int]] = [(root, root.start_mark.line) for root in roots]
    while stack:
        node, line = stack.pop()
        if not node.start_mark.index <= span.start < max(node.end_mark.index, node.start_mark.index + 1):
            continue
        if isinstance(node, yaml.ScalarNode):
            owner = line + 1
        elif isinstance(node, yaml.MappingNode):
            stack += [(part, key.start_mark.line) for key, value in node.value for part in (key, value)]
        elif isinstance(node, yaml.SequenceNode):
            stack += [(item, item.start_mark.line) for item in node.value]
    return owner
