"""What the rules speak about: processes that serve a model, limits in front of them, and what a stage could not accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from kvlint.command import CommandLine
from kvlint.facts import Fact, Unknown, Value
from kvlint.records import dataclass, field
from kvlint.source import Span, Text

if TYPE_CHECKING:
    from kvlint.engines.argparse import Given
    from kvlint.models.architecture import Architecture
    from kvlint.models.lookup import Model
    from kvlint.sizing.server import Sizing

# The contract's settings; an engine's module may keep others for its own sizing, which no output shows.
SETTINGS = (
    *(
        "model",
        "revision",
        "model_window",
        "window",
        "window_kind",
        "batch_width",
        "prefill_width",
        "streams",
        "max_output",
    ),
    *("kv_dtype", "state_dtype", "kv_group_size", "kv_quant_start", "weights_dtype", "quantization", "tensor_parallel"),
    *(
        "pipeline_parallel",
        "data_parallel",
        "dp_local",
        "expert_parallel",
        "context_parallel",
        "dp_attention",
        "nodes",
        "role",
    ),
    *("kv_connector", "block_size", "memory_fraction", "kv_pool_bytes", "cpu_offload_bytes", "host_cache_bytes"),
    *(
        "prompt_cache_bytes",
        "prompt_cache_entries",
        "prefix_caching",
        "chunked_prefill",
        "batched_tokens",
        "unified_kv",
    ),
    *(
        "enforce_eager",
        "draft_model",
        "draft_tokens",
        "chat_template",
        "tokenizer",
        "adapters",
        "replicas",
        "served_names",
    ),
    "port",
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a stage could not accept.  A rule with `subject: problem` and this `kind` gives it severity and words.

    `doubt`: why it may be no problem after all (an opaque splice, a version beyond the data); caps the severity at warning.
    """

    kind: str
    span: Span
    data: Mapping[str, Any] = field(default_factory=dict)
    related: tuple[tuple[str, Span, str], ...] = ()  # role, place, words
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """Where a process runs, as its carrier states it.

    `unit`: the deployment unit (compose project, namespace of a directory, Nix file) inside which names resolve.
    `hosts`: names by which others of the unit reach it; `ports`: what it listens on by the carrier's word, container side;
    `published`: host side.  `product`: what names a device (label, instance type, profile), in order of authority.
    `gpus`: devices visible to one replica.  `device_ids`: literal ids.  None: not stated.
    """

    carrier: str
    unit: str
    name: str
    place: Span
    labels: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    ports: Mapping[str, Fact[int]] = field(default_factory=dict)
    published: Mapping[int, Fact[int]] = field(default_factory=dict)
    replicas: Value[int] | None = None
    gpus: Value[int] | None = None
    device_ids: tuple[Text, ...] = ()
    product: tuple[Product, ...] = ()
    memory_limit: Value[int] | None = None
    shared_memory: Value[int] | None = None
    host_ipc: bool = False
    resident_with: str | None = None  # a group whose members provably run at the same time on this machine
    exclusive: bool = False  # something runs one of several at a time
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Product:
    """A text that names a device: `key` is the label or field (`nvidia.com/gpu.product`, `node.kubernetes.io/instance-type`)."""

    key: str
    text: Text


@dataclass(frozen=True, slots=True)
class Process:
    """A command line where it was found."""

    site: Site
    line: CommandLine
    directives: tuple[Span, ...] = ()


def _no_coefficient(name: str) -> Unknown:
    return Unknown(f"coefficient.{name}", "no coefficients were given", f"[coefficients] {name}")


@dataclass(eq=False, slots=True)
class Server:
    """One engine process in one world: the releases of its engine that read the line alike and mean the same by it."""

    id: str
    engine: str
    releases: tuple[str, ...]
    process: Process
    program: Span
    settings: dict[str, Value[Any]]
    given: tuple[Given, ...] = ()
    problems: tuple[Problem, ...] = ()
    names: tuple[str, ...] = ()
    architecture: Value[Architecture] = field(
        default_factory=lambda: Unknown("model", "no model is named", "name a model")
    )
    hardware: Mapping[str, Value[Any]] = field(default_factory=dict)
    version: VersionClaim | None = None
    model: Model | None = None
    coefficient: Callable[[str], Value[Any]] = field(default=_no_coefficient, repr=False)
    sizing: Sizing = field(init=False)

    @property
    def site(self) -> Site:
        return self.process.site

    @property
    def refused(self) -> bool:
        """The engine's own parser would not start with this line."""
        return any(problem.data.get("refuses") for problem in self.problems)

    def get(self, name: str) -> Value[Any] | None:
        """A setting or derived value by its contract name; None where it does not apply."""
        found = self.settings.get(name)
        return found if found is not None else self.sizing.get(name)


@dataclass(frozen=True, slots=True)
class VersionClaim:
    """Where an engine's version was learned.  `text`: as written (`0.11.0`, `>=0.31,<0.33`); `beyond`: `newer` or `older`."""

    text: str
    origin: Any
    beyond: str | None = None


@dataclass(eq=False, slots=True)
class ServerGroup:
    """One server as people see it: its worlds.

    `live`: the worlds whose engine accepts the line; all of them where none does.  The others have problems and no settings.
    """

    id: str
    worlds: tuple[Server, ...]
    live: tuple[Server, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.live = tuple(world for world in self.worlds if not world.refused) or self.worlds

    @property
    def first(self) -> Server:
        return self.live[0]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address that a front sends requests to.  `pod`: the workload in whose pods the front is its own host."""

    host: str | None
    port: int | None
    span: Span
    names: tuple[str, ...] = ()
    pod: str | None = None


@dataclass(frozen=True, slots=True)
class Promise:
    """A window that someone in front of an engine promises: `kind` is total, input or output; `enforced` or only claimed."""

    kind: str
    tokens: Fact[int]
    enforced: bool
    by: str


@dataclass(eq=False, slots=True)
class Admission:
    """One limit in front of servers.

    `limit`: requests in flight (None: this system has no such limit here).  `per`: what it counts by (model, key, pod, …).
    `excess`: what a caller gets beyond it (wait, reject).  `target`: the process it starts itself, or the address it calls.
    `build`: the directory of the kustomization that rendered it, where that is another one.
    """

    id: str
    system: str
    unit: str
    name: str
    place: Span
    limit: Value[int] | None = None
    per: str = "model"
    excess: str = "wait"
    target: Union[Process, Endpoint, None] = None
    names: tuple[str, ...] = ()
    promises: tuple[Promise, ...] = ()
    settings: Mapping[str, Value[Any]] = field(default_factory=dict)
    servers: tuple[str, ...] = ()
    build: str = ""
