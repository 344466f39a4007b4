"""The derived values of an LMDeploy server: blocks from a share of what the release means by it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Union

from kvlint.facts import Fact, Unknown, Value, quantity
from kvlint.models.architecture import Architecture
from kvlint.records import fields
from kvlint.sizing.lmdeploy import sizes as lmdeploy
from kvlint.sizing.lmdeploy.sizes import Settings
from kvlint.sizing.refusals import start_refusal
from kvlint.sizing.server import Sizing
from kvlint.sizing.spans import Refusal

READ = "LMDeploy's messages.py, cache_engine.py and TurboMind of each release"


def settings(given: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in given.items() if name in known})


@quantity("checks", unit="", formula="what the configuration refuses", source=READ)
def checks(release: str, **given: Any) -> Union[Refusal, bool]:
    found = lmdeploy.refused(settings({"release": release, **given}))
    return True if found is None else found


@quantity("price", unit="", formula="KV heads over devices", source=READ)
def price(architecture: Architecture, release: str, **given: Any) -> Union[int, Refusal, Unknown]:
    return lmdeploy.bytes_per_token_per_device(architecture, settings({"release": release, **given}))


@quantity("kv_bytes_per_token_per_device", unit="B", formula="layers × KV heads × (keys, values, scales)", source=READ)
def per_device(architecture: Architecture, release: str, **given: Any) -> int | Unknown:
    found = lmdeploy.bytes_per_token_per_device(architecture, settings({"release": release, **given}))
    return (
        Unknown("engine.layout", found.reason, "settings that the engine accepts")
        if isinstance(found, Refusal)
        else found
    )


@quantity("kv_bytes_per_token", unit="B", formula="the same on one device", source=READ)
def one_copy(architecture: Architecture, release: str, **given: Any) -> int | Unknown:
    return per_device.plain(architecture, release, **{**given, "tp": 1})


@quantity("blocks", unit="blocks", formula="⌊share × memory ÷ bytes of a block⌋, or the number itself", source=READ)
def blocks(architecture: Architecture, release: str, free: int, device_memory: int, **given: Any) -> int | Unknown:
    found = lmdeploy.pool_blocks(architecture, settings({"release": release, **given}), free, device_memory)
    return Unknown("engine.layout", found.reason, "[[hardware]] available_kv") if isinstance(found, Refusal) else found


@quantity("blocks", unit="blocks", formula="⌊pool_bytes ÷ bytes of a block⌋", source="arithmetic")
def blocks_of_bytes(pool_bytes: int, per_token: int, block_size: int) -> int:
    return pool_bytes // (per_token * block_size)


@quantity("pool_tokens", unit="tokens", formula="blocks × block_size, over all ranks", source=READ)
def pool_tokens(blocks: int, block_size: int, data_parallel: int) -> int:
    return blocks * block_size * data_parallel


@quantity("pool_bytes", unit="B", formula="blocks × block_size × bytes of a token", source="arithmetic")
def pool_bytes(blocks: int, block_size: int, per_token: int) -> int:
    return blocks * block_size * per_token


@quantity(
    "batch_width", unit="sequences", formula="by the device's name", source="lmdeploy/utils.py, get_max_batch_size"
)
def default_width(release: str, device_name: str) -> int | Unknown:
    return lmdeploy.batch_size(Settings(release, device_name=device_name))


@quantity("free", unit="B", formula="device memory - context - weights of a device", source="arithmetic")
def free_after(device_memory: int, non_torch: int, weights: int) -> int:
    return max(0, device_memory - non_torch - weights)


@quantity("weights_bytes_per_device", unit="B", formula="weights ÷ TP", source="arithmetic")
def weights_per_device(weights_bytes: int, tensor_parallel: int) -> int:
    return -(-weights_bytes // max(1, tensor_parallel))


@quantity("request_kv_bytes", unit="B", formula="whole blocks of the window, of one device", source=READ)
def request_kv_bytes(window: int, per_token: int, block_size: int) -> int:
    return -(-window // block_size) * block_size * per_token


@quantity("slot_bytes", unit="B", formula="window × bytes of a token, one copy", source="arithmetic")
def slot_bytes(window: int, per_token: int) -> int:
    return window * per_token


@quantity("max_concurrency", unit="requests", formula="pool_tokens ÷ window in whole blocks", source=READ)
def max_concurrency(pool_tokens: int, window: int, block_size: int) -> Fraction:
    return Fraction(pool_tokens, max(1, -(-window // block_size) * block_size))


@quantity("longest_window", unit="tokens", formula="the smaller of one rank's pool and model_window", source=READ)
def longest_window(blocks: int, block_size: int, model_window: int) -> int:
    return min(blocks * block_size, model_window)


class LmdeploySizing(Sizing):
    """LMDeploy: one pool of blocks a rank, filled from what the weights leave."""

    def _stated(self) -> dict[str, Value[Any]]:
        found: dict[str, Value[Any]] = self.server.settings["stated"].value  # type: ignore[union-attr]
        return found

    def start_refusal(self) -> Value[str] | None:
        """Why the engine stops, whatever the memory."""
        model = self.server.settings.get("model")

        def refused(outcome: Any) -> Refusal | None:
            return outcome if isinstance(outcome, Refusal) else None

        found = start_refusal(checks(**self._stated()), refused, model)
        return (
            found
            if found is not None
            else start_refusal(price(self.server.architecture, **self._stated()), refused, model)
        )

    def kv_bytes_per_token(self) -> Value[int]:
        return one_copy(self.server.architecture, **self._stated())

    def kv_bytes_per_token_per_device(self) -> Value[int]:
        return per_device(self.server.architecture, **self._stated())

    def slot_bytes(self) -> Value[int]:
        return slot_bytes(self.need("window"), self.need("kv_bytes_per_token"))

    def request_kv_bytes(self) -> Value[int]:
        return request_kv_bytes(
            self.need("window"), self.need("kv_bytes_per_token_per_device"), self.need("block_size")
        )

    def least_pool_bytes(self) -> Value[int]:
        """A longer session is cut to the pool; from 0.15 TurboMind fails the request that does not fit (engine.cc)."""
        return self.need("request_kv_bytes")

    def weights_bytes_per_device(self) -> Value[Any]:
        return weights_per_device(self.need("weights_bytes"), self.need("tensor_parallel"))

    def budget_bytes(self) -> Value[Any]:
        return self.server.hardware["device_memory"]

    def blocks(self) -> Value[Any]:
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return blocks_of_bytes(measured, self.need("kv_bytes_per_token_per_device"), self.need("block_size"))
        free = self.server.hardware.get("loaded_free")
        if free is None:
            context = self.need("coefficient.non_torch_bytes")
            free = free_after(self.need("budget_bytes"), context, self.need("weights_bytes_per_device"))
        return blocks(self.server.architecture, free=free, device_memory=self.need("budget_bytes"), **self._stated())

    def pool_bytes(self) -> Value[Any]:
        measured = self.server.hardware.get("available_kv")
        if measured is not None:
            return measured
        return pool_bytes(self.need("blocks"), self.need("block_size"), self.need("kv_bytes_per_token_per_device"))

    def pool_tokens(self) -> Value[Any]:
        return pool_tokens(self.need("blocks"), self.need("block_size"), self.need("data_parallel"))

    def max_concurrency(self) -> Value[Any]:
        return max_concurrency(self.need("pool_tokens"), self.need("window"), self.need("block_size"))

    def longest_window(self) -> Value[Any]:
        longest = self.server.settings.get("model_window")
        longest = longest if isinstance(longest, Fact) else self.need("window")
        return longest_window(self.need("blocks"), self.need("block_size"), longest)
