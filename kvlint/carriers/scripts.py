"""Files that a configuration names: the scripts it runs and the variables it reads, found in the project.

A path on the machine where a configuration runs is another one than in the repository, so a file is found by as much of its
path as agrees, and only where one file agrees best.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from kvlint import engines
from kvlint.carriers.base import directory
from kvlint.carriers.launch import SCRIPT_ENDINGS, Scripts
from kvlint.command import CommandLine, Opening
from kvlint.files import Unreadable, decode
from kvlint.formats.shell.filled import filled
from kvlint.formats.shell.text import script_of, where
from kvlint.parsing import kind_of
from kvlint.patterns import regex
from kvlint.project import Project, names_serving
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Source, Text

MAX_FOLLOWED = 2**20  # characters of one script, over all times that it is followed
MAX_SOURCED = 2**16  # characters of a file that is read into a script
SOURCED = frozenset({"env", "shell", "script", "conf"})
_WORD = regex(r"[\w.-]+")
_COMPOSED = regex(r"[$}]\w*[\"']?\}?\.(?:sh|bash|zsh|command)\b")  # `./$1.sh`, `"${name}".sh`


@dataclass(slots=True)
class Files:
    """The files of a project by the words that name them; `every`: those of formats that nobody here reads as well."""

    project: Project
    every: bool = False
    _by_name: dict[str, list[str]] = field(default_factory=dict)
    _sources: dict[str, Source | None] = field(default_factory=dict)
    _leading: dict[str, bool] = field(default_factory=dict)
    _followed: dict[str, int] = field(default_factory=dict)
    _sourced: int = 0

    def find(self, word: Text, near: str) -> str | None:
        """The path of the file that `word` names in the file `near`; None where none or several agree equally well."""
        value = word.value
        tail = value.rpartition(HOLE)[2]
        if HOLE in value and not tail.startswith("/"):
            return None
        steps = [step for step in tail.split("/") if step not in ("", ".")]
        if not steps or steps[-1] == "..":
            return None
        candidates = self._named(steps[-1])
        if HOLE not in value and value[0] not in "/~$":
            for base in (directory(near), ""):
                path = posixpath.normpath(posixpath.join(base, value))
                if path in candidates:
                    return path
        scored = [(_agreement(steps, path.split("/")), path) for path in candidates]
        best = max((score for score, _ in scored), default=0)
        found = [path for score, path in scored if score == best]
        return found[0] if len(found) == 1 else None

    def _named(self, name: str) -> list[str]:
        if not self._by_name:
            for path in self.project.files.paths() if self.every else sorted(self.project.all_paths):
                self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return self._by_name.get(name, [])

    def source(self, path: str) -> Source | None:
        """A file's text, of whatever format it is; the same object each time."""
        parsed = self.project.parsed(path)
        if parsed is not None:
            return parsed.source
        if path not in self._sources:
            try:
                self._sources[path] = Source(path, decode(self.project.files.read(path)))
            except Unreadable:
                self._sources[path] = None
        return self._sources[path]

    def scripts(self, near: str) -> Scripts:
        """What `Launch.scripts` asks: the text of a shell script of the project, where it may start an engine.

        Scripts of a repository call each other, and most of those calls lead nowhere: an engine's name must stand in the script,
        in one that it may call in turn, or among the words that it is run with.
        """

        def script(word: Text, given: Iterable[Text] = ()) -> Text | None:
            if "/" not in word.value and not word.value.endswith(SCRIPT_ENDINGS):
                return None
            if engines.named_by(CommandLine(word, ())) and not engines.of_variant(word.value):
                return None
            path = self.find(word, near)
            text = self._script(path) if path is not None else None
            if path is None or text is None:
                return None
            if not (self._leads(path) or any(names_serving(each.value.encode()) for each in given)):
                return None
            return text if self._within_bounds(path, len(text.value)) else None

        return script

    def sources(self, word: Text) -> Text | None:
        """The text of a file of settings or functions that a script reads into itself."""
        at = where(word)
        path = self.find(word, at.path) if word.value and at.pieces else None
        source = self.source(path) if path is not None and kind_of(path) in SOURCED else None
        if path is None or source is None or path == at.path or len(source.text) > MAX_SOURCED:
            return None
        self._sourced += len(source.text)
        return filled(script_of(source)) if self._sourced <= 2 * MAX_FOLLOWED else None

    def _script(self, path: str) -> Text | None:
        parsed = self.project.parsed(path)
        if parsed is None or parsed.kind != "shell":
            return None
        return script_of(parsed.source)

    def _leads(self, path: str) -> bool:
        """Whether an engine's name stands in a script or in one that it may call; where a name is put together it may be any."""
        if path not in self._leading:
            reached, waiting = {path}, [path]
            while waiting and path not in self._leading:
                text = self._script(waiting.pop())
                if text is None:
                    continue
                if names_serving(text.value.encode("utf-8", "surrogatepass")) or _COMPOSED.search(text.value):
                    self._leading[path] = True
                waiting += set(self._mentioned(text.value)) - reached
                reached.update(waiting)
            self._leading.setdefault(path, False)
        return self._leading[path]

    def _mentioned(self, text: str) -> Iterator[str]:
        for name in set(_WORD.findall(text)):
            for path in self._named(name):
                if kind_of(path) in ("shell", "script"):
                    yield path

    def _within_bounds(self, path: str, length: int) -> bool:
        """Whether a script is followed once more; it is said where it no longer is."""
        self._followed[path] = self._followed.get(path, 0) + length
        if self._followed[path] <= MAX_FOLLOWED:
            return True
        if self._followed[path] - length <= MAX_FOLLOWED:
            self.project.refuse(path, "called in so many ways that not every one was followed")
        return False

    def variables(self, word: Text, near: str, dialect: str) -> Mapping[str, Text] | Opening:
        """The variables of an environment file, or that they are unseen."""
        from kvlint.formats import env

        path = self.find(word, near)
        source = self.source(path) if path is not None else None
        if source is None:
            name = word.value.replace(HOLE, "…")
            return Opening(0, where(word), f"{name} is not in these files", f"the file {name}")
        return {each.name.value: each.value for each in env.parse(source, dialect).assignments}


def _agreement(steps: list[str], path: list[str]) -> int:
    """How many components agree, counted from the end."""
    count = 0
    for one, other in zip(reversed(steps), reversed(path), strict=False):
        if one != other:
            break
        count += 1
    return count
