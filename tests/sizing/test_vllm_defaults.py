from __future__ import annotations

from fractions import Fraction

import pytest

from kvlint.facts import Assumed, Fact, Range, Unknown
from kvlint.models.architecture import Architecture, Attention
from kvlint.sizing.vllm import sizes as vllm
from kvlint.sizing.vllm.memory import requested_bytes

GIB = 1 << 30


def model(model_type: str = "llama", **config: object) -> Architecture:
    layers = ((Attention(8, 128, 128, window=4096),),)
    return Architecture(model_type, (), layers, 4096, 32, None, "bfloat16", None, config=config)


@pytest.mark.parametrize(
    ("release", "gib", "name", "more", "batch"),
    [
        ("0.8.5", 80, "A100-SXM4-80GB", {}, (8192, 1024)),
        ("0.9.2", 80, "NVIDIA A100-SXM4-80GB", {}, (2048, 256)),
        ("0.27.1", 80, "NVIDIA H100 80GB HBM3", {}, (8192, 1024)),
        ("0.27.1", 180, "NVIDIA B200", {}, (8192, 1024)),
        ("0.30.0", 180, "NVIDIA B200", {}, (16384, 1024)),
        ("0.30.0", 119, "NVIDIA GB10", {}, (8192, 1024)),
        ("0.33.0", 119, "NVIDIA GB10", {}, (2048, 256)),
        ("0.33.0", 24, "RTX 4090", {}, (2048, 256)),
        ("0.33.0", None, "NVIDIA A100", {}, (2048, 256)),
        ("0.33.0", 24, None, {"performance_mode": "throughput"}, (4096, 512)),
        ("0.33.0", 24, None, {"sequences": 1, "max_model_len": 1024}, (1024, 1)),
        ("0.33.0", 24, None, {"batched_tokens": 100}, (100, 100)),
        ("0.33.0", 24, None, {"batched_tokens": 100, "sequences": 400}, (100, 400)),
        ("0.33.0", 24, None, {"chunked_prefill": False, "max_model_len": 32768}, (32768, 256)),
        ("0.33.0", None, None, {"platform": "cpu", "world": 2}, (4096, 256)),
        ("0.6.0", None, None, {"max_model_len": 8192}, (8192, 256)),
        ("0.6.3", None, None, {"max_model_len": 131072}, (512, 256)),
        ("0.7.3", None, None, {"chunked_prefill": True}, (2048, 256)),
    ],
)
def test_default_batch(
    release: str, gib: int | None, name: str | None, more: dict[str, object], batch: tuple[int, int]
) -> None:
    given: dict[str, object] = {"max_model_len": 8192, "device_bytes": gib and gib * GIB, "device_name": name, **more}
    assert vllm.default_batch(release, **given) == batch  # type: ignore[arg-type]


def test_the_batch_follows_the_device() -> None:
    missing = vllm.default_batch("0.33.0", max_model_len=8192)
    assert isinstance(missing, Unknown)
    assert missing.missing == "hardware.memory"
    between = vllm.default_batch("0.33.0rc1", max_model_len=8192, device_bytes=119 * GIB, device_name="NVIDIA GB10")
    assert isinstance(between, Unknown)
    assert between.missing == "engine.version"
    assert vllm.default_batch("0.33.0rc1", max_model_len=8192, device_bytes=80 * GIB, device_name="H100") == (
        8192,
        1024,
    )


