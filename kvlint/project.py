"""The files of a run and the two passes over them.

Pass one reads every file once; a byte scan finds seeds, the rest is put aside.  Pass two looks in what was put aside for the
names that the seeds ask for (`search`).  Each file is parsed at most once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvlint.config import Config
from kvlint.contents import Contents
from kvlint.diagnostics import NotUnderstood
from kvlint.files import Files, Unreadable, decode
from kvlint.globs import matches_path
from kvlint.parsing import FILLED_ENDINGS, Parsed, kind_of, parse
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import Source, Span
from kvlint.subjects import Problem

if TYPE_CHECKING:
    from kvlint.carriers.base import Item
    from kvlint.formats.document import Document


# What makes a file a seed: a word of an engine, a proxy, an admission system, or of ours, in lower case.
SEEDS = (
    *(
        b"vllm",
        b"mlx_lm",
        b"mlx-lm",
        b"llama",
        b"sglang",
        b"lmdeploy",
        b"trtllm",
        b"tensorrt",
        b"text-generation",
        b"litellm",
    ),
    *(
        b"model_list",
        b"concurrencylimit",
        b"containerconcurrency",
        b"inferenceservice",
        b"max_parallel_requests",
        b"kubeai",
    ),
    *(
        b"gguf",
        b"opencode.ai",
        b"tokenconfig",
        b"contextlength",
        b"contextwindow",
        b"context_window",
        b"available_models",
        b"max_input_tokens",
        b"limit_conn",
        b"max_conns",
        b"maxconn ",
        b"unhealthy_request_count",
        b"inflightreq",
        b"circuit_breakers",
        b"concurrency-detector",
    ),
    *(
        b"kvlint:",
        b"num_ctx",
        b"max-model-len",
        b"max_model_len",
        b"engine_kwargs",
        b"served-model-name",
        b"served_model_name",
    ),
)
# Each of them holds one of these fewer words, and most files hold none (`context` would not do: every pod has a securityContext).
_COMMON = (b"lm", b"model", b"concurrency", b"conn", b"_request", b"token")
_HINTS: dict[bytes, list[bytes]] = {}  # the words by what is searched in their place
for _word in SEEDS:
    _HINTS.setdefault(next((part for part in _COMMON if part in _word), _word), []).append(_word)
_MARK = b"kvlint:"
KEPT_BYTES = 256 * 1024  # context files above this are looked at when a name leads to them, not searched

# A word that starts an engine or a proxy: what makes an unreadable document an error.
COMMAND = regex(
    r"\bvllm\b|mlx_lm|llama-server|llama-swap|\bsglang\b|ollama|lmdeploy|trtllm|text-generation|litellm|\bmodel_list\b"
)
# What envsubst or a GitOps controller fills in: braces mean something else in a YAML list between brackets.
_FILLED = regex(r"\$\{[A-Za-z_]\w*[^{}\n]*\}")
_CONTROLS = regex(r"\{\{-?\s*(?:if|with|range|define|include|template|toYaml|end|else|block)\b|\{%")
# What git leaves where two sides of a merge disagree.
_MERGING = "<<<<<<< "
BLANKED = regex(r"\{\{.*?\}\}|\{%.*?%\}|\$\{[^}]*\}", re.DOTALL)


def names_serving(data: bytes) -> bool:
    """Whether a file's bytes hold one of the words of `SEEDS`."""
    folded = data.lower()
    return any(hint in folded and _any_in(folded, words) for hint, words in _HINTS.items())


def _any_in(data: bytes, words: list[bytes]) -> bool:
    return any(map(data.__contains__, words))


