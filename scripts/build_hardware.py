"""Compile device and instance facts: `python scripts/build_hardware.py FACTS/hardware.json`.

Writes data/devices.json (ours, with sources) and kvlint/_data/devices.json (what ships: names, memory, instances).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Names that clouds use for more than one product; the facts list them under one of these.
SHARED_NAMES = {"A100 80GB": ["a100"], "V100 16GB": ["v100"]}


def device(row: dict[str, Any]) -> dict[str, Any]:
    kept = {
        "product": row["product"],
        "vendor": row["vendor"],
        "names": [*row["names"], *SHARED_NAMES.get(row["product"], [])],
        "nominal_gib": row["memory_gib_nominal"],
        "driver_mib": row["memory_mib_reported_by_driver"],
        "usable_gib": row["memory_gib_usable_reported"],
        "usable_gib_unseen": row.get("memory_gib_usable_guess"),
        "capability": row.get("compute_capability"),
        "unified": "unified" in (row["product"] + (row.get("note") or "")),
        "note": row.get("note"),
        "sources": row["sources"],
    }
    return {key: value for key, value in kept.items() if value not in (None, False)}


def instance(row: dict[str, Any]) -> dict[str, Any]:
    kept = {
        "instance": row["instance"],
        "gpus": row["gpus"],
        "product": row["product"],
        "label_mib": row.get("memory_mib_per_gpu_label"),
        "host_mib": row.get("host_memory_mib"),
        "source": row["source"],
    }
    return {key: value for key, value in kept.items() if value is not None}


def apple(chip: dict[str, Any]) -> list[dict[str, Any]]:
    slug = chip["chip"].lower().replace(" ", "-")
    return [
        {
            "product": f"Apple {chip['chip']} {size} GB",
            "vendor": "apple",
            "names": [f"apple-{slug}-{size}gb"],
            "nominal_gib": size,
            "driver_mib": size * 1024,
            "unified": True,
            "sources": ["the memory that the name states; it is shared by processor and graphics"],
        }
        for size in chip["ram_gb_options"]
    ]


def main(path: str) -> None:
    facts = json.loads(Path(path).read_text(encoding="utf-8"))
    devices = [device(row) for row in facts["gpus"]] + [d for chip in facts["apple"]["chips"] for d in apple(chip)]
    data = {"devices": devices, "instances": [instance(row) for row in facts["instances"]]}
    (ROOT / "data/devices.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in (*data["devices"], *data["instances"]):
        row.pop("note", None)
        row["source"] = row.pop("sources", [row.get("source")])[0]
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    (ROOT / "kvlint/_data/devices.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
