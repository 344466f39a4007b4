"""Follows a script through its branches and records the commands that may run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from kvlint.command import Opening
from kvlint.formats.shell.answers import Answers
from kvlint.formats.shell.arithmetic import changed_names
from kvlint.formats.shell.assignments import assigned_value
from kvlint.formats.shell.builtins import BUILTINS, EXITS, GO_ON
from kvlint.formats.shell.cursor import Cursor
from kvlint.formats.shell.expand import Assumption, Expander
from kvlint.formats.shell.fields import between
from kvlint.formats.shell.guards import asks, given_default, guarded
from kvlint.formats.shell.names import Effects, assigned
from kvlint.formats.shell.parser import parse
from kvlint.formats.shell.programs import Invocation, invocation
from kvlint.formats.shell.record import Context, Record
from kvlint.formats.shell.script import Assignment, Command, Heredoc
from kvlint.formats.shell.state import State, Variable, widened
from kvlint.formats.shell.text import place, spliced, unix_lines, unknown
from kvlint.formats.shell.tree import (
    Assign,
    Block,
    Calculation,
    Case,
    Chain,
    Function,
    Group,
    Here,
    If,
    Loop,
    Node,
    Parameter,
    Pipeline,
    Simple,
    Substitution,
    Word,
)
from kvlint.records import replace
from kvlint.source import Text

DEEPEST = 24
MAX_SOURCED = 4  # files that are read into one another
_PREFIXES = frozenset({"exec", "command", "builtin"})


class Walker:
    def __init__(self, state: State, record: Record, depth: int = 0) -> None:
        self.state = state
        self.record = record
        self.context = Context(depth=depth)
        self.expander = Expander(state, self._substitute, record.ledger)
        self.answers = Answers(state, self.expander, record.ledger)
        self.functions: dict[str, Function] = {}
        self.effects: dict[int, Effects] = {}
        self.called: set[str] = set()
        self.calling: list[str] = []
        self.env_open: tuple[Opening, ...] = ()
        self.sources: Callable[[Text], Text | None] | None = None
        self.sourcing: list[Text] = []

    def script(self, text: Text, context: Context) -> int:
        self.record.ledger.budget -= len(text.value)
        if self.record.ledger.budget < 0:
            return GO_ON
        body, cursor = _parsed(text, context.depth)
        self.keep(cursor)
        return self.block(body, context)

    def source(self, word: Text) -> bool:
        """Read a file of settings or functions into the script; False where it is not in view.

        Functions that it brings and nothing calls are nobody's here: the file is read by itself as well.
        """
        text = self.sources(word) if self.sources is not None else None
        if text is None or text in self.sourcing or len(self.sourcing) >= MAX_SOURCED:
            return False
        own = set(self.functions)
        self.sourcing.append(text)
        self.script(text, self.context.inside())
        self.sourcing.pop()
        self.called |= set(self.functions) - own
        return True

    def doubt(self) -> None:
        """Everything set so far may be set anew by settings that are not in view."""
        for name, value in self.state.texts().items():
            where = place(value)
            if where is not None:
                self.record.ledger.assumed.append(Assumption(name, where, where))

    def keep(self, cursor: Cursor) -> None:
        self.record.comments += cursor.comments
        self.record.faults += cursor.faults

    def uncalled(self) -> None:
        """The bodies of functions that nothing in view calls: something else may."""
        for name, function in list(self.functions.items()):
            if name not in self.called:
                self.called.add(name)
                with self.state.branch():
                    self.state.put("@", None)
                    self.node(function.body, self.context.branch())

    def block(self, block: Block, context: Context) -> int:
        for item in block.items:
            here = replace(context, background=True) if item.background else context
            if item.background:
                with self.state.branch():
                    self.node(item.node, here)
                continue
            after = self.node(item.node, here)
            if after != GO_ON:
                return after
        return GO_ON

    def node(self, node: Node, context: Context) -> int:
        self.record.steps -= 1
        if self.record.steps < 0 or context.depth > DEEPEST:
            return GO_ON
        if isinstance(node, Simple):
            return self._simple(node, context)
        if isinstance(node, Chain):
            return self._chain(node, context)
        if isinstance(node, Pipeline):
            return self._pipeline(node, context)
        if isinstance(node, If):
            return self._if(node, context.inside())
        if isinstance(node, Loop):
            return self._loop(node, context)
        if isinstance(node, Case):
            return self._case(node, context)
        if isinstance(node, Group):
            return self._group(node, context.inside())
        if isinstance(node, Function):
            self.functions[node.name] = node
            self.called.discard(node.name)
            return GO_ON
        if isinstance(node, Calculation):
            for name in changed_names(self.expander.text(node.word).value):
                self.state.set(name, unknown(node.word.span, f"{name} is changed by arithmetic"))
            return GO_ON
        return self.block(node, context.inside())

    def _chain(self, node: Chain, context: Context) -> int:
        after = self.node(node.first, context)
        last = node.first
        answer = self.answers.of(last)
        for operator, following in node.rest:
            if after != GO_ON and operator == "&&":
                return after
            if answer is not None:
                if answer != (operator == "&&"):
                    self._untaken(following, context)
                    continue
                after = self.node(following, context)
                if after != GO_ON:
                    return after
            elif operator == "||" or asks(last):
                guard = guarded(last, "-n" if operator == "||" else "-z")
                self._branches([following], context.branch(), whole=False, guard=guard)
            else:
                after = self.node(following, context)
            last = following
            answer = self.answers.of(last)
        return after if node.rest[-1][0] == "&&" else GO_ON

    def _branches(self, bodies: Sequence[Node], context: Context, whole: bool, guard: Parameter | None = None) -> int:
        """Bodies of which one at most is taken; one that leaves does not come back to what follows.

        `guard`: the variable without whose value the only body is taken.
        """
        ends = []
        afters = []
        for body in bodies:
            with self.state.branch() as changes:
                after = self.node(body, context)
            afters.append(after)
            if after == GO_ON:
                ends.append(changes)
        if guard is not None and ends:
            assumed = given_default(guard, ends[0], self.state)
            self.record.ledger.assumed += [assumed] if assumed is not None else []
        if ends or not whole:
            self.state.meet(ends, whole)
            return GO_ON
        return min(afters, default=GO_ON)

    def _pipeline(self, node: Pipeline, context: Context) -> int:
        if len(node.nodes) == 1:
            return self.node(node.nodes[0], context)
        for part in node.nodes:
            with self.state.branch():
                self.node(part, context.inside())
        return GO_ON

    def _if(self, node: If, context: Context) -> int:
        for condition, _ in node.arms[:1]:
            self.block(condition, context)
        bodies: list[Node] = []
        last: Node | None = node.last
        taken = False
        for number, (condition, body) in enumerate(node.arms):
            answer = self.answers.of(condition) if not taken else False
            if answer is None:
                bodies.append(Block((*condition.items, *body.items)) if number else body)
            elif answer:
                taken, last = True, body
            else:
                self._untaken(body, context)
        if taken and node.last is not None:
            self._untaken(node.last, context)
        if not bodies:
            return self.node(last, context) if last is not None else GO_ON
        if last is not None:
            bodies.append(last)
        guard = guarded(node.arms[0][0], "-z") if len(node.arms) == 1 and last is None else None
        return self._branches(bodies, context.branch(), whole=last is not None, guard=guard)

    def _case(self, node: Case, context: Context) -> int:
        self.expander.text(node.subject)
        taken = self.answers.arm(node)
        if taken is None:
            return self._branches(node.arms, context.branch(), whole=node.whole)
        for number, arm in enumerate(node.arms):
            if number != taken:
                self._untaken(arm, context)
        return self.node(node.arms[taken], context) if taken < len(node.arms) else GO_ON

    def _untaken(self, node: Node, context: Context) -> None:
        """What certainly does not run here; the functions that it calls are not ones that something unseen may call."""
        record, functions, opened = self.record, dict(self.functions), self.env_open
        counts = len(record.commands), len(record.heredocs), len(record.assignments)
        with self.state.branch():
            self.node(node, context.branch())
        del record.commands[counts[0] :], record.heredocs[counts[1] :], record.assignments[counts[2] :]
        self.functions, self.env_open = functions, opened

    def _loop(self, node: Loop, context: Context) -> int:
        for word in node.words:
            self.expander.words(word)
        changes = assigned(node, self.functions, self.effects)
        if node.variable is not None:
            where = node.words[0].span if node.words else None
            loop = f"{node.variable} takes several values in a loop"
            self.state.set(node.variable, unknown(where, loop, f"the value of {node.variable}"))
            changes.pop(node.variable, None)
        for name, (appends, span) in changes.items():
            self.state.put(name, widened(name, self.state.get(name), appends, span))
        inner = context.branch()
        with self.state.branch():
            if node.condition is not None:
                self.block(node.condition, replace(inner, conditional=context.conditional))
            self.block(node.body, inner)
        return GO_ON

    def _group(self, node: Group, context: Context) -> int:
        if node.subshell:
            with self.state.branch():
                self.block(node.body, context)
            after = GO_ON
        else:
            after = self.block(node.body, context)
        self._heredocs(node.heres, (), node.target, context)
        return after

    def _heredocs(
        self, heres: Sequence[Here], words: tuple[Text, ...], target: Word | None, context: Context
    ) -> Text | None:
        """Record them; the last one's text is what the command reads."""
        body = None
        for here in heres:
            if here.body is None:
                continue
            body = self.expander.text(here.body)
            if here.delimiter:
                goal = self.expander.text(target) if target is not None else None
                found = Heredoc(words, here.delimiter, body, goal, here.literal, context.conditional)
                self.record.heredocs.append(found)
        return body

    def _simple(self, node: Simple, context: Context) -> int:
        outer, self.context = self.context, context
        words: list[Text] = []
        for word in node.words:
            if isinstance(word, Word):
                words += self.expander.words(word)
        body = self._heredocs(node.heres, tuple(words), node.target, context)
        after = GO_ON
        if words:
            after = self._run(node, words, body, context)
        else:
            for assign in node.assigns:
                self.assign(assign)
        self.context = outer
        return after

    def _run(self, node: Simple, words: list[Text], body: Text | None, context: Context) -> int:
        name = words[0].value if words[0].known else None
        if name in self.functions:
            return self._call(self.functions[name], words[1:], context)
        if name == "exec" and len(words) == 1:
            return GO_ON  # it only redirects
        if name in BUILTINS:
            after = BUILTINS[name](self, node, words)
            if after is not None:
                return after
        env = self.state.exported()
        given = {assign.name: assigned_value(assign, self.state, self.expander) for assign in node.assigns}
        if given:
            env = {**env, **{name: value for name, value in given.items() if isinstance(value, Text)}}
        plain = words[1:] if name in _PREFIXES and len(words) > 1 else words
        shell = invocation(plain)
        if shell is None or not self._shell(shell, env, body, context):
            found = Command(
                tuple(words), env, node.span, context.conditional, context.nested, context.background, self.env_open
            )
            self.record.commands.append(found)
        return EXITS if name == "exec" else GO_ON

    def _shell(self, shell: Invocation, env: Mapping[str, Text], body: Text | None, context: Context) -> bool:
        """Follow a shell started by the script; False where what it runs is not in view."""
        string = body if shell.string is None and shell.file is None else shell.string
        if string is None or string.value.strip("\ufffc") == "":
            return False
        inner = Walker(State(env, shell.arguments, shell.name), self.record)
        inner.env_open = self.env_open
        inner.sources = self.sources
        inner.script(spliced(string, True), context.inside())
        inner.context = context.inside()
        inner.uncalled()
        return True

    def _call(self, function: Function, arguments: Sequence[Text], context: Context) -> int:
        if function.name in self.calling:
            return GO_ON
        self.called.add(function.name)
        self.calling.append(function.name)
        before = self.state.get("@")
        self.state.put("@", Variable(tuple(arguments)))
        after = self.node(function.body, context.inside())
        self.state.put("@", before)
        self.calling.pop()
        return EXITS if after == EXITS else GO_ON

    def evaluate(self, words: Sequence[Text]) -> int:
        """`eval`: the words, joined, are read again."""
        text = spliced(between(words, " "), True)
        self.env_open = (*self.env_open, *_openings(words, "eval of a text that is not known"))
        return self.script(text, self.context.inside())

    def assign(self, assign: Assign, exported: bool | None = None) -> None:
        value = assigned_value(assign, self.state, self.expander)
        context = self.context
        if assign.words is None and assign.subscript is None and isinstance(value, Text):
            shown: Text | None = value
        else:
            shown = None
        self.state.set(assign.name, value, exported)
        held = self.state.get(assign.name)
        done = Assignment(assign.name, shown, assign.span, held is not None and held.exported, context.conditional)
        self.record.assignments.append(done)

    def _substitute(self, part: Substitution) -> Text:
        """What the commands inside print is not known, but for a few that print what they are given."""
        printed = self._printed(part)
        if printed is not None:
            return printed
        context = replace(self.context.inside(), nested=True)
        before = len(self.record.commands)
        with self.state.branch():
            self.block(part.body, context)
        ran = self.record.commands[before:]
        what = ran[0].words[0].value if ran and ran[0].words and ran[0].words[0].known else "a command"
        return unknown(part.span, f"what {what} prints is not known", f"the output of {what}")

    def _printed(self, part: Substitution) -> Text | None:
        """`$(cat <<EOF …)`: the document without its last line ends."""
        node = part.body.items[0].node if len(part.body.items) == 1 else None
        if not isinstance(node, Simple) or len(node.words) != 1 or len(node.heres) != 1:
            return None
        word, body = node.words[0], node.heres[0].body
        if not isinstance(word, Word) or word.plain != "cat" or body is None:
            return None
        text = self.expander.text(body)
        return text.slice(0, len(text.value.rstrip("\n")))


@lru_cache(maxsize=256)
def _parsed(text: Text, depth: int) -> tuple[Block, Cursor]:
    """A script's tree: it is the same for whoever calls it."""
    return parse(unix_lines(text), depth)


def _openings(words: Sequence[Text], reason: str) -> tuple[Opening, ...]:
    return tuple(Opening(0, hole.span, reason, hole.supply) for word in words for hole in word.holes)