@dataclass(eq=False, slots=True)
class Project:
    """The files of a run.  `focus`: paths (files or directories, relative to the root) that findings must touch; empty: all."""

    files: Files
    config: Config = field(default_factory=Config)
    focus: tuple[str, ...] = ()
    given: frozenset[str] = frozenset()  # PATHs that name a file themselves
    name: str = ""
    prefix: str = ""  # the root as seen from the top of its repository, with a slash behind it
    seeds: list[str] = field(default_factory=list)
    read: int = 0
    not_understood: list[NotUnderstood] = field(default_factory=list)
    unreadable: list[Problem] = field(default_factory=list)
    marked: set[str] = field(default_factory=set)  # files with a `kvlint:` comment
    _contents: Contents = field(default_factory=Contents, repr=False)
    _seeds: frozenset[str] = field(default=frozenset(), repr=False)
    _parsed: dict[str, Parsed | None] = field(default_factory=dict, repr=False)
    _searched: _Searched | None = field(default=None, repr=False)
    _paths: frozenset[str] = field(default=frozenset(), repr=False)

    def scan(self) -> None:
        """Pass one: every file that may matter is read once and classified."""
        excluded = self.config.excluded if self.config.exclude else None
        named = self.config.named_engines()
        for path in self.files.paths():
            if not (kind_of(path) or path in self.given) or (excluded is not None and excluded(path)):
                continue
            try:
                data = self.files.read(path)
            except Unreadable as error:
                self.refuse(path, str(error))
                continue
            self._contents.add(path, data if len(data) <= KEPT_BYTES or self._matters(path, data) else b"")
        self.read = len(self._contents)
        found = set(self.given)
        for hint, path in self._contents.hinted(_HINTS):
            if hint == _MARK and _MARK in self._contents.get(path):
                self.marked.add(path)
            if path not in found and _any_in(self._contents.get(path).lower(), _HINTS[hint]):
                found.add(path)
        if named:
            found.update(path for path in self._contents if any(matches_path(each, path) for each in named))
        self.seeds = [path for path in self._contents if path in found]
        self._seeds = frozenset(self.seeds)

    def _matters(self, path: str, data: bytes) -> bool:
        """Whether a long file is read: one that nothing leads to is looked at when a name does."""
        return path in self.given or _MARK in data or names_serving(data)

    def refuse(self, path: str, message: str, line: int = 1) -> None:
        self.not_understood.append(NotUnderstood(path, line, message))

    def parsed(self, path: str) -> Parsed | None:
        """A file's parsed form; None where it cannot be read or is of no format that we know."""
        if path not in self._parsed:
            self._parsed[path] = self._parse(path)
        return self._parsed[path]

    def _parse(self, path: str) -> Parsed | None:
        try:
            text = decode(self._contents.get(path) or self.files.read(path))
        except Unreadable as error:
            if self.files.exists(path) or path in self.given:
                self.refuse(path, str(error))
            return None
        parsed = parse(Source(path, text))
        if parsed is None or path not in self._seeds:
            return parsed
        tree = bool(parsed.documents)
        if _MERGING in text:
            from kvlint.merges import unmerged

            parsed.documents = unmerged(parsed)
        self._note_unreadable(path, parsed)
        return parsed if tree or not parsed.documents else None

    def _note_unreadable(self, path: str, parsed: Parsed) -> None:
        """A document that cannot be read is a problem where an engine or proxy stands in it, or its file is a PATH."""
        for document in parsed.documents:
            if document.problem is None:
                continue
            text, problem = document.span.text, document.problem
            template = "the document is a template, and what it becomes is not known"
            filled = path.endswith(FILLED_ENDINGS) or _CONTROLS.search(text) or _FILLED.search(_line(problem.span).text)
            doubt = (
                template if filled else _OUTPUT if parsed.kind == "json" and _outside(document, problem.span) else None
            )
            found = self.cannot_read(text, problem.span, problem.message, doubt)
            self.unreadable += [found] if found is not None else []

    def cannot_read(self, text: str, at: Span, reason: str, doubt: str | None) -> Problem | None:
        """Note what is not understood; a problem where it starts something, or the file is a PATH."""
        self.refuse(at.path, reason, at.line)
        if at.path not in self.given and not COMMAND.search(BLANKED.sub(" ", text)):
            return None
        return Problem("unreadable-config", _line(at), {"reason": reason}, doubt=doubt)

    def items(self, path: str) -> list[Item]:
        """A file's documents as carriers see them; a file that is no tree is one item without a node."""
        from kvlint.carriers.base import Item

        parsed = self.parsed(path)
        if parsed is None:
            return []
        if not parsed.documents:
            return [Item(parsed.source, parsed.kind, None, parsed.source.span(0, len(parsed.source.text)))]
        return [
            Item(parsed.source, parsed.kind, document.node, document.span, number)
            for number, document in enumerate(parsed.documents)
            if document.node is not None
        ]

    def search(self, needle: str, kind: str = "") -> Iterable[str]:
        """Pass two: files whose bytes hold `needle`, seeds and context alike, each once.

        `kind`: only files with such an object; those where `needle` is but a part of a longer name may be left out.
        """
        if not needle:
            return ()
        if self._searched is None:
            names: Counter[bytes] = Counter()
            for path in self.seeds:
                names.update(set(_words(self._contents.get(path))))
            self._searched = _Searched(names, self._contents)
        return self._searched.find(_encoded(needle), _encoded(kind))

    def text(self, path: str) -> Source | None:
        parsed = self.parsed(path)
        return parsed.source if parsed else None

    def in_focus(self, path: str) -> bool:
        return not self.focus or any(
            at in ("", ".") or path == at or path.startswith(at.rstrip("/") + "/") for at in self.focus
        )

    @property
    def all_paths(self) -> frozenset[str]:
        if len(self._paths) != len(self._contents):
            self._paths = frozenset(self._contents)
        return self._paths


