"""Expansions of the shell on what is known: parameters, defaults, arithmetic, substitutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kvlint.formats.shell import arithmetic, patterns
from kvlint.formats.shell.fields import BLANKS, Fields, between
from kvlint.formats.shell.state import State, Unset
from kvlint.formats.shell.text import made, reached, spliced, unknown
from kvlint.formats.shell.tree import Arithmetic, Literal, Parameter, Part, Substitution, Word
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Span, Text

# Longest value that is followed, and how much all expansions of one script may make: `A=$B$B` doubles with every line.
LONGEST_VALUE = 1 << 15
MOST_PIECES = 1 << 11


@dataclass(frozen=True, slots=True)
class Assumption:
    """The default of `${name:-…}` was taken because nothing in view sets `name`.

    `use`: the whole expansion; `default`: where the default is written.
    """

    name: str
    use: Span
    default: Span


@dataclass(slots=True)
class Ledger:
    """What all expansions of a script share: the characters they may still make, the defaults they took."""

    budget: int
    assumed: list[Assumption] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Found:
    """What a parameter holds.  `sure`: set or unset, and not left to an environment that is not in view.

    `each`: it expands to separate words (`@`).
    """

    items: tuple[Text, ...]
    set: bool
    sure: bool = True
    each: bool = False

    @property
    def empty(self) -> bool:
        """Certainly without characters."""
        return not any(item.value for item in self.items)

    @property
    def full(self) -> bool:
        """Certainly with characters."""
        return any(item.value.strip(HOLE) for item in self.items)


class Expander:
    def __init__(self, state: State, substitute: Callable[[Substitution], Text], ledger: Ledger) -> None:
        self.state = state
        self._substitute = substitute
        self._ledger = ledger

    def words(self, word: Word) -> list[Text]:
        """The words that one word of the script becomes: often one, possibly none."""
        fields = Fields(self._separators(), True)
        self._parts(word.parts, fields, operand=False)
        return [self._bounded(text, word.span) for text in fields.finish()]

    def text(self, word: Word) -> Text:
        """The word where nothing is split: a value that is assigned, a here-document."""
        fields = Fields(BLANKS, False)
        self._parts(word.parts, fields, operand=False)
        return self._bounded(fields.single(), word.span)

    def _bounded(self, text: Text, span: Span | None) -> Text:
        self._ledger.budget -= len(text.value) + len(text.pieces)
        if self._ledger.budget < 0 or len(text.value) > LONGEST_VALUE or len(text.pieces) > MOST_PIECES:
            return unknown(span, "too long to follow")
        return text if text.pieces or text.home is not None else Text(text.value, (), (), span)

    def _separators(self) -> str:
        found = self.state.get("IFS")
        if found is None or isinstance(found.value, Unset) or not isinstance(found.value, Text):
            return BLANKS
        return found.value.value if found.value.known else BLANKS

    def _parts(self, parts: Sequence[Part], fields: Fields, operand: bool) -> None:
        for part in parts:
            if isinstance(part, Literal):
                if operand and not part.quoted:
                    fields.add_split(part.text)
                else:
                    fields.add(part.text)
            elif isinstance(part, Parameter):
                self._parameter(part, fields)
            else:
                self._add(self._computed(part), part.quoted or isinstance(part, Arithmetic), fields)

    def _add(self, text: Text, quoted: bool, fields: Fields) -> None:
        if quoted:
            fields.add(spliced(text, False))
        else:
            fields.add_split(text)

    def _computed(self, part: Arithmetic | Substitution) -> Text:
        if isinstance(part, Substitution):
            return self._substitute(part)
        expression = self.text(part.word)
        for name in arithmetic.changed_names(expression.value):
            self.state.set(name, unknown(part.span, f"{name} is changed by arithmetic"))
        value = arithmetic.evaluate(expression.value, self.integer) if expression.known else None
        if value is None:
            supply = ", ".join(hole.supply for hole in expression.holes if hole.supply)
            return unknown(part.span, "arithmetic on what is not known", supply)
        return made(str(value), part.span)

    def integer(self, name: str) -> int | None:
        found = self.state.get(name)
        if found is None or not isinstance(found.value, Text) or not found.value.known:
            return None
        return arithmetic.constant(found.value.value)

    def _parameter(self, p: Parameter, fields: Fields) -> None:
        if p.operator == "bad" or self._ledger.budget < 0:
            self._add(unknown(p.span, "an expansion that is not followed"), p.quoted, fields)
            return
        found = self._indirect(p) if p.indirect else self._look(p)
        if p.length:
            self._add(self._length(p, found), p.quoted, fields)
        elif p.operator.lstrip(":") in ("-", "=", "+", "?"):
            self._conditional(p, found, fields)
        else:
            self._value(p, found, fields)

    def _value(self, p: Parameter, found: Found, fields: Fields) -> None:
        items = self._changed(p, found.items) if p.operator else found.items
        self._ledger.budget -= sum(len(item.pieces) + len(item.value) for item in items)
        if found.each:
            fields.add_each([reached(item, p.span) for item in items], p.quoted)
        elif items or p.quoted:
            value = between(items, " ") if items else Text("", (), (), p.span)
            self._add(reached(value, p.span), p.quoted, fields)

    def _changed(self, p: Parameter, items: tuple[Text, ...]) -> tuple[Text, ...]:
        operand = self.text(p.operand) if p.operand else Text("")
        second = self.text(p.second) if p.second else Text("")
        return tuple(self._changed_one(p, item, operand, second) for item in items)

    def _changed_one(self, p: Parameter, item: Text, operand: Text, second: Text) -> Text:
        changed = None
        if item.known and operand.known and second.known:
            changed = patterns.apply(p.operator, item, operand.value, second, p.span)
        if changed is not None:
            return changed
        supply = next((hole.supply for hole in item.holes if hole.supply), "")
        splice = any(hole.splice for hole in item.holes)
        return unknown(p.span, f"{p.name} is cut or changed in a way that is not followed", supply, splice)

    def _conditional(self, p: Parameter, found: Found, fields: Fields) -> None:
        kind, colon = p.operator[-1], p.operator[0] == ":"
        if not found.sure:
            self._uncertain(p, kind, fields)
            return
        present = found.set and not (colon and found.empty)
        if kind == "+":
            if present and colon and not found.full:
                self._add(
                    unknown(p.span, f"whether {p.name} is empty is not known", f"the value of {p.name}"),
                    p.quoted,
                    fields,
                )
            elif present:
                self._operand(p, fields)
            elif p.quoted:
                fields.add(Text("", (), (), p.span))
        elif present:
            self._value(Parameter(p.name, p.span, p.quoted), found, fields)
        elif kind == "?":
            self._value(Parameter(p.name, p.span, p.quoted), self._absent(p), fields)
        else:
            words = self._operand(p, fields)
            if kind == "=" and p.name.isidentifier():
                self.state.set(p.name, between(words, " "))

    def _uncertain(self, p: Parameter, kind: str, fields: Fields) -> None:
        """A default where nothing in view sets the name: it is what runs unless somebody sets it."""
        if kind == "+" and not p.quoted and self._optional(p, fields):
            return
        words = self._operand_words(p, fields) if kind in "-=" else []
        if not any(word.value for word in words):
            # `${X:-}` gives whatever `$X` gives.
            self._value(Parameter(p.name, p.span, p.quoted), self._absent(p), fields)
            return
        assert p.operand is not None
        if p.span is not None and p.operand.span is not None:
            self._ledger.assumed.append(Assumption(p.name, p.span, p.operand.span))
        if kind == "=" and p.name.isidentifier():
            self.state.set(p.name, between(words, " "))
        fields.add_each(words, True)

    def _optional(self, p: Parameter, fields: Fields) -> bool:
        """`${X:+--flag "$X"}` with X unknown: that flag or none, its value as unknown as whether it is there."""
        words = self._operand_words(p, fields)
        if len(words) != 2 or not words[0].known or not words[0].value.startswith("-") or words[1].value != HOLE:
            return False
        fields.add_each([words[0], spliced(words[1], False)], True)
        return True

    def _operand(self, p: Parameter, fields: Fields) -> list[Text]:
        words = self._operand_words(p, fields)
        fields.add_each(words, True)
        if p.quoted and not words:
            fields.add(Text("", (), (), p.span))
        return words

    def _operand_words(self, p: Parameter, fields: Fields) -> list[Text]:
        """The operand expanded, once: it may hold further operands."""
        inner = Fields(self._separators(), fields.split and not p.quoted)
        self._parts(p.operand.parts if p.operand else (), inner, operand=True)
        return inner.finish()

    def _length(self, p: Parameter, found: Found) -> Text:
        known = found.sure and all(not item.holes for item in found.items)
        if not known:
            return unknown(p.span, f"the length of {p.name} is not known")
        count = len(found.items) if found.each or p.subscript == "*" else len("".join(i.value for i in found.items))
        return made(str(count), p.span)

    def _indirect(self, p: Parameter) -> Found:
        name = self._look(p)
        value = name.items[0] if len(name.items) == 1 and p.subscript is None else Text(HOLE)
        if name.sure and value.known and value.value.isidentifier():
            return self._look(Parameter(value.value, p.span, p.quoted))
        return Found((unknown(p.span, "the name of a variable that is not known"),), True)

    def _look(self, p: Parameter) -> Found:
        if p.name in ("@", "*"):
            return self._positional(p)
        if p.name.isdigit():
            return self._numbered(p)
        if not p.name.isidentifier() or p.name == "_":
            return Found((self._special(p),), True)
        variable = self.state.get(p.name)
        if variable is None:
            return self._absent(p)
        if isinstance(variable.value, Unset):
            return Found((), False, each=p.subscript == "@")
        items = variable.value if isinstance(variable.value, tuple) else (variable.value,)
        if p.subscript in ("@", "*"):
            return Found(items, bool(items), each=p.subscript == "@" or not p.quoted)
        return self._element(p, items)

    def _element(self, p: Parameter, items: tuple[Text, ...]) -> Found:
        index = 0 if p.subscript is None else arithmetic.evaluate(p.subscript.replace("$", ""), self.integer)
        if index is not None and index < 0:
            index += len(items)
        before = items if index is None else items[: index + 1]
        certain = (p.subscript is None and len(items) == 1) or not any(_many(item) for item in before)
        if index is None or not certain:
            return Found((unknown(p.span, f"which element of {p.name} this is, is not known"),), True)
        chosen = items[index : index + 1] if index >= 0 else ()
        return Found(chosen, bool(chosen))

    def _absent(self, p: Parameter) -> Found:
        each = p.subscript == "@" or p.name == "@"
        what = f"${p.name}" if not p.name.isidentifier() else p.name
        hole = unknown(p.span, f"{what} is not set in this script", f"the value of {what}", splice=each or not p.quoted)
        return Found((hole,), False, sure=False, each=each)

    def _positional(self, p: Parameter) -> Found:
        items = self.state.positional
        each = p.name == "@" or not p.quoted
        if items is None:
            hole = unknown(
                p.span, "the arguments of the script are not known", "the arguments of the script", splice=each
            )
            return Found((hole,), False, sure=False, each=each)
        return Found(items, bool(items), each=each)

    def _numbered(self, p: Parameter) -> Found:
        number = int(p.name) if len(p.name) < 6 else 1 << 20
        if number == 0:
            name = self.state.name
            return Found((name if name is not None else unknown(p.span, "the script's own name"),), True)
        items = self.state.positional
        if items is None or any(_many(item) for item in items[:number]):
            return self._absent(p)
        chosen = items[number - 1 : number]
        return Found(chosen, bool(chosen))

    def _special(self, p: Parameter) -> Text:
        items = self.state.positional
        if p.name == "#" and items is not None and not any(_many(item) for item in items):
            return made(str(len(items)), p.span)
        return unknown(p.span, f"${p.name} is known only to the running shell")


def _many(item: Text) -> bool:
    """Whether an element may stand for several, or none."""
    return any(hole.splice for hole in item.holes)
