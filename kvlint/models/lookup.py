"""Which model a command line names, and what is known of it: kvlint.toml, the lock, a directory in the project, the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kvlint.config import Table
from kvlint.facts import Catalog, Fact, Lock, Unknown, Value, Written
from kvlint.files import Unreadable, decode
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.records import dataclass, replace
from kvlint.source import HOLE, Text

if TYPE_CHECKING:
    from kvlint.lock import Lockfile, Row
    from kvlint.models.catalogue import Entry
    from kvlint.project import Project

MAX_CONFIG_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Model:
    """One model's facts.  `weights_bytes`: one copy as the checkpoint stores it; `entry`: its row of the catalogue, if any.

    `config`: the parsed configuration (or GGUF metadata) where the project holds it.
    """

    id: str
    architecture: Value[Architecture]
    weights_bytes: Value[Any]
    dtype: Value[str]
    entry: Entry | None = None
    config: Mapping[str, Any] | None = None
    source: str = ""

    @property
    def named(self) -> bool:
        """Whether nothing but the name in its path says which model it is."""
        origin = self.architecture.origin if isinstance(self.architecture, Fact) else None
        return isinstance(origin, Catalog) and origin.doubt is not None

    @property
    def positions(self) -> Value[int]:
        """The largest of the positions as the configuration writes them, in tokens, with no rope factor applied."""
        if isinstance(self.architecture, Unknown):
            return self.architecture
        if (stated := self.architecture.value.positions) is None:
            supply = f"[[model]] id = {json.dumps(self.id)} with a config that states its length, in kvlint.toml"
            return Unknown("model.positions", "the configuration states no length", supply)
        return Fact(stated, self.architecture.origin)


class Models:
    """`find(text, near)` gives the model that a command line names; `near` is the file that it stands in.

    `lock`: the project's kvlint.lock, if it has one.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._found: dict[tuple[str, str], Model] = {}
        self._known: dict[str, Model] = {}
        self.lock = _lock(project)

    def find(self, text: Text, near: str) -> Model:
        if text.known:
            return self.named(text.value, near)
        repository = copied(text.value) if text.value[:1] == HOLE and HOLE not in text.value[1:] else None
        if repository is not None:
            return self.named(repository, near)
        return unknown_model(text.value, "the model is filled in elsewhere", "write the model, or [[engine]] settings")

    def named(self, name: str, near: str) -> Model:
        key = (name, near.rpartition("/")[0])
        if key not in self._found:
            self._found[key] = self._find(name, near)
        return self._found[key]

    def _find(self, name: str, near: str) -> Model:
        table = self._declared(name)
        model = self._of_table(name, table) if table is not None and "config" in table else None
        model = model or self._of_directory(name, near) or self._of_lock(name) or self._of_catalogue(name)
        if table is not None and "weights" in table:
            weights = table.values["weights"]
            model = Model(model.id, model.architecture, weights, model.dtype, model.entry, model.config, model.source)
        return model

    def _declared(self, name: str) -> Table | None:
        """The last `[[model]]` whose id is the name as the command line has it, or its last path segment."""
        found = None
        for table in self._project.config.all("model"):
            wanted = table.get("id")
            if wanted == name or name.rstrip("/").rpartition("/")[2] == wanted:
                found = table
        return found

    def _of_table(self, name: str, table: Table) -> Model | None:
        base = (self._project.config.path or "").rpartition("/")[0]
        path = f"{base}/{table.get('config')}" if base else table.get("config")
        config = self._config(path.removeprefix("./"))
        if config is None:
            return unknown_model(name, f"{path} cannot be read as JSON", f"a readable {path}")
        return of_config(name, config, path)

    def _of_directory(self, name: str, near: str) -> Model | None:
        """A local directory with a `config.json`, relative to the file that names it or to the root."""
        if name.startswith(("/", "~")) or "://" in name:
            return None
        stem = name.removeprefix("./").rstrip("/")
        directory = near.rpartition("/")[0]
        for base in (f"{directory}/{stem}" if directory else stem, stem):
            path = f"{base}/config.json"
            if ".." not in base.split("/") and self._project.files.exists(path):
                config = self._config(path)
                if config is not None:
                    return of_config(name, config, path)
        return None

    def _of_lock(self, name: str) -> Model | None:
        """The lock's facts of a model; of one that is locked at several revisions, only what all of them say."""
        rows = [row for row in self.lock.named(name) if row.config is not None] if self.lock is not None else []
        if not rows:
            return None
        if any(row.config != rows[0].config for row in rows):
            return unknown_model(name, f"kvlint.lock has revisions of {name} that differ", "one revision of the model")
        return _of_row(name, rows[0])

    def _of_catalogue(self, name: str) -> Model:
        """The catalogue's facts, which do not depend on where the model is named."""
        if name not in self._known:
            path = name.startswith(("/", "~", "./")) or name.endswith(".gguf")
            repository = copied(name) if path else None
            named = _of_path_name(name) if path and repository is None else None
            self._known[name] = named or _of_catalogue(repository or name, name)
        return self._known[name]

    def _config(self, path: str) -> Mapping[str, Any] | None:
        try:
            data = self._project.files.read(path)
            if len(data) > MAX_CONFIG_BYTES:
                return None
            loaded = json.loads(decode(data))
        except (Unreadable, ValueError, RecursionError):
            return None
        return loaded if isinstance(loaded, Mapping) else None


