"""Which variables a part of a script may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvlint.formats.shell.arithmetic import changed_names
from kvlint.formats.shell.tree import (
    Assign,
    Block,
    Calculation,
    Case,
    Chain,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Node,
    Parameter,
    Pipeline,
    Simple,
    Word,
)
from kvlint.records import dataclass
from kvlint.source import Span

_LOCAL = frozenset({"local", "declare", "typeset"})
_READERS = frozenset({"read", "mapfile", "readarray", "getopts", "unset"})


@dataclass(frozen=True, slots=True)
class Effects:
    """What a part of a script changes itself, and what it calls."""

    changes: tuple[tuple[str, bool, Span | None], ...]
    calls: frozenset[str]


def assigned(
    node: Node, functions: Mapping[str, Function], known: dict[int, Effects]
) -> dict[str, tuple[bool, Span | None]]:
    """Name to whether it is only ever added to, and a place where it is changed.  `@` stands for `shift` and `set`.

    Functions change variables for those who call them, but for their own.  `known`: the effects of functions seen before.
    """
    found: dict[str, tuple[bool, Span | None]] = {}
    effects = [_effects(node)]
    called: set[str] = set()
    while effects:
        current = effects.pop()
        for name, appends, span in current.changes:
            found[name] = (appends and found.get(name, (True, None))[0], span)
        for name in current.calls & functions.keys() - called:
            called.add(name)
            body = functions[name].body
            if id(body) not in known:
                known[id(body)] = _effects(body, frozenset({"@", *_own(body)}))
            effects.append(known[id(body)])
    return found


def _effects(body: Node, own: frozenset[str] = frozenset()) -> Effects:
    nodes = list(_inside(body))
    changes = tuple(each for node in nodes for each in _changes(node) if each[0] not in own)
    return Effects(changes, frozenset(name for node in nodes if (name := _program(node)) is not None))


def _inside(node: Node) -> Iterator[Node]:
    """A node and what it holds."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(_children(current))


def _program(node: Node) -> str | None:
    first = node.words[0] if isinstance(node, Simple) and node.words else None
    return first.plain if isinstance(first, Word) else None


def _own(body: Node) -> Iterator[str]:
    """Names that a function declares as its own."""
    for node in _inside(body):
        if isinstance(node, Simple) and _program(node) in _LOCAL:
            for word in node.words[1:]:
                name = word.name if isinstance(word, Assign) else word.plain
                if name and name.isidentifier():
                    yield name


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, Block):
        yield from (item.node for item in node.items)
    elif isinstance(node, Chain):
        yield node.first
        yield from (following for _, following in node.rest)
    elif isinstance(node, Pipeline):
        yield from node.nodes
    elif isinstance(node, If):
        for condition, body in node.arms:
            yield condition
            yield body
        if node.last is not None:
            yield node.last
    elif isinstance(node, Loop):
        if node.condition is not None:
            yield node.condition
        yield node.body
    elif isinstance(node, Case):
        yield from node.arms
    elif isinstance(node, Function) or (isinstance(node, Group) and not node.subshell):
        yield node.body


def _changes(node: Node) -> Iterator[tuple[str, bool, Span | None]]:
    if isinstance(node, Loop) and node.variable is not None:
        yield node.variable, False, None
    elif isinstance(node, Calculation):
        text = "".join(part.text.value for part in node.word.parts if isinstance(part, Literal))
        yield from ((name, False, node.word.span) for name in changed_names(text))
    elif isinstance(node, Simple):
        assigns = node.assigns if not node.words else ()
        for assign in (*assigns, *(word for word in node.words if isinstance(word, Assign))):
            yield assign.name, _appends(assign), assign.span
        name = _program(node)
        if name in ("shift", "set"):
            yield "@", False, node.span
        elif name in _READERS:
            plain = (word.plain for word in node.words[1:] if isinstance(word, Word))
            yield from ((one, False, node.span) for one in plain if one and one.isidentifier())


def _appends(assign: Assign) -> bool:
    """`X+=…` and `X="$X …"`."""
    if assign.append:
        return True
    first = assign.value.parts[0] if assign.value is not None and assign.value.parts else None
    return isinstance(first, Parameter) and first.name == assign.name and not first.operator and len(_rest(assign)) > 1


def _rest(assign: Assign) -> tuple[object, ...]:
    return assign.value.parts if assign.value is not None else ()
