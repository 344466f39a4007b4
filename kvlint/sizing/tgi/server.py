"""The derived values of a Text Generation Inference server: its limits, and the pool that it sizes after a warm-up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Union

from kvlint.engines import TGI_CONTAINERS, repository
from kvlint.facts import Fact, Range, Unknown, Value, high, quantity
from kvlint.models.architecture import Architecture
from kvlint.records import fields
from kvlint.sizing.refusals import start_refusal
from kvlint.sizing.server import Sizing
from kvlint.sizing.spans import Refusal
from kvlint.sizing.tgi import sizes as tgi
from kvlint.sizing.tgi.sizes import Limits, Settings

READ = "text-generation-inference, launcher and flash_causal_lm.py of each release"
PREFILL = Unknown("max_batch_prefill_tokens", "the launcher estimates it from the device", "--max-batch-prefill-tokens")


def settings(given: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in given.items() if name in known})


@quantity("limits", unit="", formula="window, input, prefill and batch, compared as the launcher does", source=READ)
def limits(release: str, **given: Any) -> Union[Limits, Refusal, Unknown]:
    """`model_window`, `pool`: tokens, where they are known."""
    unknown = Unknown("pool_tokens", "the pool is not known", "[[hardware]] available_kv")
    window = given.get("model_window", Unknown("model", "the model's positions are not known", "[[model]] config"))
    return tgi.limits(settings({"release": release, **given}), window, given.get("pool", unknown))


@quantity("window", unit="tokens", formula="the model's positions, 4,096, or the pool, by release", source=READ)
def default_window(release: str, model_window: int, pool: int, **given: Any) -> int | Unknown:
    found = tgi.limits(settings({"release": release, **given}), model_window, pool)
    if isinstance(found, Limits):
        return found.window
    return found if isinstance(found, Unknown) else Unknown("window", found.reason, "--max-total-tokens")


@quantity("batched_tokens", unit="tokens", formula="a prefill's budget, by release", source=READ)
def default_prefill(release: str, **given: Any) -> int | Unknown:
    found = limits.plain(release, **given)
    if isinstance(found, Limits):
        return found.prefill
    return found if isinstance(found, Unknown) else PREFILL


@quantity(
    "kv_bytes_per_token_per_device", unit="B", formula="layers × KV heads of a shard × (key + value)", source=READ
)
def per_shard(architecture: Architecture, release: str, **given: Any) -> int | Unknown:
    found = tgi.bytes_per_token_per_shard(architecture, settings({"release": release, **given}))
    return Unknown("engine.layout", found.reason, "fewer shards") if isinstance(found, Refusal) else found


@quantity("layout", unit="", formula="KV heads over shards", source=READ)
def price(architecture: Architecture, release: str, **given: Any) -> Union[int, Refusal, Unknown]:
    return tgi.bytes_per_token_per_shard(architecture, settings({"release": release, **given}))


@quantity("block_size", unit="tokens", formula="by the attention implementation", source=READ)
def block_size(release: str, attention: str) -> int | Unknown:
    found = tgi.block_tokens(Settings(release, attention=attention))
    return Unknown("attention", found.reason, "ATTENTION") if isinstance(found, Refusal) else found


@quantity(
    "pool_tokens",
    unit="tokens",
    formula="free after the warm-up, less a share of the device, in blocks",
    source=READ,
)
def pool_of_memory(
    architecture: Architecture, release: str, free: int, device_memory: int, activation: int, **given: Any
) -> int | Unknown:
    """The warm-up's own cache is taken from what is free and then counted again, so that it needs no place of its own."""
    found = tgi.pool_tokens(architecture, settings({"release": release, **given}), free - activation, device_memory, 0)
    return Unknown("engine.layout", found.reason, "[[hardware]] available_kv") if isinstance(found, Refusal) else found


@quantity("pool_tokens", unit="tokens", formula="⌊pool_bytes ÷ bytes of a block⌋ × block", source=READ)
def pool_of_bytes(pool_bytes: int, per_token: int, block_size: int) -> int:
    return pool_bytes // (per_token * block_size) * block_size


@quantity("pool_bytes", unit="B", formula="pool_tokens × bytes of a token on a shard", source="arithmetic")
def pool_bytes(pool_tokens: int, per_token: int) -> int:
    return pool_tokens * per_token


@quantity("free", unit="B", formula="device memory - context - weights of a shard", source="arithmetic")
def free_after(device_memory: int, non_torch: int, weights: int) -> int:
    return max(0, device_memory - non_torch - weights)


@quantity("activation", unit="B", formula="tokens of the warm-up × bytes of one", source="coefficients")
def activation(tokens: int, each: int) -> int:
    return int(tokens * each)


