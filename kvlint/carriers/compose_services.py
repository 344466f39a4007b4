"""The services of a compose file as compose reads them: with its variables filled in, over what they extend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvlint.carriers import compose_files
from kvlint.carriers.base import Item, directory
from kvlint.facts import Written
from kvlint.formats import shell
from kvlint.formats.shell import Assumption
from kvlint.project import Project
from kvlint.records import dataclass, field
from kvlint.source import Text
from kvlint.tree import Map, Node, Scalar

MAX_EXTENDS = 8


def services_of(item: Item) -> Map:
    """The services as they are written."""
    return (item.node.map("services") if isinstance(item.node, Map) else None) or Map((), item.span)


def opened(item: Item, project: Project) -> File:
    """A file with the variables that compose fills in: those of its directory, and of the project that includes it."""
    base, outer = directory(item.path), compose_files.including(item.path, project)
    env = _dotenv(base, project)
    return File(item, project, {**env, **_dotenv(outer, project)} if outer != base else env, f"compose {outer}")


def base_of(service: Node) -> str | None:
    """The service of this file whose keys another takes."""
    if not isinstance(service, Map) or "file" in (service.map("extends") or ()):
        return None
    return service.string("extends") or service.string("extends", "service")


@dataclass(slots=True)
class File:
    """A compose file and the variables that compose fills in; `assumed`: the defaults of them that its values rest on."""

    item: Item
    project: Project
    env: Mapping[str, Text]
    unit: str
    assumed: list[Assumption] = field(default_factory=list)

    def text(self, text: Text) -> Text:
        """A value after compose's own interpolation."""
        found = shell.compose_interpolate(text, self.env)
        self.assumed += found.assumed
        return found.text

    def written(self, *texts: Text) -> Written:
        """Where a value stands; in doubt where it is a variable's default, which the outside may set."""
        doubt = any(shell.assumed_in(text, tuple(self.assumed)) for text in texts)
        return Written(texts[0].span, texts[0].via, "default" if doubt else None)

    def scalar(self, node: Node | None) -> Text | None:
        return self.text(node.text) if isinstance(node, Scalar) and node.tag != "null" else None


def _dotenv(base: str, project: Project) -> Mapping[str, Text]:
    return env_file(f"{base}/.env" if base else ".env", project) or {}


def env_file(path: str, project: Project) -> dict[str, Text] | None:
    """The variables of an env file; None where it is not in the project."""
    if not project.files.exists(path):
        return None
    source = project.text(path)
    if source is None:
        return None
    from kvlint.formats import env

    return {each.name.value: each.value for each in env.parse(source).assignments}


def layers_of(file: File, node: Map) -> Iterator[Map]:
    """The service, then what it extends, nearest first."""
    for _ in range(MAX_EXTENDS):
        yield node
        extends = node.get("extends")
        name = extends.value if isinstance(extends, Scalar) else node.string("extends", "service")
        other = node.string("extends", "file")
        root = file.item.node if other is None else _other(file, other)
        base = root.map("services", name) if isinstance(root, Map) and name else None
        if base is None or base is node:
            return
        node = base


def _other(file: File, name: str) -> Node | None:
    base = directory(file.item.path)
    path = f"{base}/{name.removeprefix('./')}" if base else name.removeprefix("./")
    items = file.project.items(path) if file.project.files.exists(path) else []
    return items[0].node if items else None


def first(layers: list[Map], key: str) -> Node | None:
    """The value of a key in the nearest layer that has it."""
    return next((layer.get(key) for layer in layers if key in layer), None)


def first_at(layers: list[Map], *path: str) -> Node | None:
    """What stands at the end of a path of keys, in the nearest layer where something does."""
    return next((found for layer in layers if (found := layer.get(*path)) is not None), None)
