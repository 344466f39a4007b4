"""The derived values of an mlx_lm.server: weights, live conversations and stored prompts in one declared budget."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from kvlint.facts import Assumed, Fact, Range, Unknown, Value, quantity
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.sizing import budget, demand
from kvlint.sizing.mlx import caches
from kvlint.sizing.mlx.releases import Meaning, meaning
from kvlint.sizing.search import largest
from kvlint.sizing.server import Sizing
from kvlint.sizing.slots import SlotShape, mlx_shape

__all__ = ["Meaning", "MlxSizing", "meaning"]

CACHES = "mlx_lm/models/cache.py and the model files, by release"


@quantity("slot_shape", unit="", formula="cache classes of the model's file", source=CACHES)
def slot_shape(
    architecture: Architecture, release: str, kv_dtype: str, kv_bits: int | None = None, kv_group_size: int = 64
) -> SlotShape | Unknown:
    try:
        return mlx_shape(architecture, release, kv_dtype, kv_bits, kv_group_size)
    except UnknownArchitecture as error:
        return Unknown(f"model.{error.field}", str(error), "[[model]] config in kvlint.toml")
    except ValueError as error:
        return Unknown("kv_dtype", str(error), "a known cache type")


@quantity("kv_bytes_per_token", unit="B", formula="Σ growing layers of K and V rows", source=CACHES)
def kv_bytes_per_token(slot_shape: SlotShape) -> int:
    return slot_shape.bytes_per_token


@quantity("state_bytes_per_sequence", unit="B", formula="Σ layers of convolution and recurrent state", source=CACHES)
def state_bytes_per_sequence(slot_shape: SlotShape) -> int:
    return slot_shape.state


@quantity(
    "slot_bytes",
    unit="B",
    formula="growing × window + windowed × min(window, w) + state",
    source=CACHES,
)
def slot_bytes(slot_shape: SlotShape, window: int) -> int:
    return slot_shape(window)


@quantity("longest_window", unit="tokens", formula="largest window: streams × slot ≤ room", source="arithmetic")
def longest_window(slot_shape: SlotShape, usable_bytes: int, weights_bytes: int, copies: int, model_window: int) -> int:
    room = usable_bytes - weights_bytes
    return largest(lambda window: copies * slot_shape(window) <= room, model_window)


@quantity("copies", unit="slots", formula="live streams + stored slots", source="mlx-lm releases: copies")
def copies(streams: int, stored: int) -> int:
    return streams + stored


@quantity(
    "live_streams",
    unit="streams",
    formula="min(streams, batch_width)",
    source="what waits for its turn is stored, not live",
)
def at_once(streams: int, width: int) -> int:
    return min(streams, width)


@quantity(
    "draft_bytes",
    unit="B",
    formula="weights of the draft model + a slot of its own for each conversation",
    source=CACHES,
)
def draft_bytes(weights_bytes: int, slot_shape: SlotShape, window: int, copies: int) -> int:
    return weights_bytes + copies * slot_shape(window)


class MlxSizing(Sizing):
    """mlx_lm.server: it reserves nothing and refuses nothing, so every limit here is the owner's budget."""

    @property
    def rules(self) -> Meaning:
        release: Fact[str] = self.server.settings["release"]  # type: ignore[assignment]
        return meaning(release.value)

    def slot_shape(self) -> Value[SlotShape]:
        settings = self.server.settings
        needed = {
            "architecture": self.server.architecture,
            "release": settings["release"],
            "kv_dtype": self._dtype(),
        }
        bits = settings.get("kv_bits")
        if bits is not None and self._quantizes():
            needed |= {"kv_bits": bits, "kv_group_size": self.need("kv_group_size")}
        return slot_shape(**needed)

    def _quantizes(self) -> bool:
        """Rows are quantized once a conversation reaches the start offset."""
        start, window = self.server.settings.get("kv_quant_start"), self.need("window")
        if not isinstance(start, Fact) or not isinstance(window, Fact) or isinstance(window.value, Range):
            return True
        return bool(window.value >= start.value)

    def _dtype(self) -> Value[str]:
        model = self.server.model
        if model is None:
            return self.need("model")
        if isinstance(model.dtype, Unknown):
            return Fact("bfloat16", Assumed("activations of MLX models are 16 bit"))
        return model.dtype

    def kv_bytes_per_token(self) -> Value[int]:
        return kv_bytes_per_token(self.need("slot_shape"))

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return self.need("kv_bytes_per_token")

    def state_bytes_per_sequence(self) -> Value[int]:
        return state_bytes_per_sequence(self.need("slot_shape"))

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self.need("slot_shape"), self.need("window"))

    def live_kv_bytes(self) -> Value[int]:
        return budget.live_kv_bytes(self.need("streams"), self.need("slot_bytes"))

    def live_streams(self) -> Value[int]:
        """The streams that are answered at the same time; the others wait."""
        streams, width = self.need("streams"), self.server.settings.get("batch_width")
        if self._serial() or isinstance(self.get("unmergeable"), Fact):
            width = Fact(1, Assumed("one request is answered at a time"))
        narrow = isinstance(streams, Fact) and isinstance(width, Fact) and width.value < streams.value
        return at_once(streams, width) if narrow and width is not None else streams

    def drafting(self) -> Value[Any] | None:
        """What asks for drafts."""
        return self.server.settings.get("draft_model")

    def draft_bytes(self) -> Value[Any] | None:
        """What the draft model takes beside the live streams and one stored conversation."""
        settings = self.server.settings
        if "draft_architecture" not in settings:
            return None
        dtype = Fact("bfloat16", Assumed("activations of MLX models are 16 bit"))
        shape = slot_shape(settings["draft_architecture"], settings["release"], dtype)
        stored = Fact(1 if self.rules.copies == "both" else 0, Assumed("one warm conversation"))
        return draft_bytes(
            settings["draft_weights"], shape, self.need("window"), copies(self.need("live_streams"), stored)
        )

    def weights_bytes_per_device(self) -> Value[Any]:
        return self.need("weights_bytes")

    def budget_bytes(self) -> Value[int]:
        return self.server.hardware["budget"]

    def usable_bytes(self) -> Value[int]:
        return budget.usable_of_budget(self.need("budget_bytes"), self.need("coefficient.holdback"))

    def prompt_cache_capacity_bytes(self) -> Value[int] | None:
        """The explicit limit, which includes the active copy; else what the release leaves beside weights and live KV."""
        limit = self.server.settings.get("prompt_cache_bytes")
        if limit is not None and not (self._serial() and self.rules.byte_limit_skipped):
            return limit
        if self.rules.copies == "in-place":
            return None
        nothing: Value[int] = Fact(0, Assumed("a conversation is live or stored in this release, not both"))
        live = nothing
        if self.rules.copies == "both":
            live = budget.live_kv_bytes(self.need("live_streams"), self.need("slot_bytes"))
        return budget.prompt_cache_remainder(self.need("usable_bytes"), self.need("weights_bytes"), live)

    def warm_slots(self) -> Value[Fraction] | None:
        if self.rules.copies == "in-place":
            return None
        return budget.warm_slots(self.need("prompt_cache_capacity_bytes"), self.need("slot_bytes"))

    def longest_window(self) -> Value[int]:
        return self._longest(Fact(0, Assumed("nothing is stored")))

    def longest_warm_window(self) -> Value[int] | None:
        return self._stored(Fact(1, Assumed("one warm slot")))

    def longest_window_per_stream(self) -> Value[int] | None:
        return self._stored(self.need("streams"))

    def _stored(self, stored: Value[int]) -> Value[int] | None:
        if self.rules.copies == "in-place":
            return None
        if self.rules.copies == "either":
            return self._longest(Fact(0, Assumed("a conversation is live or stored in this release, not both")))
        return self._longest(stored)

    def _longest(self, stored: Value[int]) -> Value[int]:
        longest = self.server.settings.get("model_window")
        upper = longest if isinstance(longest, Fact) else Fact(2**33, Assumed("no limit of the model is known"))
        return longest_window(
            self.need("slot_shape"),
            self.need("usable_bytes"),
            self.need("weights_bytes"),
            copies(self.need("live_streams"), stored),
            upper,
        )

    def _serial(self) -> bool:
        """A flag makes the server answer one request at a time."""
        settings, rules = self.server.settings, self.rules
        quantized = rules.quantized_serial and settings.get("kv_bits") is not None
        return quantized or (rules.draft_serial and settings.get("draft_model") is not None)

    def rotating_layers(self) -> Value[int]:
        return caches.rotating_layers(self.server.architecture, self.server.settings["release"])

    def kv_group_remainder(self) -> Value[int] | None:
        group = self.server.settings.get("kv_group_size")
        if group is None:
            return None
        return caches.kv_group_remainder(self.server.architecture, self.server.settings["release"], group)

    def unmergeable(self) -> Value[str] | None:
        """The cache classes that keep this model from being batched; None where all can be merged."""
        if not self.rules.unmergeable:
            return None
        found = caches.unmergeable_caches(self.server.architecture, self.server.settings["release"])
        if isinstance(found, Unknown):
            return found
        return Fact(", ".join(found.value), found.origin) if found.value else None

    def entries_per_conversation(self) -> Value[int]:
        return caches.entries_per_conversation(
            self.server.architecture, self.server.settings["release"], self.need("window")
        )

    def admitted_width(self) -> Value[int] | None:
        """Sequences that the configuration's own, written limits let run together; None where none is written."""
        blocked = self.get("unmergeable")
        if self._serial() or isinstance(blocked, Fact):
            return Fact(1, Assumed("one request is answered at a time"))
        return blocked if blocked is not None else demand.admitted_width(self)

    def demand_bytes(self) -> Value[int] | None:
        return demand.demand_bytes(self, self.get("admitted_width"))
