#!/usr/bin/env python3
"""Build data/models and kvlint/_data/models* from a directory of gathered facts.

    scripts/build_models.py --facts ../shared/facts

Reads models/*.json and *.jsonl and engines/mlx-lm-cache-classes.json there, and the hand-written tables of data/models/*.toml
here.  The same facts give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from kvlint.models.architecture import Architecture, Attention, UnknownArchitecture  # noqa: E402
from kvlint.models.catalogue import says_bits  # noqa: E402
from kvlint.models.config import architecture, text_config  # noqa: E402
from kvlint.models.selection import selected  # noqa: E402
from kvlint.models.weights import quantization  # noqa: E402

DATA, COMPILED = ROOT / "data" / "models", ROOT / "kvlint" / "_data"

SUFFIX = re.compile(
    r"[-_](mlx|MLX)?[-_]?(\d+(\.\d+)?[Bb]it|bf16|BF16|fp16|MXFP4|MXFP8|NVFP4|mxfp4|8bit-MXFP8|MXFP4-Q8)$"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=Path, required=True)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file would change")
    arguments = parser.parse_args()
    changed = False
    for path, content in outputs(arguments.facts):
        if path.exists() and path.read_bytes() == content:
            continue
        changed = True
        print(path.relative_to(ROOT))
        if not arguments.check:
            path.write_bytes(content)
    sys.exit(1 if changed and arguments.check else 0)


def outputs(facts: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file that this script makes, with its content.  The families come first: the catalogue is read with them."""
    classes = cache_classes(facts / "engines" / "mlx-lm-cache-classes.json")
    yield COMPILED / "models-families.json", dump(families())
    yield COMPILED / "models-transformers.json", dump(tables("transformers.toml"))
    yield COMPILED / "models-repositories.json", dump(tables("repositories.toml"))
    yield DATA / "mlx_lm_classes.json", dump(classes, indent=1)
    yield COMPILED / "models-mlx.json", dump({**tables("mlx_lm.toml"), **classes})
    rows = sorted((key.encode(), row) for key, row in catalogue(facts / "models").items())
    yield COMPILED / "models-catalogue.tsv", b"".join(key + b"\t" + dump(row) for key, row in rows)


def dump(value: Any, indent: int | None = None) -> bytes:
    separators = (",", ": " if indent else ":")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=False, sort_keys=False).encode() + b"\n"


def tables(name: str) -> dict[str, Any]:
    return tomllib.loads((DATA / name).read_text())


def families() -> dict[str, Any]:
    """One number a type into the list of families; a type may be in one table only."""
    read = tables("families.toml")
    types: dict[str, int] = {}
    for number, family in enumerate(read["family"]):
        for name in family.pop("types"):
            if name in types:
                sys.exit(f"data/models/families.toml: {name} is in two tables")
            types[name] = number
    return {"types": types, "families": read["family"]} | {
        key: read[key] for key in ("composite", "renamed", "nested", "classes", "unread")
    }


def cache_classes(path: Path) -> dict[str, Any]:
    """For each model file, its cache classes from each release on in which they changed."""
    releases = json.loads(path.read_text())["versions"]
    found: dict[str, list[dict[str, Any]]] = {}
    for version, files in releases.items():
        for file, entry in files.items():
            entries = found.setdefault(file, [])
            if not entries or entries[-1]["classes"] != entry["cache"]:
                entries.append({"since": version, "classes": entry["cache"]})
    return {"newest": list(releases)[-1], "classes": dict(sorted(found.items()))}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def catalogue(models: Path) -> dict[str, dict[str, Any]]:
    """Rows by lower-case id: own configurations, then plain scraped shapes, then aliases, then exact sizes of MLX files."""
    rows: dict[str, dict[str, Any]] = {}
    shapes: dict[str, Architecture] = {}
    for index in lines(models / "INDEX.jsonl"):
        config = without_layout_of_a_copy(index["id"], json.loads((models / index["file"]).read_text()))
        beside = models / index["file"].replace(".json", ".hf_quant_config.json")
        if beside.exists():
            config["hf_quant_config"] = json.loads(beside.read_text())
        rows[index["id"].lower()] = configured(index, config)
        try:
            shapes[index["id"]] = architecture(config)
        except UnknownArchitecture:
            continue
    count_alike(rows, shapes)
    for scraped in lines(models / "SHAPES_SCRAPED.jsonl"):
        found = plain(scraped)
        if found and scraped["id"].lower() not in rows:
            rows[scraped["id"].lower()] = found
    for alias in lines(models / "ALIASES.jsonl"):
        rows.setdefault(alias["id"].lower(), borrowed(alias))
    for file in lines(models / "WEIGHT_BYTES_MLX.jsonl"):
        add_file(rows, shapes, file)
    return rows


def without_layout_of_a_copy(model: str, config: dict[str, Any]) -> dict[str, Any]:
    """Some sources quantized a model for a build of their own; a repository with AWQ or GPTQ weights says so by its name."""
    found = quantization(config, text_config(config))
    if found is None or found.method not in ("awq", "gptq") or says_bits(model):
        return config
    return {key: value for key, value in config.items() if key != "quantization_config"}


