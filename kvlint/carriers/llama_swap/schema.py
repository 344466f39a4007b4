"""What llama-swap's loader refuses: values of another type, names given twice, a port that no command takes.

Facts: mostlygeek/llama-swap@0bdb3720:internal/config/load.go, macros.go, model_config.go.  A file in which one of these stands is
not loaded, and none of its models is served.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.admission import system
from kvlint.patterns import regex
from kvlint.source import Span
from kvlint.subjects import Problem
from kvlint.tree import List, Map, Node, Scalar

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
    for entry in root.map("macros") or ():
        if entry.key.value in about["reserved_macros"]:
            yield _refused(entry.key.span, f"`{entry.key.value}` is a macro of its own and cannot be defined")


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
