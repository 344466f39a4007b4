"""Scripts of which a part stays unread: where a quote is never closed, or commands nest too deep, and an engine stands behind.

A shell would stop there as well, or it understands what we do not: which of the two is in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kvlint.formats.shell.cursor import Fault
from kvlint.project import COMMAND, Project
from kvlint.source import Source, Span, Text
from kvlint.subjects import Problem, Process

DOUBT = "what kvlint cannot follow, a shell may"


def of_file(faults: Iterable[Fault], found: Iterable[Process], source: Source, project: Project) -> Problem | None:
    """The first fault of a script of its own, unless an engine was found behind it or none stands there.

    What it sources is read as a file of its own.
    """
    first = _first(each for each in faults if each.span is not None and each.span.path == source.path)
    if first is None or source.path not in project.seeds:
        return None
    at, reason = first
    rest = source.text[at.start :]
    if not COMMAND.search(rest) or any(each.site.place.end > at.start for each in found):
        return None
    return project.cannot_read(rest, at, reason, DOUBT)


def of_words(words: Sequence[Text], env: Mapping[str, Text], project: Project) -> None:
    """Note the first fault of `sh -c STRING` for the project; `words` start no engine that was found."""
    from kvlint.carriers.wrappers.programs import nested

    said = "\n".join([word.value for word in words])
    script = nested(words, env) if COMMAND.search(said) else None
    first = _first(script.faults) if script is not None else None
    if first is None:
        return
    at, reason = first
    if not any(each.span.source is at.source and each.span.line == at.line for each in project.unreadable):
        problem = project.cannot_read(said, at, reason, DOUBT)
        project.unreadable += [problem] if problem is not None else []


def _first(faults: Iterable[Fault]) -> tuple[Span, str] | None:
    """Where the first fault begins, and what it is."""
    placed = [(each.span, each.message) for each in faults if each.span is not None]
    if not placed:
        return None
    span, message = min(placed, key=lambda each: each[0].start)
    return span.source.span(span.start, span.start), message
