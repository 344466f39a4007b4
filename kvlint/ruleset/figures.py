"""Figures from an engine's log that stand in a file and are used there, though another release means something else by them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvlint.facts import Fact, nominal
from kvlint.patterns import regex
from kvlint.ruleset import views
from kvlint.ruleset.judge import Subject
from kvlint.source import Source, Span
from kvlint.subjects import Problem, ServerGroup

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation

# vllm==0.20.0 and 0.20.1: v1/core/kv_cache_utils.py.  Models with one group of layers print the same in both.
_LOGGED = regex(r"(?:GPU|CPU|TPU|XPU)?\s*KV cache size:\s*(?P<figure>[0-9][0-9,]{0,18})\s*tokens")
CHANGED = "0.20.2"


def subjects(evaluation: Evaluation) -> Iterator[Subject]:
    """Each literal that repeats a figure of a log line in the file of a server whose model has layers of several kinds."""
    seen: set[tuple[int, int]] = set()
    for group in evaluation.groups:
        source = group.first.site.place.source
        if group.first.engine != "vllm" or "KV cache size" not in source.text or not _several_kinds(group):
            continue
        for logged, used in _used(source):
            if (id(source), used.start) in seen:
                continue
            seen.add((id(source), used.start))
            data = {"engine": "vllm", "since": CHANGED, "value": used.text}
            problem = Problem("engine-log-figure", used, data, (("cause", logged, "the line of the log"),))
            yield views.problem(problem, evaluation.coefficients.get, group.id)


def _several_kinds(group: ServerGroup) -> bool:
    """Whether some layers of the model keep another kind of cache than plain attention, in every world."""
    for name in ("recurrent_layers", "windowed_layers"):
        values = [world.get(name) for world in group.live]
        if all(isinstance(value, Fact) and nominal(value.value) > 0 for value in values):
            return True
    return False


def _used(source: Source) -> Iterator[tuple[Span, Span]]:
    """A log line's figure, and each other place of the file where the number stands."""
    lines = list(_LOGGED.finditer(source.text))
    for line in lines:
        digits = line["figure"].replace(",", "")
        if len(digits) < 4:
            continue
        spellings = {digits, f"{int(digits):,}", f"{int(digits):_}"}
        pattern = "|".join(re.escape(each) for each in spellings)
        for match in re.finditer(rf"(?<![\w.,])(?:{pattern})(?![\w.]|,\d)", source.text):
            if not any(other.start() <= match.start() < other.end() for other in lines):
                yield source.span(*line.span()), source.span(*match.span())
