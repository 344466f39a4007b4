"""systemd units, their drop-ins, and Quadlet's `.container` files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvlint.carriers.base import Finding, Item, directory
from kvlint.carriers.host import contained, memory, template, unexpanded
from kvlint.carriers.launch import Launch, launches
from kvlint.carriers.scripts import Files
from kvlint.command import Opening
from kvlint.formats import systemd
from kvlint.formats.shell.filled import filled
from kvlint.formats.systemd import Section, Unit
from kvlint.parsing import without_ending
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.records import dataclass, replace
from kvlint.source import Span, Text
from kvlint.subjects import Problem, Process, Site

_DROP_IN = regex(r"(?P<unit>.*\.(?:service|container))\.d/[^/]+\.conf")
_OPERATOR = regex(r"(?<!\$)\$\{(?![A-Za-z_][A-Za-z0-9_]*\})[^}]*\}")
_NAME = regex(r"(?P<name>[^/]+?)\.(?:service|container)")
# Quadlet's keys and the option of `podman run` that each becomes: podman-systemd.unit(5).
_PODMAN = {
    "ContainerName": "--name",
    "PublishPort": "--publish",
    "ShmSize": "--shm-size",
    "AddDevice": "--device",
    "Volume": "--volume",
    "Memory": "--memory",
    "Network": "--network",
    "Entrypoint": "--entrypoint",
}


class Systemd:
    name = "systemd"

    def claims(self, item: Item) -> bool:
        return item.kind == "systemd"

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        files = Files(project)
        seen: set[str] = set()
        for item in items:
            path = main(item.path)
            if path not in seen:
                seen.add(path)
                yield from _unit(path, project, files)


CARRIER = Systemd()


@dataclass(frozen=True, slots=True)
class About:
    """What a unit is read with: its name, the file that its relative paths start from, and whether that is a template."""

    name: str
    path: str
    files: Files
    templated: bool = False


def main(path: str) -> str:
    """The path of the unit that a file belongs to, endings of templates left out."""
    drop_in = _DROP_IN.fullmatch(path)
    return drop_in["unit"] if drop_in else without_ending(path)


def _unit(path: str, project: Project, files: Files) -> Iterator[Finding]:
    """A unit with its drop-ins, in the order in which systemd reads them."""
    paths = sorted(project.all_paths)
    mains = [each for each in paths if each.startswith(path) and without_ending(each) == path]
    drop_ins = [
        each for each in paths if each.startswith(path) and (m := _DROP_IN.fullmatch(each)) and m["unit"] == path
    ]
    for main in mains or [""]:
        parts = [main] if main else []
        units = [_parsed(each, project) for each in (*parts, *drop_ins)]
        sections = tuple(section for unit in units for section in unit.sections)
        about = About(unit_name(path), main or path, files, main != path and bool(main))
        if units:
            yield from unit(replace(units[0], sections=sections), about)


def _parsed(path: str, project: Project) -> Unit:
    source = project.text(path)
    assert source is not None
    return systemd.parse(source)


def unit_name(path: str) -> str:
    """`vllm` of `units/vllm.service`."""
    name = path.rpartition("/")[2]
    match = _NAME.match(name)
    return match["name"] if match else name.partition(".")[0]


def unit(read: Unit, about: About) -> Iterator[Finding]:
    """The engines that a unit starts, and what in its environment means something else than its author thinks."""
    written = read
    read = _with_placeholders(read, about.templated)
    found = (
        [*_container(read, about)]
        if any(part.name == "Container" for part in read.sections)
        else [*_service(read, about)]
    )
    yield from found
    if any(isinstance(each, Process) for each in found):
        yield from _unexpanded(written, about)


def _with_placeholders(read: Unit, templated: bool) -> Unit:
    """The unit with holes for what a template writes; only in one that is named so are `${X}` and `@X@` placeholders too."""
    sections = []
    for part in read.sections:
        values = [filled(each.value, script=False) for each in part.settings]
        if templated:
            values = [template(value, splice=True) for value in values]
        settings = tuple(replace(each, value=value) for each, value in zip(part.settings, values, strict=True))
        sections.append(Section(part.name, part.span, settings))
    return replace(read, sections=tuple(sections))


def _service(read: Unit, about: About) -> Iterator[Finding]:
    env, env_open = _environment(read, "Service", about)
    starts = read.settings("Service", "ExecStart")
    for setting in starts:
        for command in systemd.commands(_literal(setting.value), env):
            yield from _started(command.words, setting.value.span, env, env_open, read, about)
    if not starts and about.name == "ollama" and any(name.startswith("OLLAMA_") for name in env):
        place = next(part.span for part in read.sections if part.name == "Service")
        packaged = Opening(0, place, "the packaged unit is not in these files", "the unit ollama.service")
        words = (Text.at("ollama", place), Text.at("serve", place))
        yield from _started(words, place, env, (*env_open, packaged), read, about)


def _started(
    words: tuple[Text, ...],
    place: Span,
    env: Mapping[str, Text],
    env_open: tuple[Opening, ...],
    read: Unit,
    about: About,
) -> Iterator[Process]:
    launch = Launch(
        words=words,
        place=place,
        env=env,
        env_open=env_open,
        scripts=about.files.scripts(about.path),
        sources=about.files.sources,
    )
    site = Site(
        carrier="systemd",
        unit=f"host {directory(about.path)}",
        name=about.name,
        place=words[0].span if words else place,
        memory_limit=memory(read.text("Service", "MemoryMax")),
    )
    for line in launches(launch):
        yield Process(contained(site, line), line)


def _environment(read: Unit, section: str, about: About) -> tuple[dict[str, Text], tuple[Opening, ...]]:
    """`Environment=`, then the files of `EnvironmentFile=`, which win: systemd.exec(5)."""
    env: dict[str, Text] = {}
    unseen: list[Opening] = []
    for setting in read.settings(section, "Environment"):
        env |= {name.value: value for name, value in systemd.assignments(setting.value)}
    for setting in read.settings(section, "EnvironmentFile"):
        path = setting.value.slice(1) if setting.value.value.startswith("-") else setting.value
        found = about.files.variables(_specified(path), about.path, "systemd")
        if isinstance(found, Opening):
            unseen.append(found)
        else:
            env.update(found)
    for setting in read.settings(section, "PassEnvironment"):
        for word in systemd.words(setting.value):
            reason = f"{word.value} is passed on from systemd's own environment"
            env.setdefault(word.value, Text.unknown(word.span, reason, f"the value of {word.value}"))
    for setting in read.settings(section, "UnsetEnvironment"):
        for word in systemd.words(setting.value):
            env.pop(word.value, None)
    return env, tuple(unseen)


def _specified(path: Text) -> Text:
    words = systemd.split(path)
    return words[0] if len(words) == 1 else path


def _container(read: Unit, about: About) -> Iterator[Process]:
    """Quadlet: the words of the `podman run` that the generator writes."""
    image = read.text("Container", "Image")
    if image is None:
        return
    env, env_open = _environment(read, "Container", about)
    words = [Text.at("podman", image.span), Text.at("run", image.span)]
    for key, option in _PODMAN.items():
        for setting in read.settings("Container", key):
            words += (Text.at(option, setting.key.span), setting.value)
    for setting in read.settings("Container", "PodmanArgs"):
        words += systemd.split(setting.value)
    for name, value in env.items():
        words += (Text.at("--env", value.span), Text.join((Text.at(f"{name}=", value.span), value)))
    words.append(image)
    for setting in read.settings("Container", "Exec")[-1:]:
        words += systemd.split(setting.value)
    launch = Launch(words=tuple(words), place=image.span, env={}, env_open=env_open)
    site = Site("systemd", f"host {directory(about.path)}", about.name, image.span)
    for line in launches(launch):
        yield Process(contained(site, line), line)


def _literal(text: Text) -> Text:
    """A command with a hole for each `${X:-y}`: systemd puts nothing there, and nobody can have meant that."""
    if not _OPERATOR.search(text.value):
        return text
    parts, at = [], 0
    for match in _OPERATOR.finditer(text.value):
        place = text.slice(*match.span()).span
        parts += [text.slice(at, match.start()), Text.unknown(place, f"systemd does not understand {match[0]}")]
        at = match.end()
    return Text.join([*parts, text.slice(at)])


def _unexpanded(read: Unit, about: About) -> Iterator[Problem]:
    """References in `Environment=`, where systemd replaces none."""
    doubt = "the file is a template, which may be filled in before it is installed" if about.templated else None
    for section in ("Service", "Container"):
        for setting in read.settings(section, "Environment"):
            for problem in unexpanded(setting.value, "systemd"):
                yield problem if _OPERATOR.match(problem.data["value"]) else replace(problem, doubt=doubt)
