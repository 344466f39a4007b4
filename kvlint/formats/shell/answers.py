"""What a test answers where the script itself says so: `[ "$X" = y ]`, `[[ $1 == x* ]]`, `[ $# -eq 0 ]`, the arms of `case`.

An answer needs a variable whose value was written, by characters of a file, before the test.  What rests on the environment, on
a default that it may replace, or on a file that was read in between, has none; nor has a test without a variable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from kvlint.formats.shell.arithmetic import constant
from kvlint.formats.shell.expand import Expander, Ledger
from kvlint.formats.shell.script import assumed_in
from kvlint.formats.shell.state import State, Variable
from kvlint.formats.shell.tree import Block, Case, Literal, Node, Parameter, Pipeline, Simple, Word
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import Text

MOST_ASSUMED = 200  # defaults that one script may have taken before it is no longer asked which values rest on them
_TESTS = {"[": "]", "[[": "]]", "test": None}
_EQUAL = {"=": True, "==": True, "!=": False}
_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": operator.eq,
    "-ne": operator.ne,
    "-lt": operator.lt,
    "-le": operator.le,
    "-gt": operator.gt,
    "-ge": operator.ge,
}
_GLOB = regex(r"[*?\[\\]|[@!+]\(")
_NAMES = regex(r"[A-Za-z_]\w*|[0-9]+|#")


@dataclass(slots=True)
class Answers:
    """`doubted`: what each variable held when a file was read that may have changed it."""

    state: State
    expander: Expander
    ledger: Ledger
    doubted: dict[str, Variable] = field(default_factory=dict)

    def of(self, node: Node) -> bool | None:
        """Whether a test holds; None where that is not known, or the node is no test."""
        if isinstance(node, Block):
            only = node.items[0] if len(node.items) == 1 else None
            return self.of(only.node) if only is not None and not only.background else None
        if isinstance(node, Pipeline):
            answer = self.of(node.nodes[0]) if len(node.nodes) == 1 else None
            return answer ^ node.negated if answer is not None else None
        if not isinstance(node, Simple) or node.assigns or node.heres or node.target is not None:
            return None
        words = [word for word in node.words if isinstance(word, Word)]
        program = words[0].plain if len(words) == len(node.words) and words else None
        if program not in _TESTS:
            return None
        closer = _TESTS[program]
        if closer is not None and words[-1].plain != closer:
            return None
        words = words[1:-1] if closer is not None else words[1:]
        negated = bool(words) and words[0].plain == "!"
        answer = self._test(words[1:] if negated else words, program == "[[")
        return answer ^ negated if answer is not None else None

    def _test(self, words: Sequence[Word], double: bool) -> bool | None:
        if len(words) == 2 and words[0].plain in ("-z", "-n"):
            text = self._known(words[1], double)
            return (text == "") == (words[0].plain == "-z") if text is not None else None
        if len(words) != 3:
            return None
        left, middle, right = self._known(words[0], double), words[1].plain or "", self._literal(words[2], double)
        if left is None or right is None:
            return None
        if middle in _EQUAL:
            same = _matches(left, right[0], right[1] and double)
            return same == _EQUAL[middle] if same is not None else None
        one, other = constant(left), constant(right[0])
        return _NUMBERS[middle](one, other) if middle in _NUMBERS and one is not None and other is not None else None

    def arm(self, case: Case) -> int | None:
        """Which arm is taken, counted from 0; one behind the last where none is; None where that is not known."""
        subject = self._known(case.subject, True)
        if subject is None or case.falls:
            return None
        for number, patterns in enumerate(case.patterns):
            for pattern in patterns:
                literal = self._literal(pattern, True)
                same = _matches(subject, *literal) if literal is not None else None
                if same is None:
                    return None
                if same:
                    return number
        return len(case.patterns)

    def _known(self, word: Word, double: bool) -> str | None:
        """The value of a word that is made of a variable; `double`: it is not split."""
        names = [part.name for part in word.parts if isinstance(part, Parameter)]
        if not names or len(names) + sum(isinstance(part, Literal) for part in word.parts) != len(word.parts):
            return None
        for part in word.parts:
            if isinstance(part, Parameter) and not self._certain(part):
                return None
        text = self.expander.text(word)
        if not text.known or (any(not piece.literal for piece in text.pieces) and names != ["#"]):
            return None
        if len(self.ledger.assumed) > MOST_ASSUMED or assumed_in(text, tuple(self.ledger.assumed)):
            return None
        bare = not double and not all(part.quoted for part in word.parts if isinstance(part, Parameter))
        return None if bare and (not text.value or any(char.isspace() for char in text.value)) else text.value

    def _certain(self, part: Parameter) -> bool:
        """Whether a variable was set in view, and nothing that was read since may have changed it."""
        if part.length or part.indirect or part.subscript is not None or not _NAMES.fullmatch(part.name):
            return False
        if part.operator not in ("", ":-", "-", "%", "%%", "#", "##", "^^", ",,"):
            return False
        if part.name[0] == "#" or part.name[0].isdigit():
            return part.name != "0" and self.state.positional is not None
        held = self.state.get(part.name)
        return held is not None and self.doubted.get(part.name) is not held

    def _literal(self, word: Word, double: bool) -> tuple[str, bool] | None:
        """The value of a word that is written out, and whether it is a pattern."""
        if not all(isinstance(part, Literal) for part in word.parts):
            return None
        literals = [part for part in word.parts if isinstance(part, Literal)]
        glob = any(not part.quoted and _GLOB.search(part.text.value) for part in literals)
        if glob and (not double or any(part.quoted for part in literals)):
            return None
        text = Text.join(part.text for part in literals)
        return (text.value, glob) if text.known else None


def _matches(value: str, pattern: str, glob: bool) -> bool | None:
    """Whether a value is a text, or has the shape of a pattern with stars at its ends; None for other patterns."""
    if not glob:
        return value == pattern
    middle = pattern.strip("*")
    if _GLOB.search(middle):
        return None
    first, last = pattern[:1] == "*", pattern[-1:] == "*"
    if first and last:
        return middle in value
    return value.endswith(middle) if first else value.startswith(middle)
