"""The derived values of one server, each worked out when it is first asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kvlint.facts import Assumed, Fact, Unknown, Value, Written, quantity
from kvlint.sizing import shards
from kvlint.sizing.budget import host_memory
from kvlint.source import Text

if TYPE_CHECKING:
    from kvlint.subjects import Server

# The contract's derived values, in the order in which `show` prints them.
DERIVED: Mapping[str, str] = {
    "kv_bytes_per_token": "B",
    "kv_bytes_per_token_per_device": "B",
    "state_bytes_per_sequence": "B",
    "slot_bytes": "B",
    "live_kv_bytes": "B",
    "request_kv_bytes": "B",
    "weights_bytes": "B",
    "weights_bytes_per_device": "B",
    "budget_bytes": "B",
    "usable_bytes": "B",
    "pool_bytes": "B",
    "blocks": "blocks",
    "buffers": "buffers",
    "pool_tokens": "tokens",
    "sliding_pool_tokens": "tokens",
    "pool_token_bytes": "B",
    "max_concurrency": "requests",
    "prompt_cache_capacity_bytes": "B",
    "warm_slots": "conversations",
    "longest_window": "tokens",
    "longest_warm_window": "tokens",
    "longest_window_per_stream": "tokens",
    "smallest_block_size": "tokens",
    "state_blocks": "blocks",
}


@quantity(
    "heads_remainder",
    unit="heads",
    formula="attention heads mod the devices that share them",
    source="every engine here",
)
def heads_remainder(attention_heads: int, tensor_parallel: int) -> int:
    return attention_heads % tensor_parallel if tensor_parallel > 0 else 0


# Programs that fetch the engine when they are run.
FETCHING = ("uvx", "uv tool run", "pipx run", "pipx")
# Objects whose pods run as they are written.
PLAIN_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod", "LeaderWorkerSet")


class Sizing:
    """Base of an engine's memory model: a method named like a derived value gives it; what has no method does not apply.

    Methods take the server's settings and other derived values through `need`, which turns absence into an `Unknown`.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self._found: dict[str, Value[Any] | None] = {}

    def get(self, name: str) -> Value[Any] | None:
        """The derived value `name`; None where this engine has no such thing."""
        if name not in self._found:
            method = getattr(self, name, None) if not name.startswith("_") else None
            self._found[name] = None  # a value that would need itself does not apply
            self._found[name] = method() if callable(method) else None
        return self._found[name]

    def need(self, name: str) -> Value[Any]:
        """A setting or derived value, or an `Unknown` that names what is missing."""
        if name.startswith("coefficient."):
            return self.server.coefficient(name.partition(".")[2])
        found = self.server.get(name)
        if found is None:
            return Unknown(name, f"{name} is not stated", f"state {name}")
        return found

    def window_source(self) -> Value[int] | None:
        """The window where it is written, else the stated limit of the pool, which is what to look at when the two do not fit."""
        window, limit = self.server.settings.get("window"), self.server.settings.get("pool_limit_tokens")
        chosen = isinstance(window, Fact) and any(isinstance(leaf.origin, Written) for leaf in window.leaves())
        return window if chosen or limit is None else limit

    def attention_heads(self) -> Value[int] | None:
        arch = self.server.architecture
        return Fact(arch.value.heads, arch.origin) if isinstance(arch, Fact) else arch

    def heads_remainder(self) -> Value[int] | None:
        """Query heads left over when tensor parallelism splits them."""
        return heads_remainder(self.need("attention_heads"), self.need("tensor_parallel"))

    def kv_heads(self) -> Value[int] | None:
        """The fewest KV heads of any layer; None where no layer keeps keys and values by heads."""
        return present(shards.kv_heads(self.server.architecture))

    def kv_heads_remainder(self) -> Value[int]:
        return shards.kv_heads_remainder(self.server.architecture, self.need("tensor_parallel"))

    def kv_copies(self) -> Value[int] | None:
        """Devices that hold the same KV head."""
        heads = self.get("kv_heads")
        return shards.kv_copies(heads, self.need("tensor_parallel")) if heads is not None else None

    def quantization_block(self) -> Value[int] | None:
        return present(shards.quantization_block(self.server.architecture))

    def quantization_remainder(self) -> Value[int] | None:
        block = self.get("quantization_block")
        if block is None:
            return None
        spread = self.server.settings.get("expert_parallel")
        known = {"expert_parallel": spread} if spread is not None else {}
        return shards.quantization_remainder(self.server.architecture, block, self.need("tensor_parallel"), **known)

    def ceiling_bytes(self) -> Value[int] | None:
        """What all servers of the machine may have together, as the owner states it."""
        return self.server.hardware.get("ceiling")

    def group_devices(self) -> Value[int] | None:
        """The devices of all pods that work as one group, where the object states them."""
        found: Value[int] | None = self.server.site.data.get("group_devices")
        return found

    def group_size(self) -> Value[int] | None:
        """The pods of one group."""
        found: Value[int] | None = self.server.site.data.get("group_size")
        return found

    def floating(self) -> Value[str] | None:
        """What leaves the release open: a tag that moves, or an installation without a version."""
        line = self.server.process.line
        if self.server.version is not None:
            return None
        if line.image is None:
            fetched = next((each for each in line.wrappers if each.name in FETCHING), None)
            return Fact(fetched.name, Written(fetched.span)) if fetched is not None else None
        if not line.image.known:
            return Unknown("engine.image", "the image is filled in elsewhere", "a literal image with a tag")
        return _floating_tag(line.image)

    def hub_model(self) -> Value[str] | None:
        """The model, where it is a repository of a hub and no local path."""
        found = self.server.settings.get("model")
        if not isinstance(found, Fact):
            return found
        return found if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", str(found.value)) else None

    def _host_memory(self, *, each_rank: bool) -> Value[int] | None:
        """Host cache, stated for each rank or for all, and offloaded weights of one node; None where there is neither."""
        settings, nothing = self.server.settings, Fact(0, Assumed("none is asked for"))
        offload = settings.get("cpu_offload_bytes") or nothing
        if settings.get("host_cache_bytes") is None and isinstance(offload, Fact) and not offload.value:
            return None
        return host_memory(
            settings.get("host_cache_bytes") or nothing,
            offload,
            self.need("tensor_parallel"),
            self.need("pipeline_parallel"),
            settings.get("nodes") or Fact(1, Assumed("one node")),
            Fact(each_rank, Assumed("as the engine takes it")),
        )

    def weights_bytes(self) -> Value[Any]:
        """The checkpoint's weights, unless the engine makes others of them."""
        if "load_time_quantization" in self.server.settings:
            return Unknown("weights", "weights are quantized while they load", "[[model]] weights")
        return self.server.model.weights_bytes if self.server.model else self.need("model")

    def memory_limit_bytes(self) -> Value[int] | None:
        """The limit of the container that it runs in."""
        return self.server.site.memory_limit

    def unified_memory(self) -> Value[bool] | None:
        return self.server.hardware.get("unified")

    def shared_memory(self) -> Value[int] | None:
        """The size of `/dev/shm` as the carrier or `docker run` sets it; the host's own counts as set."""
        site, container = self.server.site, self.server.process.line.container
        if container is None:
            return Fact(0, Assumed("the host's shared memory")) if site.host_ipc else site.shared_memory
        text = container.shm_size if container.shm_size is not None else container.ipc
        return None if text is None else Fact(0, Written(text.span, text.via))

    def shared_memory_matters(self) -> Value[bool]:
        """A container whose `/dev/shm` nobody but these files enlarges: no operator mounts one."""
        site = self.server.site
        plain = site.carrier == "kubernetes" and site.data.get("kind") in PLAIN_KINDS and "operator" not in site.data
        bare = self.server.process.line.container is not None
        described = plain or bare or site.carrier == "compose"
        # the devices of a TPU slice talk over links of their own, in one process
        apart = any("tpu" in each.key for each in site.product)
        return Fact(described and not apart, Assumed("by the place where the container is described"))

    def spread(self) -> Value[bool] | None:
        """Whether a Service hands requests to any replica, and nothing keeps a conversation with one."""
        found = self.server.site.data.get("spread")
        return None if found is None else Fact(found, Assumed("what selects the pods in these files"))

    def unverified_version(self) -> Value[str] | None:
        """The engine's version where it is newer than the data; None where the data reaches it, or nothing is stated."""
        version = self.server.version
        if version is None or version.beyond != "newer":
            return None
        return Fact(version.text, version.origin)

    def derived(self) -> dict[str, Value[Any]]:
        """Every derived value that applies, in the contract's order."""
        pairs = ((name, self.get(name)) for name in DERIVED)
        return {name: value for name, value in pairs if value is not None}


def _floating_tag(image: Text) -> Value[str] | None:
    """An image's tag, if it moves: `latest` and its like, none, or one without a number on an engine's own image."""
    from kvlint import engines
    from kvlint.engines.claims import FLOATING_TAGS

    if "@" in image.value:
        return None
    tag = engines.tag(image.value) or "latest"
    own = engines.of_image(image.value) is not None
    moves = tag in FLOATING_TAGS or tag.startswith("latest") or (own and not any(each.isdigit() for each in tag))
    return Fact(tag, Written(image.span, image.via)) if moves else None


def present(value: Value[Any]) -> Value[Any] | None:
    """The value; None where it is a fact that there is none."""
    return None if isinstance(value, Fact) and value.value is None else value


def known(*values: Value[Any] | None) -> bool:
    return all(isinstance(value, Fact) for value in values)
