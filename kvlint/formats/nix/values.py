"""What a Nix expression evaluates to.  What cannot be known is a `tree.Opaque` or an `Outside`; both are values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

from kvlint.formats.nix.syntax import Expr, Lambda
from kvlint.records import dataclass
from kvlint.source import HOLE, Hole, Piece, Span, Text
from kvlint.tree import Opaque

MAX_INT = 2**63 - 1
_LEAVES = 8


class Stuck(Exception):
    """An expression has no value that is known; `unknown` says why."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__()
        self.unknown = unknown


class Exhausted(Stuck):
    """The budget of steps, depth or size is spent.  Nothing on the way remembers this as its value."""


@dataclass(frozen=True, slots=True)
class Int:
    value: int
    text: Text


@dataclass(frozen=True, slots=True)
class Float:
    value: float
    text: Text


@dataclass(frozen=True, slots=True)
class Bool:
    value: bool
    text: Text


@dataclass(frozen=True, slots=True)
class Null:
    text: Text


@dataclass(frozen=True, slots=True)
class Str:
    text: Text


@dataclass(frozen=True, slots=True)
class Path:
    """`text` is the absolute path, a hole for the directory that is not known; `file` the path from the project's root."""

    text: Text
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Splice:
    """Any number of list items that are not known; `items` are those that may stand here."""

    unknown: Unknown
    items: tuple[Thunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Thunk | Splice, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """One attribute.  `maybe`: the condition, not known, under which it is there at all."""

    key: Text
    key_span: Span
    value: Thunk
    maybe: Unknown | None = None


@dataclass(frozen=True, slots=True)
class Attrs:
    """`open`: what may add attributes that are not known."""

    slots: dict[str, Slot]
    open: tuple[Unknown, ...] = ()


@dataclass(frozen=True, slots=True)
class Closure:
    function: Lambda
    scope: Scope


Run = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Primitive:
    """A function of Nix or of nixpkgs' library, with the arguments it was given so far."""

    name: str
    arity: int
    run: Run
    arguments: tuple[Thunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Library:
    """nixpkgs' `lib`, or a part of it (`prefix` is `cli.`)."""

    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Outside:
    """Something from outside of the files: `pkgs`, `config`, a flake's input, and what is taken from it or made by it.

    `arguments`: what it was called with.  `module`: for `config`, the module itself, whose own definitions may answer.
    """

    span: Span
    path: tuple[str, ...]
    arguments: tuple[Thunk, ...] = ()
    module: Thunk | None = None

    @property
    def name(self) -> str:
        return ".".join(self.path) or "an argument of the module"

    @property
    def reason(self) -> str:
        made = "what " + self.name + " makes" if self.arguments else self.name
        return f"{made} comes from outside of the file"

    @property
    def supply(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class Script:
    """A file that a configuration writes to the store: `pkgs.writeShellScript "name" ''…''` and its like."""

    function: str
    name: Text | None
    text: Text
    span: Span
    program: bool

    @property
    def reason(self) -> str:
        return f"the store path of what {self.function} writes"


@dataclass(frozen=True, slots=True)
class Property:
    """`mkIf`, `mkMerge`, `mkOverride`, `mkOrder` of the module system around `content`."""

    kind: str
    span: Span
    content: Thunk
    condition: Thunk | None = None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """An expression that Nix refuses to evaluate: whatever needs it fails too."""

    span: Span
    reason: str
    supply: str = ""


Unknown = Union[Opaque, Outside, Failed]
Value = Union[
    Int,
    Float,
    Bool,
    Null,
    Str,
    Path,
    Items,
    Attrs,
    Closure,
    Primitive,
    Library,
    Outside,
    Script,
    Property,
    Opaque,
    Failed,
]
Scalar = (Int, Float, Bool, Null, Str, Path)


class Thunk:
    """An expression that is evaluated when it is needed, once.  `span` is where it is written."""

    __slots__ = ("_span", "busy", "expr", "run", "scope", "value")

    def __init__(
        self,
        expr: Expr | None = None,
        scope: Scope | None = None,
        value: Value | None = None,
        span: Span | None = None,
        run: Callable[[], Value] | None = None,
    ) -> None:
        self.expr = expr
        self.scope = scope
        self.value = value
        self.run = run
        self.busy = False
        self._span = span

    @property
    def span(self) -> Span:
        if self._span is None:
            assert self.expr is not None
            self._span = self.expr.span
        return self._span


class Scope:
    """Names in force: those bound by let, rec and functions, and the sets of `with`."""

    __slots__ = ("environment", "names", "parent")

    def __init__(self, names: dict[str, Thunk], parent: Scope | None, environment: Thunk | None = None) -> None:
        self.names = names
        self.parent = parent
        self.environment = environment


def failed(span: Span, reason: str) -> Stuck:
    """What to raise where Nix fails."""
    return Stuck(Failed(span, reason))


def opaque(unknown: Unknown) -> Opaque:
    return unknown if isinstance(unknown, Opaque) else Opaque(unknown.span, unknown.reason, unknown.supply)


def done(value: Value, span: Span) -> Thunk:
    return Thunk(value=value, span=span)


def kind_of(value: Value) -> str:
    """What Nix calls the type of a value."""
    return _KINDS.get(type(value), "unknown")


_KINDS = {
    Int: "int",
    Float: "float",
    Bool: "bool",
    Null: "null",
    Str: "string",
    Path: "path",
    Items: "list",
    Attrs: "set",
    Library: "set",
    Script: "set",
    Closure: "lambda",
    Primitive: "lambda",
}


def hole(span: Span, why: Unknown | Script, *, splice: bool, via: tuple[Span, ...] = ()) -> Text:
    """A text of which nothing is known.  `splice`: it may be several words, or none."""
    supply = "" if isinstance(why, Script) else why.supply
    piece = Piece(0, 1, span, literal=False, via=via)
    return Text(HOLE, (piece,), (Hole(0, span, why.reason, supply, splice),), span)


def computed(value: str, span: Span, *operands: Text) -> Text:
    """The text of a value worked out at `span`; `via` are the written places it rests on, as far as they stand elsewhere."""
    leaves: dict[Span, None] = {}
    for operand in operands:
        for piece in operand.pieces:
            for place in (piece.span, *piece.via):
                if not span.covers(place):
                    leaves[place] = None
        if len(leaves) > _LEAVES:
            break
    if not value:
        return Text("", (), (), span)
    return Text(value, (Piece(0, len(value), span, literal=False, via=tuple(leaves)[:_LEAVES]),), (), span)


def respelt(text: Text, value: str, span: Span) -> Text:
    """A scalar's text spelt another way (`0.9` as `0.900000`): the places stay."""
    if text.value == value:
        return text
    return computed(value, text.span if text.pieces else span, text)


def map_chars(text: Text, change: Callable[[str], str]) -> Text:
    """A text changed character by character, lengths kept."""
    value = change(text.value)
    pieces = []
    for p in text.pieces:
        same = value[p.at : p.at + p.length] == text.value[p.at : p.at + p.length]
        pieces.append(p if same else Piece(p.at, p.length, p.span, False, p.via))
    return Text(value, tuple(pieces), text.holes, text.home)


def one_word(text: Text) -> Text:
    """A text that is quoted: what is unknown in it cannot be several words."""
    if not text.holes:
        return text
    holes = tuple(Hole(gap.at, gap.span, gap.reason, gap.supply) for gap in text.holes)
    return Text(text.value, text.pieces, holes, text.home)


def make_set(values: dict[str, Thunk], span: Span) -> Attrs:
    return Attrs({name: Slot(Text.at(name, span), span, thunk) for name, thunk in values.items()})