def configured(index: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"id": index["id"], "source": index["source"], "confidence": index["confidence"]}
    fields, nested, text = selected(config)
    row["fields"] = fields
    if nested:
        row |= {"nested": nested, "text": text}
    numbers = {
        "parameters": index["parameters"] if counted(index, config) else None,
        "text_parameters": index.get("parameters_text_only"),
        "hub_parameters": index.get("parameters_hub"),
        "context": index.get("max_context_hub"),
    }
    return row | {key: value for key, value in numbers.items() if value}


def counted(index: dict[str, Any], config: dict[str, Any]) -> bool:
    """Whether the count is exact: summed from the shapes, or the hub's own of a checkpoint that packs no words, unrounded.

    Of a model that also speaks, engines load the part that thinks, and the count is of the whole.
    """
    if "talker_config" in config:
        return False
    if str(index.get("parameters_source", "")).startswith("sum of numel"):
        return True
    packed = quantization(config, text_config(config)) is not None
    return bool(index["parameters"]) and index["parameters"] % 1_000_000 != 0 and not packed


def count_alike(rows: dict[str, dict[str, Any]], shapes: dict[str, Architecture]) -> None:
    """A repository without an exact count has that of one with the same layers, widths, vocabulary and experts."""
    counts: dict[Any, int] = {}
    for model, found in shapes.items():
        if "parameters" in rows[model.lower()]:
            counts.setdefault(likeness(found), rows[model.lower()]["parameters"])
    for model, found in shapes.items():
        row = rows[model.lower()]
        if "parameters" not in row and likeness(found) in counts:
            row["parameters"] = counts[likeness(found)]


def likeness(found: Architecture) -> Any:
    names = (
        "intermediate_size",
        "moe_intermediate_size",
        "num_experts",
        "num_local_experts",
        "n_routed_experts",
        "n_shared_experts",
    )
    widths = tuple(repr(found.config.get(name)) for name in names)
    return (
        found.model_type,
        found.layers,
        found.heads,
        found.hidden_size,
        found.vocab_size,
        widths,
        "vision_config" in found.root,
    )


def plain(scraped: dict[str, Any]) -> dict[str, Any] | None:
    """A scraped shape, where the source says plain full attention and the shape reads as exactly that."""
    if not scraped["plain_full_attention"]:
        return None
    names = (
        "model_type",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "hidden_size",
        "vocab_size",
    )
    fields = {key: scraped[key] for key in names if scraped.get(key) is not None} | {"sliding_window": None}
    try:
        found = architecture(fields)
    except UnknownArchitecture:
        return None
    part = Attention(scraped["num_key_value_heads"], scraped["head_dim"], scraped["head_dim"])
    if found.layers != ((part,),) * scraped["num_hidden_layers"]:
        return None
    row = {"id": scraped["id"], "source": scraped["source"], "confidence": "scraped", "shape": fields}
    return row | with_numbers(scraped)


def borrowed(alias: dict[str, Any]) -> dict[str, Any]:
    row = {"id": alias["id"], "source": alias["source"], "confidence": "same shape", "like": alias["same_shape_as"]}
    label = alias.get("quantization") or (alias["format"] if alias["format"] != "gguf" else None)
    return row | ({"label": label} if label else {}) | with_numbers(alias)


def with_numbers(row: dict[str, Any]) -> dict[str, Any]:
    found = {"hub_parameters": row.get("parameters_hub"), "context": row.get("context_length")}
    return {key: value for key, value in found.items() if value}


def forget_count(rows: dict[str, dict[str, Any]], model: str) -> None:
    """Where a file has less than a byte for each weight that the hub counts, its count bounds no layout of that name."""
    for row in rows.values():
        if row["confidence"] == "same shape" and row["id"].split("/")[-1] == model.split("/")[-1]:
            row.pop("hub_parameters", None)


def add_file(rows: dict[str, dict[str, Any]], shapes: dict[str, Architecture], file: dict[str, Any]) -> None:
    """The exact size of a repository's files; its shape where the name without its suffix and the sizes agree with one model."""
    row = rows.setdefault(
        file["id"].lower(), {"id": file["id"], "source": file["source"], "confidence": "weights only"}
    )
    row["label"] = file["quantization"]
    if not file["quantization"] and file["weight_bytes"] < row.get("hub_parameters", 0):
        forget_count(rows, file["id"])
    if not file["rounded"]:
        row["file_bytes"] = file["weight_bytes"]
        row["file_source"] = file["source"]
    if any(key in row for key in ("fields", "shape", "like")):
        return
    name = SUFFIX.sub("", file["id"].split("/")[1]).lower()
    for model, found in shapes.items():
        if model.split("/")[1].lower() == name and agrees(found, file):
            row |= {"like": model, "confidence": "same shape", "context": file["context_length"]}
            return


def agrees(found: Architecture, file: dict[str, Any]) -> bool:
    return len(found.layers) == file["n_layers"] and found.hidden_size == file["hidden_size"]


if __name__ == "__main__":
    main()
