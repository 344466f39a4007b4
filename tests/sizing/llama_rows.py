"""The observed starts of llama-server, as settings and metadata (read from ../shared; absent elsewhere)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from kvlint.sizing.llama import Settings

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
    "--spec-draft-type-k": "draft_type_k", "--spec-draft-type-v": "draft_type_v", "-ctkd": "draft_type_k", "-ctvd": "draft_type_v",
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
    for flag, value in zip(words, [*words[1:], ""], strict=True):
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
