"""The derived values of a llama-server: every cache that it makes when it starts, and what it keeps in host memory."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from kvlint.facts import Assumed, Fact, Range, Unknown, Value, Written, quantity
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.models.gguf import is_gguf
from kvlint.sizing import budget
from kvlint.sizing.llama import host
from kvlint.sizing.llama import sizes as llama
from kvlint.sizing.llama.settings import Cache, Outcome, Plan, Refusal, Settings
from kvlint.sizing.search import largest
from kvlint.sizing.server import Sizing

STARTS = "llama.cpp, src/llama-context.cpp and tools/server, checked against its start logs"


@quantity("start", unit="", formula="slots, cells and caches of the build", source=STARTS)
def start(architecture: Architecture, builds: tuple[int, ...], **settings: Any) -> Outcome:
    """The plan of a start, or why there is none; of several builds one plan only where they agree."""
    wanted = Settings(**settings)
    try:
        outcomes = [llama.plan(architecture, wanted, build) for build in builds]
    except UnknownArchitecture as error:
        return Unknown(f"model.{error.field}", str(error), "[[model]] config with that key")
    except KeyError as error:
        return Unknown("kv_dtype", f"{error} is no cache type", "a cache type of llama-server")
    if any(outcome != outcomes[0] for outcome in outcomes):
        return Unknown("engine.version", "builds of llama-server differ in this", "name the build of llama-server")
    found = outcomes[0]
    if isinstance(found, Refusal) and found.kind == "no-draft-layers" and not is_gguf(architecture.config):
        reason = "whether the file has layers for multi-token prediction is not known"
        return Unknown("model.draft_layers", reason, "the file's metadata as [[model]] config")
    return found


@quantity("window", unit="tokens", formula="the cells of one slot, at most the trained context", source=STARTS)
def window(plan: Plan) -> int | Range:
    return plan.ranged("window")


@quantity("batch_width", unit="sequences", formula="slots", source=STARTS)
def width(plan: Plan) -> int:
    return plan.slots


@quantity("unified_kv", unit="", formula="one buffer for all slots", source=STARTS)
def unified(plan: Plan) -> bool:
    return plan.unified


@quantity("slot_cells", unit="tokens", formula="cells that one slot may use, the trained context aside", source=STARTS)
def slot_cells(plan: Plan) -> int | Range:
    least = plan.sequence if plan.floor is None else plan.floor.sequence
    return plan.sequence if least == plan.sequence else Range(min(least, plan.sequence), plan.sequence, plan.sequence)


@quantity("pool_bytes", unit="B", formula="every cache, drafts and recurrent state included", source=STARTS)
def pool_bytes(plan: Plan) -> int | Range:
    return plan.ranged("pool_bytes")


@quantity("pool_tokens", unit="tokens", formula="cells of all slots", source=STARTS)
def pool_tokens(plan: Plan) -> int | Range:
    return plan.ranged("context")


@quantity("max_concurrency", unit="requests", formula="pool_tokens ÷ window, at most the slots", source=STARTS)
def max_concurrency(plan: Plan) -> Fraction:
    return min(Fraction(plan.slots), Fraction(plan.context, plan.window)) if plan.unified else Fraction(plan.slots)


@quantity("kv_bytes_per_token", unit="B", formula="Σ growing caches of bytes of one cell", source=STARTS)
def kv_bytes_per_token(plan: Plan) -> int:
    total = sum((Fraction(_cell(cache), cache.ratio) for cache in _own(plan) if not cache.window), Fraction(0))
    return -(-total.numerator // total.denominator)


@quantity("state_bytes_per_sequence", unit="B", formula="Σ layers of 32-bit state, one copy", source=STARTS)
def state_bytes_per_sequence(plan: Plan) -> int:
    return plan.state_bytes


@quantity("slot_bytes", unit="B", formula="growing × window + windowed × min(window, w) + state", source=STARTS)
def slot_bytes(plan: Plan, window: int) -> int:
    return sum(cache.held(window) for cache in _own(plan)) + plan.state_bytes


@quantity("host_slot_bytes", unit="B", formula="the state of one full slot, as it is stored", source=STARTS)
def host_slot_bytes(plan: Plan, window: int) -> int:
    return host.slot_state_bytes(plan, window)


@quantity("checkpoints_bytes", unit="B", formula="checkpoints × slots × bytes of one checkpoint", source=STARTS)
def checkpoints_bytes(plan: Plan, builds: tuple[int, ...], checkpoints: int | None = None) -> int | Range | Unknown:
    return host.checkpoints_bytes(plan, Settings(checkpoints=checkpoints), builds[-1])


@quantity("longest_window", unit="tokens", formula="the largest window: caches of all slots ≤ room", source=STARTS)
def longest_window(plan: Plan, usable_bytes: int, weights_bytes: int, model_window: int) -> int:
    """The window at which the caches, as many slots as now and laid out as now, fill what weights leave."""
    room = usable_bytes - weights_bytes - plan.recurrent_bytes
    buffers = 1 if plan.unified else plan.slots

    def taken(tokens: int) -> int:
        grown = (_cell(cache) * tokens // cache.ratio * buffers for cache in plan.caches if not cache.window)
        bounded = (min(cache.bytes, _cell(cache) * tokens * cache.streams) for cache in plan.caches if cache.window)
        return sum(grown) + sum(bounded)

    return largest(lambda tokens: taken(tokens) <= room, model_window)


def _own(plan: Plan) -> list[Cache]:
    """The target's caches, without a draft's."""
    return [cache for cache in plan.caches if not cache.role.startswith("draft-")]


def _cell(cache: Cache) -> int:
    return cache.bytes // (cache.cells * cache.streams)


PLAIN = ("f16", "bf16", "f32")


class LlamaSizing(Sizing):
    """llama-server: all that its slots can use is allocated when it starts."""

    def kv_bytes_per_token(self) -> Value[int]:
        return kv_bytes_per_token(self.need("plan"))

    def state_bytes_per_sequence(self) -> Value[int]:
        return state_bytes_per_sequence(self.need("plan"))

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self.need("plan"), self.need("window"))

    def live_kv_bytes(self) -> Value[int]:
        return budget.live_kv_bytes(self.need("streams"), self.need("slot_bytes"))

    def weights_bytes(self) -> Value[Any]:
        """The file's size as the project states it: a repository's other formats say nothing of a GGUF file."""
        model = self.server.model
        if model is None:
            return self.need("model")
        found = model.weights_bytes
        if isinstance(found, Fact) and isinstance(found.origin, Written):
            return found
        return Unknown("model.weights", f"the size of the file of {model.id} is not known", "weights in [[model]]")

    def budget_bytes(self) -> Value[Any]:
        """What the project allows, else the memory of the devices it names."""
        stated = self.server.hardware["budget"]
        return stated if isinstance(stated, Fact) else self.server.hardware["device_memory"]

    def usable_bytes(self) -> Value[Any]:
        return budget.usable_of_budget(self.need("budget_bytes"), self.need("coefficient.holdback"))

    def pool_bytes(self) -> Value[Any]:
        return pool_bytes(self.need("plan"))

    def pool_tokens(self) -> Value[Any]:
        return pool_tokens(self.need("plan"))

    def max_concurrency(self) -> Value[Fraction]:
        return max_concurrency(self.need("plan"))

    def prompt_cache_capacity_bytes(self) -> Value[int] | None:
        """The host prompt cache; None where it has no limit."""
        return self.server.settings.get("host_cache_bytes")

    def warm_slots(self) -> Value[Fraction] | None:
        limit = self.server.settings.get("host_cache_bytes")
        return budget.warm_slots(limit, self.need("host_slot_bytes")) if limit is not None else None

    def longest_window(self) -> Value[int]:
        longest = self.server.settings.get("model_window")
        upper = longest if isinstance(longest, Fact) else Fact(2**33, Assumed("no limit of the model is known"))
        return longest_window(self.need("plan"), self.need("usable_bytes"), self.need("weights_bytes"), upper)

    def host_slot_bytes(self) -> Value[int]:
        return host_slot_bytes(self.need("plan"), self.need("window"))

    def checkpoints_bytes(self) -> Value[Any]:
        given = {"checkpoints": found} if (found := self.server.settings.get("checkpoints")) is not None else {}
        return checkpoints_bytes(self.need("plan"), self.need("builds"), **given)

    def host_memory_bytes(self) -> Value[int] | None:
        """Ordinary memory that the server may fill beside its weights; None where its cache has no limit."""
        return self.server.settings.get("host_cache_bytes")

    def unified_memory(self) -> Value[bool] | None:
        return self.server.hardware.get("unified")

    def rotating_limit(self) -> Value[int] | None:
        """The window of a slot that drops its oldest tokens instead of refusing."""
        kind = self.server.settings.get("window_kind")
        return self.need("window") if isinstance(kind, Fact) and kind.value == "rotate" else None

    def drafting(self) -> Value[Any] | None:
        """What asks for drafts."""
        settings = self.server.settings
        types = settings.get("spec_types")
        heads = isinstance(types, Fact) and any("mtp" in each for each in types.value)
        return types if heads else settings.get("draft_model")

    def wide_draft_type(self) -> Value[str] | None:
        """The type of the drafts' cache where the model's own is quantized and it is not; drafts inherit nothing."""
        settings = self.server.settings
        own = [settings.get(f"cache_type_{part}") for part in "kv"]
        drafts = self.get("drafting")
        if drafts is None or not all(isinstance(each, Fact) and each.value not in PLAIN for each in own):
            return None
        for part in "kv":
            found = settings.get(f"draft_type_{part}", Fact("f16", Assumed("not inherited from the model's own")))
            if isinstance(found, Unknown) or isinstance(drafts, Unknown):
                return found if isinstance(found, Unknown) else drafts
            if found.value in PLAIN:
                return Fact(found.value, found.origin)
        return None

    def machine_bytes(self) -> Value[Any] | None:
        """All memory that weights may lie in, of devices and host; None where not all of it is stated."""
        hardware, limit = self.server.hardware, self.server.process.site.memory_limit
        memory, unified, ceiling = hardware["device_memory"], hardware.get("unified"), hardware.get("ceiling")
        if ceiling is not None or not isinstance(memory, Fact):
            return ceiling
        if isinstance(unified, Fact) and unified.value:
            return memory
        count = hardware.get("devices", Fact(1, Assumed("one device, as nothing says how many")))
        return budget.machine_bytes(memory, count, limit) if isinstance(limit, Fact) else None