@quantity("weights_bytes_per_device", unit="B", formula="weights ÷ shards", source="arithmetic")
def weights_per_device(weights_bytes: int, tensor_parallel: int) -> int:
    return -(-weights_bytes // max(1, tensor_parallel))


@quantity("usable_bytes", unit="B", formula="⌊device memory × CUDA_MEMORY_FRACTION⌋", source="server/utils/dist.py")
def usable_bytes(device_memory: int, memory_fraction: Fraction) -> int:
    return int(device_memory * memory_fraction)


@quantity("kv_bytes_per_token", unit="B", formula="the same on one shard that holds the whole model", source=READ)
def one_copy(architecture: Architecture, release: str, **given: Any) -> int | Unknown:
    return per_shard.plain(architecture, release, **{**given, "num_shard": 1})


@quantity("request_kv_bytes", unit="B", formula="whole blocks of the window, of one shard", source=READ)
def request_kv_bytes(window: int, per_token: int, block_size: int) -> int:
    return -(-window // block_size) * block_size * per_token


@quantity("slot_bytes", unit="B", formula="window × bytes of a token, one copy", source="arithmetic")
def slot_bytes(window: int, per_token: int) -> int:
    return window * per_token


@quantity("max_concurrency", unit="requests", formula="pool_tokens ÷ window", source=READ)
def max_concurrency(pool_tokens: int, window: int) -> Fraction:
    return Fraction(pool_tokens, max(1, window))


@quantity("longest_window", unit="tokens", formula="the smaller of pool_tokens and model_window", source=READ)
def longest_window(pool_tokens: int, model_window: int) -> int:
    return min(pool_tokens, model_window)


class TgiSizing(Sizing):
    """TGI: one pool a shard, sized after a warm-up prefill.  Tokens are those of the server: every shard holds them all."""

    def _stated(self) -> dict[str, Value[Any]]:
        found: dict[str, Value[Any]] = self.server.settings["stated"].value  # type: ignore[union-attr]
        return found

    def _limits(self) -> Value[Any]:
        known = dict(self._stated())
        if isinstance(known.get("num_shard"), Unknown):
            del known["num_shard"]  # the limits are compared before anything is split
        window, pool = self.server.settings.get("model_window"), self.get("pool_tokens")
        if isinstance(window, Fact):
            known["model_window"] = window
        if isinstance(pool, Fact):
            known["pool"] = Fact(int(high(pool.value)), pool.origin)
        return limits(**known)

    def start_refusal(self) -> Value[str] | None:
        """Why the launcher or the router stops."""
        model = self.server.settings.get("model")

        def refused(outcome: Any) -> Refusal | None:
            return outcome if isinstance(outcome, Refusal) else None

        split = price(self.server.architecture, **self._stated())
        return start_refusal(split, refused, model) or start_refusal(self._limits(), refused, model)

    def floating(self) -> Value[str] | None:
        """Google's builds carry their release in the repository's name."""
        image = self.server.process.line.image
        return None if image is not None and repository(image.value) in TGI_CONTAINERS else super().floating()

    def kv_dtype_fault(self) -> Value[str] | None:
        """The attention that has no fp8 cache (layers/attention/kv_cache.py); other pairs depend on the system."""
        stated = self._stated()
        cache, attention = stated.get("kv_cache_dtype"), stated.get("attention")
        if not isinstance(cache, Fact) or not isinstance(attention, Fact) or attention.value != "flashdecoding":
            return None
        return Fact(f"a cache of {cache.value} needs flashinfer or paged attention", cache.origin)

    def kv_bytes_per_token(self) -> Value[int]:
        return one_copy(self.server.architecture, **self._stated())

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return per_shard(self.server.architecture, **self._stated())

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self.need("window"), self.need("kv_bytes_per_token"))

    def request_kv_bytes(self) -> Value[int]:
        return request_kv_bytes(
            self.need("window"), self.need("kv_bytes_per_token_per_device"), self.need("block_size")
        )

    def weights_bytes_per_device(self) -> Value[Any]:
        return weights_per_device(self.need("weights_bytes"), self.need("tensor_parallel"))

    def budget_bytes(self) -> Value[Any]:
        return self.server.hardware["device_memory"]

    def usable_bytes(self) -> Value[Any]:
        return usable_bytes(self.need("budget_bytes"), self.need("memory_fraction"))

    def pool_bytes(self) -> Value[Any]:
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return measured
        return pool_bytes(self.need("pool_tokens"), self.need("kv_bytes_per_token_per_device"))

    def pool_tokens(self) -> Value[Union[int, Range]]:
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return pool_of_bytes(measured, self.need("kv_bytes_per_token_per_device"), self.need("block_size"))
        free = self.server.hardware.get("loaded_free")
        if free is None:
            context = self.need("coefficient.non_torch_bytes")
            free = free_after(self.need("budget_bytes"), context, self.need("weights_bytes_per_device"))
        warm = activation(self.need("batched_tokens"), self.need("coefficient.activation_bytes_per_token"))
        return pool_of_memory(
            self.server.architecture,
            free=free,
            device_memory=self.need("budget_bytes"),
            activation=warm,
            **self._stated(),
        )

    def max_concurrency(self) -> Value[Any]:
        return max_concurrency(self.need("pool_tokens"), self.need("window"))

    def longest_window(self) -> Value[Any]:
        return longest_window(self.need("pool_tokens"), self.need("model_window"))
