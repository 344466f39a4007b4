"""Chat templates that a configuration names and that are in these files: what of them keeps prefixes from being reused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.carriers.scripts import Files
from kvlint.facts import Fact, Written
from kvlint.ruleset import views
from kvlint.ruleset.judge import Subject
from kvlint.source import HOLE, Text
from kvlint.subjects import Problem, ServerGroup

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation

MAX_CHARACTERS = 1 << 17


def subjects(evaluation: Evaluation) -> Iterator[Subject]:
    """Each source of a template once, of the first server that it is given to."""
    files = Files(evaluation.project, every=True)
    seen: set[tuple[int, int]] = set()
    for group in evaluation.groups:
        template = _template(group, files) if _caches(group) else None
        if template is None or HOLE in template.value or len(template.value) > MAX_CHARACTERS:
            continue
        from kvlint.templates import volatile

        for source in volatile(template.value):
            span = template.slice(source.start, source.end).span
            if (id(span.source), span.start) not in seen:
                seen.add((id(span.source), span.start))
                data = {"engine": group.first.engine, "value": source.kind}
                related = (("use", views.place(group.first, "chat_template"), "the template is given here"),)
                yield views.problem(
                    Problem("volatile-template", span, data, related), evaluation.coefficients.get, group.id
                )


def _caches(group: ServerGroup) -> bool:
    """Whether a later request may find what this one leaves."""
    settings = group.first.settings
    off, once = settings.get("prefix_caching"), settings.get("reuse")
    return not (isinstance(off, Fact) and off.value is False) and not (isinstance(once, Fact) and once.value == "none")


def _template(group: ServerGroup, files: Files) -> Text | None:
    """The text of the template: from a ConfigMap in the pod, else from a file of the project."""
    named = group.first.settings.get("chat_template")
    if not isinstance(named, Fact) or not isinstance(named.origin, Written) or not _is_path(str(named.value)):
        return None
    site = group.first.site
    mounted = site.data.get("mounted")
    if mounted is not None:
        found = mounted(str(named.value))
        return _restored(found) if found is not None else None
    path = files.find(Text.at(str(named.value), named.origin.span), site.place.path)
    source = files.source(path) if path is not None else None
    return Text.of(source, 0, len(source.text)) if source is not None else None


def _restored(text: Text) -> Text:
    """The text with what looked like a chart's own template, which is the template's, as it stands in the file."""
    parts, at = [], 0
    for hole in text.holes:
        parts += [text.slice(at, hole.at), Text.of(hole.span.source, hole.span.start, hole.span.end)]
        at = hole.at + 1
    return Text.join((*parts, text.slice(at)))


def _is_path(value: str) -> bool:
    """Engines take the names of templates that they have in the same place."""
    return "\n" not in value and ("/" in value or value.endswith((".jinja", ".jinja2", ".j2")))
