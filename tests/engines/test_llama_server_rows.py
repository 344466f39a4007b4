"""Every observed start of llama-server, as a command line in a script: what `show` and `check` make of it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from kvlint.pipeline import Options, check_files, evaluate, memory_project
from kvlint.reports import show

sys.path.append(str(Path(__file__).resolve().parents[1] / "sizing"))

from llama_rows import LOGGED, MEASURED, MODELS, metadata, model, rows
from test_llama_logged import started

pytestmark = pytest.mark.skipif(not MEASURED.is_file(), reason="the observed starts are not here")

# How each refusal begins in the log, and the rule that says it.
REFUSALS = {
    "invalid value for n_parallel": "malformed-value",
    "Unsupported cache type": "malformed-value",
    "expected value": "malformed-value",
    "environment variable": "malformed-value",
    "n_ctx_seq == 0": "malformed-value",
    "does not divide n_embd_head": "malformed-value",
    "n_seq_max must be": "malformed-value",
    "quantized V cache requires flash_attn": "quantized-v-without-flash-attention",
    "different K": "kv-types-differ",
    "has been removed": "removed-flag",
    "invalid argument": "unknown-flag",
}


def files(name: str, args: list[str], env: dict[str, str], shapes: dict[str, Any]) -> dict[str, str]:
    variables = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in env.items())
    script = f"#!/bin/sh\n{variables}exec llama-server -m {name}.gguf {shlex.join(args)}\n"
    return {"run.sh": script, **{f"{each}.json": json.dumps(shape) for each, shape in shapes.items()}}


def config(shapes: dict[str, Any], build: str) -> str:
    models = "".join(f'[[model]]\nid = "{name}.gguf"\nconfig = "{name}.json"\n' for name in shapes)
    return f'{models}[[engine]]\nmatch = "**"\nversion = "{build}"\n'


def shown(name: str, args: list[str], env: dict[str, str], shapes: dict[str, Any], build: str) -> dict[str, Any]:
    evaluation = evaluate(memory_project(files(name, args, env, shapes), config(shapes, build)))
    assert evaluation.findings.internal == []
    document = json.loads(show.render_json(evaluation))
    server: dict[str, Any] = document["servers"][0]
    return server


def nominal(found: dict[str, Any]) -> Any:
    value = found["value"]
    return value["nominal"] if isinstance(value, dict) else value


@pytest.mark.parametrize("row", rows(MEASURED) if MEASURED.is_file() else [], ids=lambda row: row["id"])
def test_measured(row: dict[str, Any]) -> None:
    name = row["model"].split()[0]
    shapes = {path.stem: model(path.stem) for path in MODELS.iterdir()}
    reported = row["reported"]
    if reported["outcome"] != "starts":
        wanted = next(rule for words, rule in REFUSALS.items() if words in reported["outcome"])
        report = check_files(files(name, row["args"], row["env"], shapes), config(shapes, row["version"]), Options())
        assert wanted in [finding.rule for finding in report.findings if finding.severity == "error"]
        return
    server = shown(name, row["args"], row["env"], shapes, row["version"])
    assert nominal(server["settings"]["batch_width"]) == reported["n_slots"]
    assert nominal(server["settings"]["window"]) == reported["n_ctx_slot"]
    assert nominal(server["settings"]["unified_kv"]) == (reported["kv_unified"] == "true")
    total = sum(cache["mib"] for cache in reported["caches"]) + (reported["recurrent_mib"] or 0)
    printed = 0.005 * (1 + len(reported["caches"]))  # each size is printed with two decimals
    assert nominal(server["sizing"]["pool_bytes"]) / 2**20 == pytest.approx(total, abs=printed)


AGREEING = [row for row in rows(LOGGED) if row["formula"]["agree"] is True] if LOGGED.is_file() else []


def line(row: dict[str, Any]) -> tuple[list[str], str]:
    """llama-server's own lines as they are; other programs', and those of unknown builds, as what their log says they made."""
    given, build = started(row)
    own = row["engine"] == "llama-server" and "fork" not in row["note"] and str(row["version"]).startswith("b")
    if own:
        args = list(row["args"])
        at = next((at for at, word in enumerate(args) if word in ("-m", "--model")), None)
        return (args if at is None else args[:at] + args[at + 2 :]), row["version"]
    args = ["-c", str(given.context), "-np", str(given.parallel)]
    flags = {"-ctk": given.cache_type_k, "-ctv": given.cache_type_v, "-ub": given.ubatch, "-b": given.batch}
    for flag, value in flags.items():
        args += [flag, str(value)] if value is not None else []
    args += ["-fa", given.flash_attention] if given.flash_attention in ("on", "off") and build != 6325 else []
    args += ["--swa-full"] * given.swa_full + ["-kvu"] * bool(given.unified and (given.parallel or 1) > 1)
    return args, f"b{build}"


@pytest.mark.parametrize("row", AGREEING, ids=lambda row: row["id"])
def test_logged(row: dict[str, Any]) -> None:
    """All the memory that the log names, within 1 %; a draft's own caches are not in it."""
    reported = row["reported"]
    args, build = line(row)
    if build == "b6325":
        args += ["-fa", "off"]
    server = shown("model", args, {}, {"model": metadata(row)}, build)
    pool = nominal(server["sizing"]["pool_bytes"]) / 2**20
    total = reported.get("kv_total_mib")
    if total is None:
        parts = (reported["kv_mib"], reported["swa_kv_mib"], reported["recurrent_mib"])
        total = sum(part for part in parts if part is not None)
    if "--spec-type" in args:
        pool -= 4 * 2 * 256 * 2 * reported["n_ctx"] / 2**20  # one layer that drafts: 4 heads of 256, 16 bits, K and V
    if reported["swa_kv_mib"] is None and "n_layer_full" in row["arch"] and "kv_total_mib" not in reported:
        # the log's excerpt names the growing cache alone
        pool = server["sizing"]["kv_bytes_per_token"]["value"] * reported["n_ctx"] / 2**20
    assert pool == pytest.approx(total, rel=0.01)
