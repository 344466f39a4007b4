"""supervisord: the programs of a configuration, each of its processes for itself."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained
from kvlint.carriers.launch import Launch, Scripts, launches
from kvlint.carriers.scripts import Files
from kvlint.command import Opening
from kvlint.formats import shell
from kvlint.formats.shell.filled import filled
from kvlint.formats.shell.text import made, where
from kvlint.formats.supervisor import Known, Section, assignments, expand, is_config, parse
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.source import HOLE, Text
from kvlint.subjects import Process, Site

MOST_PROCESSES = 16  # of one program; of more than these none is told from the others
_KIND = "program:"
_FALSE = ("no", "false", "off", "0")


class Supervisor:
    name = "supervisor"

    def claims(self, item: Item) -> bool:
        return item.kind in ("conf", "ini") and is_config(item.source.text)

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        for item in items:
            about = About(item.path, f"host {directory(item.path)}", files)
            yield from programs(Text.of(item.source, 0, len(item.source.text)), about)


CARRIER = Supervisor()


@dataclass(frozen=True, slots=True)
class About:
    """The file that a configuration stands in, its deployment unit, and the files around it."""

    path: str
    unit: str
    files: Files


def programs(text: Text, about: About) -> Iterator[Process]:
    """The engines that a configuration's programs start."""
    sections = parse(text)
    shared: dict[str, Text] = {}
    unseen: list[Opening] = []
    if "supervisord" in sections:
        shared = _environment(sections["supervisord"], {}, unseen)
    for section in sections.values():
        name = section.name.value.removeprefix(_KIND)
        command = section.text("command")
        if command is None or name == section.name.value:
            continue
        for called, known in _processes(section, section.name.slice(len(_KIND)), shared):
            openings = list(unseen)
            own = _environment(section, known, openings)
            known = {**known, **_variables(own)}
            words = tuple(shell.split(expand(filled(command, script=False), known)))
            launch = Launch(
                words=words,
                place=command.span,
                env={**shared, **own},
                env_open=tuple(openings),
                scripts=_scripts(section, known, about),
            )
            resident = _string(section, "autostart") not in _FALSE
            site = Site(
                carrier="supervisor",
                unit=about.unit,
                name=called,
                place=where(words[0]) if words else command.span,
                resident_with=f"supervisor {about.path}" if resident else None,
            )
            for line in launches(launch):
                yield Process(contained(site, line), line)


def _string(section: Section, key: str) -> str | None:
    found = section.text(key)
    return found.value.lower() if found is not None else None


def _variables(env: Mapping[str, Text]) -> dict[str, Text | int]:
    return {f"ENV_{name}": value for name, value in env.items()}


def _environment(section: Section, known: Known, unseen: list[Opening]) -> dict[str, Text]:
    written = section.text("environment")
    if written is None:
        return {}
    found = assignments(expand(filled(written, script=False), known))
    if found is None:
        unseen.append(Opening(0, where(written), "supervisord does not understand this environment"))
    return found or {}


def _processes(section: Section, name: Text, shared: Mapping[str, Text]) -> Iterator[tuple[str, Known]]:
    """Each process of a program: what it is called, and what its `%(name)s` stand for."""
    common: dict[str, Text | int] = {"program_name": name, **_variables(shared)}
    numbers = _numbers(section)
    if numbers is None:
        yield name.value, common
        return
    counted: dict[str, Text | int] = {**common, "numprocs": len(numbers)}
    pattern = section.text("process_name")
    for number in numbers:
        known = {**counted, "process_num": number}
        called = expand(pattern, known) if pattern is not None and len(numbers) > 1 else name
        yield called.value if called.known and called.value else name.value, known


def _numbers(section: Section) -> range | None:
    """The numbers of a program's processes; None where they are many, or counted elsewhere."""
    count, first = (_string(section, key) or default for key, default in (("numprocs", "1"), ("numprocs_start", "0")))
    if not all(text.isascii() and text.isdigit() and len(text) < 7 for text in (count, first)):
        return None
    return range(int(first), int(first) + int(count)) if int(count) <= MOST_PROCESSES else None


def _scripts(section: Section, known: Known, about: About) -> Scripts:
    """Scripts by their name; one that is not absolute is looked for from the program's directory."""
    written = section.text("directory")
    base = expand(written, known) if written is not None else None
    plain = about.files.scripts(about.path)

    def script(word: Text, given: Iterable[Text] = ()) -> Text | None:
        relative = base is not None and word.value[:1] not in ("/", "~", HOLE)
        if relative and base is not None:
            path = posixpath.normpath(posixpath.join(base.value, word.value))
            found = plain(made(path, where(word)), given)
            if found is not None:
                return found
        return plain(word, given)

    return script
