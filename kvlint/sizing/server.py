"""The derived values of one server, each worked out when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kvlint.facts import Fact, Unknown, Value, quantity

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

    def attention_heads(self) -> Value[int] | None:
        arch = self.server.architecture
        return Fact(arch.value.heads, arch.origin) if isinstance(arch, Fact) else arch

    def heads_remainder(self) -> Value[int] | None:
        """Query heads left over when tensor parallelism splits them."""
        return heads_remainder(self.need("attention_heads"), self.need("tensor_parallel"))

    def ceiling_bytes(self) -> Value[int] | None:
        """What all servers of the machine may have together, as the owner states it."""
        return self.server.hardware.get("ceiling")

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


def known(*values: Value[Any] | None) -> bool:
    return all(isinstance(value, Fact) for value in values)
