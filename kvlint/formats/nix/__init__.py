"""Nix files: NixOS, nix-darwin and home-manager modules, flakes and packages, partially evaluated, as a located tree.

Nothing is executed.  What cannot be known from the files is `Opaque` or a hole, with a reason.  Scalars have Nix's types as
tags (`str`, `int`, `float`, `bool`, `null`, `path`), their text is what `toString` or JSON would show, and points at where it
is written: through `${toString cfg.window}` at the literal in the `let`.  A number that is worked out points at its expression,
and `via` names the written numbers it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvlint.formats.nix.evaluator import Evaluator
from kvlint.formats.nix.modules import Condition, Definition, Steps, TreeBuilder
from kvlint.formats.nix.parser import parse
from kvlint.formats.nix.scanner import scan
from kvlint.formats.nix.syntax import Comment, File, Problem
from kvlint.formats.nix.values import Scope, Str, Thunk
from kvlint.records import dataclass, field
from kvlint.source import Source, Span, Text
from kvlint.tree import List, Map, Node, Opaque, Scalar

__all__ = ["Attribute", "Comment", "Condition", "Generated", "Problem", "Reading", "ShellText", "comments", "entries"]
__all__ += ["evaluate", "read", "scripts"]

Resolve = Callable[[str], "Source | None"]


@dataclass(frozen=True, slots=True)
class ShellText:
    """A text that a configuration writes to the store, mostly a script.

    `function`: `writeShellScript`, `writeShellApplication`, `writeText`, …; `span`: the whole call, which is also the span of
    the hole that the script's path is in a string.
    """

    name: Text | None
    text: Text
    span: Span
    function: str


@dataclass(frozen=True, slots=True)
class Generated:
    """A file that is made of a value: `(pkgs.formats.yaml {}).generate "name" value`."""

    name: Text | None
    node: Node
    span: Span
    function: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A node and its path.  `conditions`: what is not known and must hold for it to be in force, outermost first."""

    path: Steps
    key: Scalar | None
    node: Node
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """What one Nix file says."""

    source: Source
    root: Node
    problems: tuple[Problem, ...]
    comments: tuple[Comment, ...]
    scripts: tuple[ShellText, ...]
    generated: tuple[Generated, ...]
    conditions: dict[Steps, tuple[Condition, ...]] = field(default_factory=dict)

    def entries(self) -> Iterator[Attribute]:
        """Every attribute and list item with its path, in file order, outer before inner."""
        stack: list[Attribute] = [Attribute((), None, self.root, self.conditions.get((), ()))]
        while stack:
            found = stack.pop()
            if found.path:
                yield found
            if isinstance(found.node, Map):
                below = [(entry.key.value, entry.key, entry.value) for entry in found.node]
                stack += reversed([self._below(found, *item) for item in below])
            elif isinstance(found.node, List):
                stack += reversed([self._below(found, index, None, item) for index, item in enumerate(found.node)])

    def _below(self, above: Attribute, step: str | int, key: Scalar | None, node: Node) -> Attribute:
        path = (*above.path, step)
        return Attribute(path, key, node, above.conditions + self.conditions.get(path, ()))

    def modules(self) -> Iterator[tuple[Steps, Map]]:
        """The configurations of the file: the module it is, or those among the `modules` of a flake's systems.

        Of a module that declares options, the part under `config`.
        """
        systems = [a for a in self.entries() if a.path[-1] == "modules" and isinstance(a.node, List)]
        for system in systems:
            assert isinstance(system.node, List)
            for index, item in enumerate(system.node):
                if isinstance(item, Map):
                    yield _configuration((*system.path, index), item)
        if not systems and isinstance(self.root, Map):
            yield _configuration((), self.root)


def _configuration(path: Steps, module: Map) -> tuple[Steps, Map]:
    inner = module.map("config")
    return ((*path, "config"), inner) if inner is not None else (path, module)


def read(source: Source, *, resolve: Resolve | None = None) -> Reading:
    """Evaluate a file.  `resolve` gives the project's other files by their path from its root, for `import` and `readFile`."""
    file = parse(source)
    if file.root is None:
        root: Node = Opaque(source.span(0, 0), "the file holds no expression")
        return Reading(source, root, file.problems, file.comments, (), ())
    ev = Evaluator(resolve)
    builder = TreeBuilder(ev)
    thunk = Thunk(file.root, Scope({}, None))
    ev.files[source.path] = thunk
    try:
        root = builder.root(thunk)
        scan(ev, file.root)
    except RecursionError:
        root = Opaque(thunk.span, "the file is nested too deeply to be evaluated")
    return Reading(source, root, file.problems, file.comments, _scripts(ev), _generated(ev), builder.conditions)


def _scripts(ev: Evaluator) -> tuple[ShellText, ...]:
    found = [ShellText(script.name, script.text, script.span, script.function) for script in ev.scripts.values()]
    return tuple(sorted(found, key=lambda script: (script.span.path, script.span.start)))


def _generated(ev: Evaluator) -> tuple[Generated, ...]:
    made = []
    for span, (function, name, value) in list(ev.generated.items()):
        builder = TreeBuilder(ev)
        called = builder.value(name)
        node = builder.node([Definition(value)], ())
        if node is not None:
            made.append(Generated(called.text if isinstance(called, Str) else None, node, span, function.name))
    return tuple(made)


def evaluate(source: Source, *, resolve: Resolve | None = None) -> Node:
    """The file's value: a module's function is called with arguments that are not known, `lib` excepted."""
    return read(source, resolve=resolve).root


def entries(source: Source, *, resolve: Resolve | None = None) -> Iterator[Attribute]:
    return read(source, resolve=resolve).entries()


def scripts(source: Source, *, resolve: Resolve | None = None) -> tuple[ShellText, ...]:
    return read(source, resolve=resolve).scripts


def comments(source: Source) -> list[tuple[Span, str]]:
    """The comments of a file, marks included, in order."""
    file: File = parse(source)
    return [(comment.span, comment.text) for comment in file.comments]
