"""Bytes of one recurrent layer's state in vLLM, on one device.

Shapes: vllm/model_executor/layers/mamba/mamba_utils.py (executed release by release).
"""

from __future__ import annotations

from kvlint.models.architecture import Architecture, State
from kvlint.sizing.vllm.releases import Rules, data
from kvlint.sizing.vllm.settings import MODEL_BYTES, Outcome, Refusal, Settings, model_bytes, unknown_layout

_SPLIT_KINDS = ("gdn", "kda", "mamba1", "mamba2", "short-conv", "lightning")


def state_bytes(part: State, arch: Architecture, settings: Settings, rules: Rules) -> int | Outcome:
    """Convolution and recurrent state of one layer, before padding to the attention page."""
    if rules.state_layers == "unknown" or (rules.state_layers == "mamba2" and part.kind != "mamba2"):
        return unknown_layout("where this release keeps recurrent states was not worked out")
    if part.kind not in _SPLIT_KINDS:
        return unknown_layout(f"vLLM's layout of {part.kind} states was not worked out")
    types = _types(part, arch, settings, rules)
    if not isinstance(types, tuple):
        return types
    drafted = settings.speculative_tokens if part.kind in rules.draft_convolution else 0
    if settings.speculative_tokens and part.kind in ("mamba2", "kda") and not drafted:
        return unknown_layout(f"{part.kind} states with speculative tokens were not worked out for this release")
    columns = part.conv_kernel - 1 + drafted if part.conv_channels else 0
    split = _on_one_device(part, settings.tensor_parallel)
    if split is None:
        return Refusal(f"the recurrent layers cannot be split over {settings.tensor_parallel} devices")
    channels, recurrent = split
    return channels * columns * types[0] + recurrent * types[1]


def _on_one_device(part: State, devices: int) -> tuple[int, int] | None:
    """Convolution channels and recurrent elements; None where they do not divide.

    Mamba2 repeats groups until there is one for every device.
    """
    channels = part.conv_channels
    if part.kind == "mamba2" and part.groups % devices:
        channels += 2 * (devices - part.groups) * part.key_dim
    heads = devices if part.heads == 1 else part.heads  # one head: the state is split by channels
    if channels % devices or part.recurrent % devices or heads % devices:
        return None
    return channels // devices, part.recurrent // devices


def _types(part: State, arch: Architecture, settings: Settings, rules: Rules) -> tuple[int, int] | Outcome:
    """Bytes of one element of the convolution and of the recurrent state."""
    named = settings.mamba_cache_dtype
    if rules.state_layers == "mamba2":
        named = settings.kv_cache_dtype
        if named != "auto" and named not in MODEL_BYTES:
            size = data()["kv_bytes"].get(named)
            return (int(size), int(size)) if size else unknown_layout(f"states of the type {named} were not worked out")
    convolution = model_bytes(arch, settings) if named == "auto" else MODEL_BYTES.get(named)
    if not isinstance(convolution, int):
        return convolution or unknown_layout(f"states of the type {named} were not worked out")
    if part.kind == "kda":
        return convolution, 4
    wanted = _recurrent_type(part, arch, settings, rules)
    recurrent = convolution if wanted == "auto" else MODEL_BYTES.get(wanted)
    return (convolution, recurrent) if recurrent else unknown_layout(f"states of the type {wanted} were not worked out")


def _recurrent_type(part: State, arch: Architecture, settings: Settings, rules: Rules) -> str:
    if rules.state_layers == "mamba2" or part.kind == "lightning":
        return "auto"
    if settings.mamba_ssm_cache_dtype != "auto":
        return settings.mamba_ssm_cache_dtype
    models = data()["models"]
    if arch.model_type in models["nemotron"] and rules.nemotron_state != "model":
        return str(arch.config.get("mamba_ssm_cache_dtype") or rules.nemotron_state)
    if arch.model_type in models["qwen_state"] and rules.qwen_state:
        return str(arch.config.get("mamba_ssm_dtype") or "auto")
    return "auto"
