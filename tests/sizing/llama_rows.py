"""The observed starts of llama-server, as settings and metadata (read from ../shared; absent elsewhere)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kvlint.sizing.llama.sizes import Settings

OBSERVED = Path(__file__).resolve().parents[2] / "../shared/observed"
MEASURED = OBSERVED / "llama-server-measured.jsonl"
LOGGED = OBSERVED / "llama-server.jsonl"
MODELS = OBSERVED / "llama-server-models"

NUMBERS = {
    "-c": "context", "--ctx-size": "context", "--n_ctx": "context", "-np": "parallel", "--parallel": "parallel", "-ub": "ubatch",
    "--ubatch-size": "ubatch", "-b": "batch", "--batch-size": "batch", "--kv-unified-per-slot": "per_slot",
    "--spec-draft-n-max": "drafted", "--cache-ram": "cache_ram", "-ctxcp": "checkpoints", "-fitc": "fit_context",
}  # fmt: skip
WORDS = {
    "-ctk": "cache_type_k", "-ctv": "cache_type_v", "--cache-type-k": "cache_type_k", "--cache-type-v": "cache_type_v",
    "--spec-draft-type-k": "draft_type_k", "--spec-draft-type-v": "draft_type_v", "-ctkd": "draft_type_k",
    "-ctvd": "draft_type_v",
}  # fmt: skip
SWITCHES = {
    "-kvu": ("unified", True), "--kv-unified": ("unified", True), "-no-kvu": ("unified", False),
    "--no-kv-unified": ("unified", False), "--swa-full": ("swa_full", True), "--embedding": ("embedding", True),
}  # fmt: skip
VARIABLES = {
    "LLAMA_ARG_N_PARALLEL": "-np", "LLAMA_ARG_CTX_SIZE": "-c", "LLAMA_ARG_KV_UNIFIED": "-kvu", "LLAMA_ARG_UBATCH": "-ub",
    "LLAMA_ARG_CACHE_TYPE_K": "-ctk", "LLAMA_ARG_CACHE_TYPE_V": "-ctv", "LLAMA_ARG_SWA_FULL": "--swa-full",
    "LLAMA_ARG_FLASH_ATTN": "-fa", "LLAMA_ARG_CACHE_RAM": "--cache-ram", "LLAMA_ARG_NO_KV_UNIFIED": "-no-kvu",
}  # fmt: skip
FLASH = {"on": "on", "off": "off", "auto": "auto", "1": "on", "0": "off", "-1": "auto", "true": "on", "false": "off",
         "enabled": "on", "disabled": "off"}  # fmt: skip


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def model(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def settings(row: dict[str, Any]) -> Settings:
    """What the parser would hand over; the parser itself is tested elsewhere."""
    values: dict[str, Any] = {}
    words: list[str] = []
    for variable, value in row["env"].items():
        if variable in VARIABLES:
            words += [VARIABLES[variable], *([] if VARIABLES[variable] in SWITCHES else [value])]
    words += row["args"]
    for flag, value in zip(words, [*words[1:], ""], strict=False):
        if flag in NUMBERS:
            found = re.match(r"-?\d+", value)
            if found:
                values[NUMBERS[flag]] = int(found.group())
        elif flag in WORDS:
            values[WORDS[flag]] = value
        elif flag in SWITCHES:
            name, choice = SWITCHES[flag]
            values[name] = choice
        elif flag in ("-fa", "--flash-attn") and value in FLASH:
            values["flash_attention"] = FLASH[value]
        elif flag in ("-fit", "--fit"):
            values["fit"] = value == "on"
        elif flag == "--spec-type":
            values["spec_types"] = tuple(value.split(","))
        elif flag in ("-md", "--model-draft", "--spec-draft-model"):
            values["draft"] = model(value.removesuffix(".gguf"))
    return Settings(**values)


def metadata(row: dict[str, Any]) -> dict[str, Any]:
    """GGUF keys of a public log's `arch`: the names that llama.cpp prints, under an architecture that reads those keys."""
    arch = row["arch"]
    layers = arch["n_layer"]
    latent = row["reported"]["kv_k_mib"] is not None and row["reported"]["kv_v_mib"] is None
    if "ssm_d_inner" in arch:
        return hybrid(arch, layers, row["reported"]["n_ctx"])
    if latent:
        return keys("deepseek2", row, {
            "attention.head_count": arch["n_head_kv"], "attention.head_count_kv": 1,
            "attention.kv_lora_rank": arch["kv_lora_rank"],
            "attention.key_length": arch["kv_lora_rank"] + arch["n_rot"], "attention.value_length": arch["kv_lora_rank"],
            "attention.key_length_mla": arch["n_embd_head_k"], "attention.value_length_mla": arch["n_embd_head_v"],
        })  # fmt: skip
    heads = {
        "attention.head_count": 1, "attention.head_count_kv": arch.get("n_head_kv", 0),
        "attention.key_length": arch["n_embd_head_k"], "attention.value_length": arch["n_embd_head_v"],
    }  # fmt: skip
    if "n_layer_full" not in arch:
        return keys("llama", row, heads)
    kept = arch["n_layer_full"] + arch.get("n_layer_swa", layers - arch["n_layer_full"])
    kept = arch.get("n_layer_kv", kept)
    flags = [1] * (kept - arch["n_layer_full"]) + [0] * arch["n_layer_full"] + [0] * (layers - kept)
    full, sliding = (arch.get(name, arch.get("n_head_kv")) for name in ("n_head_kv_full", "n_head_kv_swa"))
    return keys("gemma4", row, {
        **heads,
        "attention.head_count_kv": [sliding if flag else full for flag in flags],
        "attention.key_length_swa": arch.get("n_embd_head_k_swa", arch["n_embd_head_k"]),
        "attention.value_length_swa": arch.get("n_embd_head_v_swa", arch["n_embd_head_v"]),
        "attention.sliding_window": arch.get("n_swa") or 512, "attention.sliding_window_pattern": flags,
        "attention.shared_kv_layers": layers - kept,
    })  # fmt: skip


def hybrid(arch: dict[str, Any], layers: int, trained: int | None) -> dict[str, Any]:
    states = arch["n_layer_recurrent"]
    values = {
        "block_count": layers + 1, "nextn_predict_layers": 1, "context_length": trained or 262144, "embedding_length": 4096,
        "attention.head_count": 32, "attention.head_count_kv": arch.get("n_head_kv", 0),
        "attention.key_length": arch.get("n_embd_head_k", 0), "attention.value_length": arch.get("n_embd_head_v", 0),
        "attention.recurrent_layers": [1] * states + [0] * (layers + 1 - states),
        "ssm.conv_kernel": arch["ssm_d_conv"], "ssm.inner_size": arch["ssm_d_inner"], "ssm.state_size": arch["ssm_d_state"],
        "ssm.group_count": arch["ssm_n_group"], "ssm.time_step_rank": 1,
    }  # fmt: skip
    return {"general.architecture": "qwen35", **{f"qwen35.{key}": value for key, value in values.items()}}


def keys(name: str, row: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    common = {
        "block_count": row["arch"]["n_layer"],
        "context_length": row["reported"]["n_ctx"] or 4096,
        "embedding_length": 4096,
    }
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in {**common, **values}.items()}}