def of_config(name: str, config: Mapping[str, Any], path: str) -> Model:
    """A model from its own `config.json` or GGUF metadata."""
    from kvlint.models.catalogue import lookup_config

    if "general.architecture" in config:
        return _of_gguf(name, config, path)
    return _of_entry(name, lookup_config(config, name=name, source=path), config, path)


def _of_gguf(name: str, metadata: Mapping[str, Any], path: str) -> Model:
    from kvlint.models.gguf import architecture

    nothing = unknown_model(name, f"the weights of {name} are not known", "weights in [[model]]")
    try:
        found: Value[Architecture] = Fact(architecture(metadata), Catalog(name, "architecture", path))
    except UnknownArchitecture as error:
        found = Unknown(f"model.{error.field}", str(error), "[[model]] config with that key")
    return Model(name, found, nothing.weights_bytes, nothing.dtype, None, metadata, path)


def _of_path_name(path: str) -> Model | None:
    """The model that the last name of a path says: its shape, and a directory's type; in doubt, for anybody may name a file."""
    from kvlint.models.catalogue import of_path

    entry = of_path(path)
    if entry is None or isinstance(entry.architecture, Unknown):
        return None
    nothing = unknown_model(path, f"what {path} holds is known by its name alone", "weights in [[model]]")
    shape = Fact(entry.architecture, Catalog(entry.id, "architecture", entry.source, doubt="named"))
    dtype: Value[str] = nothing.dtype
    if entry.dtype is not None and not path.endswith(".gguf"):
        dtype = Fact(entry.dtype, Catalog(entry.id, "dtype", entry.source, doubt="named"))
    return Model(path, shape, nothing.weights_bytes, dtype, None, None, entry.source)


def of_hub_cache(parts: Iterable[str]) -> Iterator[str]:
    """The repositories that a path's components name as the hub's cache does: `models--Qwen--Qwen3-8B`."""
    for part in parts:
        if part.startswith("models--") and part.count("--") >= 2:
            yield part.removeprefix("models--").replace("--", "/", 1)


def copied(path: str) -> str | None:
    """The repository that a directory is a copy of, by its name: a hub's cache, or a repository's own two words at the end."""
    from kvlint.models.catalogue import find

    parts = path.strip("/").split("/")
    kept = next(of_hub_cache(parts), None)
    if kept is not None:
        return kept
    last = "/".join(parts[-2:])
    return last if len(parts) > 2 and find(last) is not None else None


def _of_catalogue(repository: str, name: str) -> Model:
    from kvlint.models.catalogue import find

    entry = find(repository)
    if entry is None:
        return unknown_model(
            name, f"{name} is not in the catalogue", f"[[model]] id = {json.dumps(name)} with its config in kvlint.toml"
        )
    return _of_entry(name, entry, None, entry.source)


def _lock(project: Project) -> Lockfile | None:
    if not project.files.exists("kvlint.lock"):
        return None
    from kvlint.lock import read

    return read(project.files)


def _of_row(name: str, row: Row) -> Model:
    """A locked model; a count of parameters that the lock lacks is the catalogue's, where that has the same shape."""
    from kvlint.models.catalogue import find, lookup_config

    assert row.config is not None
    entry = replace(lookup_config(row.config, name=row.id), parameters=row.parameters, file_bytes=row.weights_bytes)
    known = find(row.id)
    if row.parameters is None and known is not None and known.own and _shape(known) == _shape(entry) is not None:
        entry = replace(entry, parameters=known.parameters, file_bytes=row.weights_bytes or known.file_bytes)
    return _of_entry(name, entry, None, "kvlint.lock", Lock(row.id, row.revision))


def _shape(entry: Entry) -> Any:
    found = entry.architecture
    if isinstance(found, Unknown):
        return None
    return found.layers, found.hidden_size, found.vocab_size, entry.quantization


def _of_entry(
    name: str, entry: Entry, config: Mapping[str, Any] | None, source: str, locked: Lock | None = None
) -> Model:
    def fact(field: str, value: Any) -> Value[Any]:
        if isinstance(value, Unknown):
            return value
        if value is None:
            return Unknown(
                f"model.{field}", f"the {field} of {name} is not known", f"[[model]] id = {json.dumps(name)}"
            )
        return Fact(value, locked or Catalog(entry.id, field, source))

    return Model(
        id=name,
        architecture=fact("architecture", entry.architecture),
        weights_bytes=fact("weights", entry.weight_bytes()),
        dtype=fact("dtype", entry.dtype),
        entry=entry,
        config=config,
        source=source,
    )


def unknown_model(name: str, reason: str, supply: str) -> Model:
    nothing = Unknown("model.architecture", reason, supply)
    return Model(name, nothing, Unknown("model.weights", reason, supply), Unknown("model.dtype", reason, supply))


def written_id(model: Model, text: Text) -> Value[Any]:
    """The model as it is written; of a path that is filled in elsewhere, the repository that its end names."""
    if not text.known and model.entry is None:
        return model.architecture
    return Fact(model.id, Written(text.span, text.via))


__all__ = ["Model", "Models", "UnknownArchitecture", "of_config", "unknown_model", "written_id"]