@pytest.mark.parametrize(
    ("arch", "length"),
    [
        (model(max_position_embeddings=40960), 40960),
        (model(seq_length=2048, max_position_embeddings=8192), 2048),
        (model("cohere", max_position_embeddings=8192, model_max_length=131072), 131072),
        (model(max_position_embeddings=32768, rope_scaling={"type": "dynamic", "factor": 2.0}), 65536),
        (model(max_position_embeddings=131072, rope_scaling={"rope_type": "llama3", "factor": 8.0}), 131072),
        (
            model("gemma3_text", max_position_embeddings=131072, rope_scaling={"rope_type": "linear", "factor": 8.0}),
            131072,
        ),
        (
            model(
                max_position_embeddings=163840,
                rope_scaling={"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
            ),
            163840,
        ),
        (model(max_position_embeddings=262144, rope_parameters={"rope_type": "default", "rope_theta": 1}), 262144),
        (
            model(
                max_position_embeddings=131072,
                rope_parameters={
                    "full_attention": {"rope_type": "default"},
                    "sliding_attention": {"rope_type": "default"},
                },
            ),
            131072,
        ),
    ],
)
def test_derived_window(arch: Architecture, length: int) -> None:
    for release in ("0.9.2", "0.20.2", "0.33.0"):
        assert vllm.derived_max_model_len(arch, release) == length
        assert vllm.default_max_model_len(arch, release) == length


def test_windows_that_need_more() -> None:
    assert isinstance(vllm.derived_max_model_len(model(), "0.33.0"), Unknown)
    assert vllm.derived_max_model_len(model(max_position_embeddings=8192), "0.33.0", tokenizer_length=2048) == 2048
    cut = vllm.derived_max_model_len(model(max_position_embeddings=8192), "0.33.0", disable_sliding_window=True)
    assert cut == 4096


def test_yarn_written_in_by_hand_is_not_multiplied_any_more() -> None:
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    arch = model(max_position_embeddings=32768, rope_scaling=rope)
    assert vllm.derived_max_model_len(arch, "0.29.0") == 131072  # vllm/config/model.py:2457
    assert vllm.derived_max_model_len(arch, "0.30.0") == 32768  # vllm/config/model.py:2475
    assert isinstance(vllm.derived_max_model_len(arch, "0.30.0rc1"), Unknown)


def test_longrope_defaults_to_its_original_length() -> None:
    arch = model(
        "phi3",
        max_position_embeddings=131072,
        original_max_position_embeddings=4096,
        rope_scaling={"type": "longrope", "long_factor": [1.0]},
    )
    assert vllm.derived_max_model_len(arch, "0.33.0") == 131072
    assert vllm.default_max_model_len(arch, "0.33.0") == 4096
    assert isinstance(vllm.default_max_model_len(arch, "0.20.2"), Unknown)


def test_weights_of_one_device() -> None:
    """Experts are spread over data-parallel ranks too, the rest only over tensors and stages."""
    assert vllm.weights_per_device.plain(100, 80, 2, 1, 4, True, 0) == 80 // 8 + 20 // 2
    assert vllm.weights_per_device.plain(100, 80, 2, 1, 4, False, 0) == 50
    assert vllm.weights_per_device.plain(101, 0, 2, 1, 1, False, 1) == 50
    assert vllm.weights_per_device.plain(10, 0, 1, 1, 1, False, 100) == 0


def test_the_pool_is_a_range() -> None:
    def fact(value: object) -> Fact[object]:
        return Fact(value, Assumed("test"))

    activation = vllm.activation_bytes(fact(8192), fact(Range(500_000, 600_000, 700_000)), fact(8192), fact(0))
    pool = vllm.available_kv(fact(72 * GIB), fact(16 * GIB), activation, fact(GIB), fact(0))
    assert isinstance(pool, Fact)
    assert pool.value == Range(*(55 * GIB - 8192 * each for each in (700_000, 600_000, 500_000)))


def test_graphs_are_in_the_fraction_since_0_20() -> None:
    assert vllm.graphs_in_budget("0.19.1") is False
    assert vllm.graphs_in_budget("0.19.1", estimate=True) is True
    assert vllm.graphs_in_budget("0.20.0") is True  # the default in vllm/envs.py
    assert vllm.graphs_in_budget("0.20.2", enforce_eager=True) is False
    assert isinstance(vllm.graphs_in_budget("0.20.0rc1"), Unknown)


def test_the_fraction_is_of_total_memory() -> None:
    assert requested_bytes(100, Fraction("0.925")) == 92


def test_who_prefills_gated_delta_nets() -> None:
    assert vllm.gdn_prefill_backend((9, 0), 128) == "flashinfer"
    assert vllm.gdn_prefill_backend((8, 9), 128) == "triton"
    assert vllm.gdn_prefill_backend((12, 0), 128, 13) == "flashinfer"
    assert vllm.gdn_prefill_backend((12, 0), 128, 12) == "triton"
    assert vllm.gdn_prefill_backend((12, 0), 64) == "triton"
    assert isinstance(vllm.gdn_prefill_backend((10, 0), 128), Unknown)
