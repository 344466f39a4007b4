"""The derived values of a trtllm-serve server (PyTorch backend): a share of what the weights leave, in whole blocks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Union

from kvlint.facts import Fact, Unknown, Value, quantity
from kvlint.models.architecture import Architecture
from kvlint.records import fields
from kvlint.sizing.refusals import start_refusal
from kvlint.sizing.server import Sizing
from kvlint.sizing.spans import Refusal
from kvlint.sizing.trtllm import sizes as trtllm
from kvlint.sizing.trtllm.sizes import Settings

READ = "tensorrt_llm/_torch/pyexecutor/resource_manager.py and _util.py"


def settings(given: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in given.items() if name in known})


@quantity("price", unit="", formula="bytes of a token by cache type and ranks", source=READ)
def price(architecture: Architecture, **given: Any) -> Union[Fraction, Refusal, Unknown]:
    return trtllm.bytes_per_token_per_rank(architecture, settings(given))


@quantity(
    "kv_bytes_per_token_per_device",
    unit="B",
    formula="attention layers × KV heads of a rank × (key + value)",
    source=READ,
)
def per_rank(architecture: Architecture, **given: Any) -> int | Unknown:
    found = trtllm.bytes_per_token_per_rank(architecture, settings(given))
    if isinstance(found, Refusal):
        return Unknown("engine.layout", found.reason, "settings that the engine accepts")
    return found if isinstance(found, Unknown) else -(-found.numerator // found.denominator)


@quantity("kv_bytes_per_token", unit="B", formula="the same on one rank", source=READ)
def one_copy(architecture: Architecture, **given: Any) -> int | Unknown:
    return per_rank.plain(architecture, **{**given, "tp_size": 1, "pp_size": 1})


@quantity(
    "pool_tokens",
    unit="tokens",
    formula="least of fraction × free, stated bytes and stated tokens; in blocks",
    source=READ,
)
def tokens_of_memory(architecture: Architecture, free: int, **given: Any) -> int | Unknown:
    found = trtllm.pool_tokens(architecture, settings(given), free)
    return Unknown("engine.layout", found.reason, "[[hardware]] available_kv") if isinstance(found, Refusal) else found


@quantity("pool_tokens", unit="tokens", formula="⌊pool_bytes ÷ bytes of a block⌋ × block", source="arithmetic")
def tokens_of_bytes(pool_bytes: int, per_token: int, block_size: int) -> int:
    return pool_bytes // (per_token * block_size) * block_size


@quantity(
    "pool_tokens", unit="tokens", formula="tokens of one rank × attention data-parallel ranks", source="arithmetic"
)
def over_ranks(tokens: int, data_parallel: int) -> int:
    return tokens * data_parallel


@quantity("pool_bytes", unit="B", formula="tokens of a rank × bytes of a token", source="arithmetic")
def pool_bytes(tokens: int, per_token: int) -> int:
    return tokens * per_token


@quantity("free", unit="B", formula="device memory - context - weights of a rank", source="arithmetic")
def free_after(device_memory: int, non_torch: int, weights: int) -> int:
    return max(0, device_memory - non_torch - weights)


@quantity("weights_bytes_per_device", unit="B", formula="weights ÷ (TP × PP)", source="arithmetic")
def weights_per_device(weights_bytes: int, tensor_parallel: int, pipeline_parallel: int) -> int:
    return -(-weights_bytes // max(1, tensor_parallel * pipeline_parallel))


@quantity("request_kv_bytes", unit="B", formula="whole blocks of the window, of one rank", source=READ)
def request_kv_bytes(window: int, per_token: int, block_size: int) -> int:
    return -(-window // block_size) * block_size * per_token


@quantity("slot_bytes", unit="B", formula="window × bytes of a token, one copy", source="arithmetic")
def slot_bytes(window: int, per_token: int) -> int:
    return window * per_token


@quantity(
    "max_concurrency", unit="requests", formula="pool_tokens ÷ window in whole blocks, at most batch_width", source=READ
)
def max_concurrency(pool_tokens: int, window: int, block_size: int, batch_width: int) -> Fraction:
    return min(Fraction(batch_width), Fraction(pool_tokens, max(1, -(-window // block_size) * block_size)))


@quantity("longest_window", unit="tokens", formula="the smaller of one rank's pool and model_window", source=READ)
def longest_window(tokens: int, model_window: int) -> int:
    return min(tokens, model_window)


class TrtllmSizing(Sizing):
    """trtllm-serve.  Values of a device are those of one rank."""

    def _stated(self) -> dict[str, Value[Any]]:
        found: dict[str, Value[Any]] = self.server.settings["stated"].value  # type: ignore[union-attr]
        return found

    def start_refusal(self) -> Value[str] | None:
        """Why the engine stops, whatever the memory."""

        def refused(outcome: Any) -> Refusal | None:
            return outcome if isinstance(outcome, Refusal) else None

        return start_refusal(
            price(self.server.architecture, **self._stated()), refused, self.server.settings.get("model")
        )

    def kv_bytes_per_token(self) -> Value[int]:
        return one_copy(self.server.architecture, **self._stated())

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return per_rank(self.server.architecture, **self._stated())

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self.need("window"), self.need("kv_bytes_per_token"))

    def request_kv_bytes(self) -> Value[int]:
        return request_kv_bytes(
            self.need("window"), self.need("kv_bytes_per_token_per_device"), self.need("block_size")
        )

    def weights_bytes_per_device(self) -> Value[Any]:
        return weights_per_device(
            *(self.need(name) for name in ("weights_bytes", "tensor_parallel", "pipeline_parallel"))
        )

    def budget_bytes(self) -> Value[Any]:
        return self.server.hardware["device_memory"]

    def rank_tokens(self) -> Value[Any]:
        """Tokens of the pool of one rank."""
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return tokens_of_bytes(measured, self.need("kv_bytes_per_token_per_device"), self.need("block_size"))
        free = self.server.hardware.get("loaded_free")
        if free is None:
            context = self.need("coefficient.non_torch_bytes")
            free = free_after(self.need("budget_bytes"), context, self.need("weights_bytes_per_device"))
        return tokens_of_memory(self.server.architecture, free=free, **self._stated())

    def pool_bytes(self) -> Value[Any]:
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return measured
        return pool_bytes(self.need("rank_tokens"), self.need("kv_bytes_per_token_per_device"))

    def pool_tokens(self) -> Value[Any]:
        return over_ranks(self.need("rank_tokens"), self.need("data_parallel"))

    def max_concurrency(self) -> Value[Any]:
        parts = ("pool_tokens", "window", "block_size", "batch_width")
        return max_concurrency(*(self.need(name) for name in parts))

    def longest_window(self) -> Value[Any]:
        longest = self.server.settings.get("model_window")
        return longest_window(self.need("rank_tokens"), longest if isinstance(longest, Fact) else self.need("window"))
