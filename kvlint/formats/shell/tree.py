"""A shell script as a tree.  Places are those of the file; nothing is expanded yet."""

from __future__ import annotations

from typing import Union

from kvlint.records import dataclass
from kvlint.source import Span, Text


@dataclass(frozen=True, slots=True)
class Literal:
    """Characters that stand for themselves."""

    text: Text
    quoted: bool


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name` or `${…}`.  `operator` is "" or one of `:- - := = :? ? :+ + % %% # ## / // ^ ^^ , ,, :`, or "bad".

    `subscript`: `@`, `*` or an index.  `second`: what `/pattern/` is replaced with.
    """

    name: str
    span: Span | None
    quoted: bool
    operator: str = ""
    operand: Word | None = None
    second: Word | None = None
    subscript: str | None = None
    length: bool = False
    indirect: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)`, backticks, `<(…)`."""

    body: Block
    span: Span | None
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((…))`; `word` is the expression, itself with expansions."""

    word: Word
    span: Span | None
    quoted: bool


Part = Union[Literal, Parameter, Substitution, Arithmetic]


@dataclass(frozen=True, slots=True)
class Word:
    parts: tuple[Part, ...]
    span: Span | None

    @property
    def plain(self) -> str | None:
        """The word where it is nothing but unquoted characters: a keyword, a builtin's name."""
        found = ""
        for part in self.parts:
            if not isinstance(part, Literal) or part.quoted:
                return None
            found += part.text.value
        return found


@dataclass(frozen=True, slots=True)
class Assign:
    """`name=value`, `name+=value`, `name=(…)`, `name[index]=value`.  `words` is None for a plain value."""

    name: str
    span: Span | None
    value: Word | None
    words: tuple[Word, ...] | None = None
    append: bool = False
    subscript: str | None = None
    keyed: bool = False  # an array with `[key]=value` elements


@dataclass(slots=True)
class Here:
    """A here-document (or here-string).  `body` is read when its lines come."""

    delimiter: str
    literal: bool
    strip_tabs: bool
    body: Word | None = None


@dataclass(frozen=True, slots=True)
class Simple:
    assigns: tuple[Assign, ...]
    words: tuple[Word | Assign, ...]
    span: Span | None
    heres: tuple[Here, ...] = ()
    target: Word | None = None  # the file that standard output goes to


@dataclass(frozen=True, slots=True)
class Pipeline:
    nodes: tuple[Node, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """`first && a || b`: each further node with its operator."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Commands one after the other; `background` ones do not hold up the next."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Item:
    node: Node
    background: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """`{ … }`, or `( … )` where changes stay inside."""

    body: Block
    subshell: bool
    heres: tuple[Here, ...] = ()
    target: Word | None = None


@dataclass(frozen=True, slots=True)
class If:
    """`arms`: condition and body of each branch; `last`: the else branch."""

    arms: tuple[tuple[Block, Block], ...]
    last: Block | None


@dataclass(frozen=True, slots=True)
class Loop:
    """`while`, `until`, `for`, `select`.  `variable`: the name that `for` sets."""

    condition: Block | None
    variable: str | None
    words: tuple[Word, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class Case:
    """`whole`: a `*)` arm takes what no other takes.  `falls`: after some arm another one may run too (`;&`, `;;&`)."""

    subject: Word
    arms: tuple[Block, ...]
    whole: bool
    patterns: tuple[tuple[Word, ...], ...] = ()
    falls: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    body: Node
    span: Span | None


@dataclass(frozen=True, slots=True)
class Calculation:
    """`(( … ))`; the names it may change become unknown."""

    word: Word


Node = Union[Simple, Pipeline, Chain, Block, Group, If, Loop, Case, Function, Calculation]
