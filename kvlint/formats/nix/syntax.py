"""The syntax of a Nix file: what tree-sitter read, as small expressions that know their place.

Dotted keys are folded into nested sets here, as Nix's own parser does.  What could not be read is `Bad`, with a problem.
"""

from __future__ import annotations

from typing import Union

from kvlint.records import dataclass, field
from kvlint.source import Source, Span, Text


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the file that Nix would refuse, and where."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Comment:
    """`text` is the comment as it stands, marks included."""

    span: Span
    text: str


@dataclass(eq=False, slots=True)
class Expr:
    """An expression between two offsets of `source`."""

    source: Source
    start: int
    end: int

    @property
    def span(self) -> Span:
        return self.source.span(self.start, self.end)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


@dataclass(eq=False, slots=True)
class Bad(Expr):
    reason: str


@dataclass(eq=False, slots=True)
class Number(Expr):
    value: int | float


@dataclass(eq=False, slots=True)
class String(Expr):
    """`parts`: text as it stands after escapes and indentation, and interpolations between."""

    parts: tuple[Part, ...]


@dataclass(eq=False, slots=True)
class PathLiteral(Expr):
    """`search` marks `<nixpkgs>`; `parts` as in a string."""

    parts: tuple[Part, ...]
    search: bool = False


@dataclass(eq=False, slots=True)
class Interpolation(Expr):
    body: Expr


Part = Union[Text, Interpolation]


@dataclass(eq=False, slots=True)
class Variable(Expr):
    name: str


@dataclass(eq=False, slots=True)
class Key:
    """One step of an attribute path: a name that is known, or an expression."""

    span: Span
    name: Text | None
    dynamic: Expr | None = None


@dataclass(eq=False, slots=True)
class Select(Expr):
    base: Expr
    path: tuple[Key, ...]
    default: Expr | None


@dataclass(eq=False, slots=True)
class HasAttr(Expr):
    base: Expr
    path: tuple[Key, ...]


@dataclass(eq=False, slots=True)
class Apply(Expr):
    function: Expr
    argument: Expr


@dataclass(eq=False, slots=True)
class Formal:
    name: str
    span: Span
    default: Expr | None


@dataclass(eq=False, slots=True)
class Lambda(Expr):
    """`formals` is None for `x: …`; `name` is the argument's own name, or that of `@`."""

    name: str | None
    formals: tuple[Formal, ...] | None
    ellipsis: bool
    body: Expr


@dataclass(eq=False, slots=True)
class Definition:
    """`key = value`, `inherit key` (`inherited`, from the scope around) or `inherit (origin) key`."""

    key: Key
    value: Expr
    inherited: bool = False
    origin: Expr | None = None


@dataclass(eq=False, slots=True)
class AttrSet(Expr):
    """`open`: bindings that could not be read may stand here too."""

    recursive: bool
    static: dict[str, Definition] = field(default_factory=dict)
    dynamic: list[Definition] = field(default_factory=list)
    open: list[Bad] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Let(Expr):
    bindings: AttrSet
    body: Expr


@dataclass(eq=False, slots=True)
class With(Expr):
    environment: Expr
    body: Expr


@dataclass(eq=False, slots=True)
class If(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(eq=False, slots=True)
class Assert(Expr):
    condition: Expr
    body: Expr


@dataclass(eq=False, slots=True)
class ListLiteral(Expr):
    items: tuple[Expr, ...]


@dataclass(eq=False, slots=True)
class Binary(Expr):
    operator: str
    left: Expr
    right: Expr


@dataclass(eq=False, slots=True)
class Unary(Expr):
    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class File:
    """One file's syntax.  `root` is None where the file holds no expression."""

    source: Source
    root: Expr | None
    comments: tuple[Comment, ...]
    problems: tuple[Problem, ...]
