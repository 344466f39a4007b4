"""What llama-swap's loader refuses: values of another type, names given twice, a port that no command takes.

Facts: mostlygeek/llama-swap@0bdb3720:internal/config/load.go, macros.go, model_config.go.  A file in which one of these stands is
not loaded, and none of its models is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvlint.admission import system
from kvlint.patterns import regex
from kvlint.source import Span
from kvlint.subjects import Problem
from kvlint.tree import Entry, List, Map, Node, Scalar

_MACRO_NAME = regex(r"[A-Za-z0-9_-]+")
_NUMBER = regex(r"[-+.\d][\d_.eExXoObBa-fA-F+-]*")


def refusals(root: Map) -> Iterator[Problem]:
    """Everything of a file's shape that its loader objects to; what macros or templates fill in is left alone."""
    about = system("llama-swap")
    yield from _typed(root, about["top_types"])
    for entry in root.map("models") or ():
        if isinstance(entry.value, Map):
            yield from _typed(entry.value, about["model_types"])
    yield from _aliases(root)
    yield from _groups(root)
    yield from _values(root)
    sections = [root.map("macros")]
    sections += [entry.value.map("macros") for entry in root.map("models") or () if isinstance(entry.value, Map)]
    for section in sections:
        for entry in section or ():
            yield from _macro(entry, about)


def _macro(entry: Entry, about: Mapping[str, Any]) -> Iterator[Problem]:
    name = entry.key.value
    if name in about["reserved_macros"]:
        yield _refused(entry.key.span, f"`{name}` is a macro of its own and cannot be defined")
    elif entry.key.text.known and (len(name) >= about["macro_length"] or not _MACRO_NAME.fullmatch(name)):
        yield _refused(entry.key.span, f"`{name}` is no name of a macro")
    elif isinstance(entry.value, (List, Map)):
        yield _refused(entry.key.span, f"the macro `{name}` is {_type(entry.value)}, and must be one value")


def _values(root: Map) -> Iterator[Problem]:
    """Values that are of the right type and refused all the same."""
    for key, least in system("llama-swap")["least"].items():
        node = root.get(key)
        if isinstance(node, Scalar) and node.tag == "int" and node.text.known and _below(node.value, least):
            yield _refused(node.span, f"`{key}` must be at least {least}")
    output = root.scalar("logToStdout")
    allowed = system("llama-swap")["log_outputs"]
    if output is not None and output.text.known and "${" not in output.value and output.value not in ("", *allowed):
        yield _refused(output.span, f"`logToStdout` is one of {', '.join(allowed)}")
    for each in root.list("apiKeys") or ():
        if isinstance(each, Scalar) and each.text.known and (not each.value or " " in each.value):
            yield _refused(each.span, "a key of `apiKeys` is empty, or has a space in it")


def _below(text: str, least: int) -> bool:
    try:
        return int(text.replace("_", ""), 0) < least
    except ValueError:
        return False


def _refused(span: Span, why: str, related: tuple[tuple[str, Span, str], ...] = ()) -> Problem:
    return Problem("wrong-schema", span, {"system": "llama-swap", "why": why}, related)


def _typed(node: Map, types: dict[str, str]) -> Iterator[Problem]:
    for entry in node:
        wanted = types.get(entry.key.value)
        found = _type(entry.value) if wanted is not None else None
        if wanted is not None and found is not None and found != wanted:
            value = entry.value.span if isinstance(entry.value, Scalar) else entry.key.span
            yield _refused(value, f"`{entry.key.value}` takes {wanted}, and {found} stands there")


def _type(node: Node) -> str | None:
    """A value's type in words; None where it is null, or filled in elsewhere."""
    if isinstance(node, Map):
        return "a mapping"
    if isinstance(node, List):
        return None if node.open else "a list"
    if not isinstance(node, Scalar) or not node.text.known or "${" in node.value or node.tag == "null":
        return None
    if node.tag == "str" and not node.quoted and _NUMBER.fullmatch(node.value):
        return None  # Go's reader takes more spellings for numbers
    return "a whole number" if node.tag == "int" else "a text" if node.tag == "str" else None


def _aliases(root: Map) -> Iterator[Problem]:
    seen: dict[str, Scalar] = {}
    for entry in root.map("models") or ():
        listed = entry.value.list("aliases") if isinstance(entry.value, Map) else None
        for alias in listed or ():
            if not isinstance(alias, Scalar) or not alias.text.known or "${" in alias.value:
                continue
            first = seen.setdefault(alias.value, alias)
            if first is not alias:
                related = (("counterpart", first.span, "the same alias"),)
                yield _refused(alias.span, f"the alias `{alias.value}` is given twice", related)


def _groups(root: Map) -> Iterator[Problem]:
    """A model in two groups; groups in both of the places that hold them."""
    old, new = root.entry("groups"), root.map("routing", "router", "settings", "groups")
    matrix = root.entry("matrix")
    if matrix is not None and isinstance(matrix.value, Map):
        if old is not None and isinstance(old.value, Map):
            yield _refused(matrix.key.span, "`groups` and `matrix` cannot both be used")
        elif root.map("routing", "router", "settings") is not None:
            yield _refused(matrix.key.span, "`matrix` and `routing.router` cannot both be used")
    if old is not None and isinstance(old.value, Map) and new is not None:
        yield _refused(old.key.span, "`groups` and `routing.router` cannot both be used")
    seen: dict[str, Scalar] = {}
    for entry in (old.value if old is not None and isinstance(old.value, Map) else new) or ():
        members = entry.value.list("members") if isinstance(entry.value, Map) else None
        for member in members or ():
            if not isinstance(member, Scalar) or not member.text.known or "${" in member.value:
                continue
            first = seen.setdefault(member.value, member)
            if first is not member:
                related = (("counterpart", first.span, "its first group"),)
                yield _refused(member.span, f"`{member.value}` stands in two groups, or twice in one", related)


def without_port(node: Map, uses_port: bool, fallback: Span) -> Problem | None:
    """A model whose `proxy` needs a port that its command does not take; the default of `proxy` needs one too."""
    proxy = node.entry("proxy")
    if uses_port or any(
        isinstance(each, Scalar) and not each.text.known for each in (node.get("cmd"), node.get("proxy"))
    ):
        return None
    if proxy is None:
        return _refused(fallback, "its `proxy` is left at http://localhost:${PORT}, and `cmd` takes no ${PORT}")
    if isinstance(proxy.value, Scalar) and "${PORT}" in proxy.value.value:
        return _refused(proxy.value.span, "`proxy` uses ${PORT}, and `cmd` does not")
    return None