_OUTPUT = "no value begins there, so the file may be what a program printed"


def _outside(document: Document, failed: Span) -> bool:
    """Whether reading failed before the first value, or between two: a slip is inside of one."""
    return not document.span.source.text[document.span.start : failed.start].strip()


FEW = 16  # seeds in which a name may stand and still be rare
# The bytes of names: what stands between others is apart.
_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/-"
_APART = bytes(byte if byte in _NAME else 32 for byte in range(256))


class _Searched:
    """What pass two looks for, over the bytes of all files.

    Names that stand in few seeds are many, and asked for one after the other: their places are noted all at once.
    """

    def __init__(self, seeds: dict[bytes, int], contents: Contents) -> None:
        self._contents = contents
        self._rare = {name for name, count in seeds.items() if count <= FEW}
        self._paths: dict[bytes, list[str]] = {}
        self._kinds: dict[bytes, list[str]] | None = None
        self._places: dict[bytes, dict[bytes, list[str]]] = {}
        self._common: dict[tuple[bytes, bytes], list[str]] = {}

    def find(self, wanted: bytes, kind: bytes) -> Iterable[str]:
        if not kind:
            return self._holding(wanted)
        if self._kinds is None:
            self._kinds = self._contents.kinds()
        among = self._kinds.get(kind, [])
        if wanted not in self._rare:
            if (wanted, kind) not in self._common:
                self._common[wanted, kind] = [path for path in among if wanted in self._contents.get(path)]
            return self._common[wanted, kind]
        if kind not in self._places:
            places = self._places.setdefault(kind, {})
            for path in among:
                for name in self._rare.intersection(_words(self._contents.get(path))):
                    places.setdefault(name, []).append(path)
        return self._places[kind].get(wanted, ())

    def _holding(self, wanted: bytes) -> list[str]:
        if wanted not in self._paths:
            self._paths[wanted] = self._contents.holding(wanted)
        return self._paths[wanted]


def _words(data: bytes) -> list[bytes]:
    """The names in a file, and whatever else is written with the same characters."""
    return data.translate(_APART).split()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _line(span: Span) -> Span:
    """What stands on the line where reading failed."""
    number = min(span.line, len(span.source.line_starts))
    text = span.source.line(number)
    start = span.source.line_starts[number - 1] + len(text) - len(text.lstrip())
    return span.source.span(start, start + len(text.strip()))
