#!/usr/bin/env python3
"""Compile the engines' flags by version.

    python scripts/build_flags.py [--facts DIR]

With `--facts` (the directory of `<engine>.flags.json` as extracted from released packages)
`data/engines/<engine>.flags.json` is written: one line an option, with the releases in which it stands.
Then `kvlint/_data/engines/<engine>.json` is compiled from it, from what people wrote by hand in
`data/engines/<engine>.hand.flags.json`, from lists of releases that were read as files in
`<engine>.read.flags.json` (`order` holds all releases, oldest first; a list read goes before one extracted), and from config
classes in `<engine>.fields.flags.json`.
Both steps are deterministic.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "data/engines"
COMPILED = ROOT / "kvlint/_data/engines"

ENGINES = {
    "vllm": "vllm",
    "mlx-lm": "mlx-lm-server",
    "vllm-mlx": "vllm-mlx",
    "sglang": "sglang",
    "llama-server": "llama-server",
    "tgi": "tgi",
    "lmdeploy": "lmdeploy",
    "trtllm": "trtllm",
    "ollama": "ollama",
}

TYPES = {
    "human_readable_int_or_auto": "human_int_or_auto",
    "nullable_str": "optional_str",
    "optional_type(str)": "optional_str",
    "optional_type(json.loads)": "json",
    "json.loads": "json_loads",
    "nullable_kvs": "kvs",
    "lambda s: s.lower().replace('-', '_')": "snake",
    "PoolerConfig.from_json": "json:PoolerConfig",
    "CompilationConfig.from_cli": "json:CompilationConfig",
    "KVTransferConfig.from_cli": "json:KVTransferConfig",
    "json_list_type": "json_list",
    "usize": "u64",
    "String": "str",
    "f32": "rust_float",
    "choice": "str",
    "path": "str",
    "flag": "bool",
    "enum": "str",
    "string": "str",
    "string2": "str",
    "removed": "str",
}
# What decides how a line is parsed; records that agree in all of it are one syntax.
SYNTAX = (
    "flags", "off", "dest", "type", "nargs", "action", "choices", "const", "required", "optional", "range", "bounds",
    "later", "entry",
)  # fmt: skip
ORDER = (*SYNTAX, "default", "computed", "env", "hint", "deprecated", "note")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=Path, help="directory of the extracted <engine>.flags.json")
    facts = parser.parse_args().facts
    for engine, stem in ENGINES.items():
        source = SOURCES / f"{engine}.flags.json"
        if facts:
            source.write_text(render(gather(engine, facts / f"{stem}.flags.json", facts)), encoding="utf-8")
        target = COMPILED / f"{engine}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(compile_engine(engine), separators=(",", ":"), ensure_ascii=False) + "\n"
        target.write_text(text, encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def gather(engine: str, path: Path, facts: Path) -> dict[str, Any]:
    """The extracted lists of one engine, folded: each distinct record once, with the releases in which it stands."""
    raw = read(path)
    lists = raw["versions"] if engine != "ollama" else ollama_versions(raw)
    releases = list(lists)
    options = fold(releases, {release: [record(engine, entry) for entry in lists[release]] for release in releases})
    env = read(facts / "vllm.env.json")["versions"] if engine == "vllm" else {}
    return {
        "engine": engine,
        "source": raw.get("source") or raw.get("extraction") or raw.get("package") or raw.get("version_info"),
        "releases": releases,
        "options": options,
        "environment": {"releases": list(env), "names": fold_names(env)} if env else None,
    }


def ollama_versions(raw: dict[str, Any]) -> dict[str, Any]:
    """Oldest first, under the first release of each span; `default` of older spans only says what differs."""
    spans = reversed(raw["versions"].items())
    return {re.match(r"v[\d.]+(?:-rc\d+)?", title).group(): entries for title, entries in spans}  # type: ignore[union-attr]


def record(engine: str, raw: dict[str, Any]) -> dict[str, Any]:
    """One extracted entry in our own terms."""
    if engine == "ollama":
        return prune(
            {"flags": [], "env": raw["env"], "type": raw["type"], "default": raw["default"], "note": raw.get("note")}
        )
    flags = list(raw["flags"])
    action = {None: None, "argparse.BooleanOptionalAction": "BooleanOptionalAction"}.get(
        raw.get("action"), raw.get("action")
    )
    kind = raw.get("type")
    entry: dict[str, Any] = {"flags": flags, "off": list(raw.get("negated") or raw.get("negated_flags") or [])}
    entry["dest"] = raw.get("dest") or dest_of(flags)
    entry["type"] = TYPES.get(str(kind), str(kind or "str"))
    if str(kind).startswith("lambda s: ["):
        entry["type"] = "device_ids"
    entry["nargs"] = raw.get("nargs")
    entry["action"] = action
    choices = raw.get("choices")
    entry["choices"] = choices if isinstance(choices, list) else None
    entry["optional"] = raw.get("optional") or None
    entry["hint"] = raw.get("metavar_choices")
    entry["field"] = raw.get("field")
    default = raw.get("default")
    symbolic = isinstance(default, str) and bool(re.match(r"expr:|factory:|_declared_default", default))
    entry["default"] = None if symbolic else default
    entry["computed"] = bool(symbolic or raw.get("default_resolved_at_runtime")) or None
    entry["const"] = raw.get("const")
    entry["required"] = raw.get("required") or None
    entry["env"] = raw.get("env")
    entry["deprecated"] = bool(raw.get("deprecated") or raw.get("deprecated_in_help")) or None
    if engine == "llama-server":
        llama(raw, entry)
    elif engine == "tgi":
        tgi(entry)
    elif engine == "trtllm":
        trtllm(raw, entry)
    return finish(entry)


def finish(entry: dict[str, Any]) -> dict[str, Any]:
    switch = entry["type"] == "bool" and entry["action"] in (None, "store_true") and entry["nargs"] in (None, 0)
    if switch or entry["action"] in ("DeprecatedStoreTrueAction", "DeprecatedAction", "DeprecatedStoreConstAction"):
        entry["action"] = "store_true"
    if entry["action"] in ("store_true", "BooleanOptionalAction"):
        entry.update(nargs=0, type="bool")
    if entry["action"] == "StoreBoolean":
        entry.update(type="truth", action=None, nargs="?")
    if entry["action"] not in ("store_true", "BooleanOptionalAction", "append", "help", "removed"):
        entry["action"] = None
    return prune(entry)


def llama(raw: dict[str, Any], entry: dict[str, Any]) -> None:
    kind, value = raw["type"], raw.get("value")
    entry["default"] = raw["default"]
    if kind == "flag" and value is None:
        entry["nargs"] = 0
    elif kind == "bool":
        entry.update(action="BooleanOptionalAction", nargs=0)
    else:
        entry["nargs"] = 2 if kind == "string2" else None
        entry["type"] = {"int": "leading_int", "flag": "leading_int", "float": "leading_float"}.get(kind, "str")
        words = re.fullmatch(r"[\[{]([a-z|,]+)[\]}]", value or "")
        if words:
            named = re.split(r"[|,]", words[1])
            switch = {"on|off": "on_off", "on|off|auto": "on_off_auto"}.get("|".join(named))
            entry["type"] = switch or "str"
            entry["choices"] = None if switch else named
    if kind == "removed":
        entry["note"] = "removed"


def tgi(entry: dict[str, Any]) -> None:
    if entry["type"] == "bool" and entry["nargs"] is None:
        entry["type"] = "rust_bool"
    if entry["choices"]:
        entry["type"] = "str"
    if entry["nargs"] == "*":
        entry.update(nargs=None, action="append")


def trtllm(raw: dict[str, Any], entry: dict[str, Any]) -> None:
    if entry["nargs"] == "multiple":
        entry.update(nargs=None, action="append")
    if raw["type"] == "json":
        entry["type"] = "json"


def dest_of(flags: list[str]) -> str:
    name = next((flag for flag in flags if flag.startswith("--")), flags[0])
    return name.lstrip("-").replace("-", "_")


def prune(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value is not None and value != []}


def fold(releases: list[str], lists: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Equal records of several releases as one, `in` holding the first and last release of each run."""
    stands: dict[str, set[int]] = {}
    for at, release in enumerate(releases):
        for entry in lists[release]:
            stands.setdefault(json.dumps(entry, sort_keys=True), set()).add(at)
    entries = [(json.loads(text), sorted(at)) for text, at in stands.items()]
    entries.sort(key=lambda item: (item[0].get("flags") or [item[0].get("env", "")], item[1]))
    return [{**entry, "in": [[releases[a], releases[b]] for a, b in runs(at)]} for entry, at in entries]


def fold_names(lists: dict[str, list[str]]) -> dict[str, Any]:
    releases = list(lists)
    names = sorted({name for found in lists.values() for name in found})
    return {
        name: [[releases[a], releases[b]] for a, b in runs([at for at, r in enumerate(releases) if name in lists[r]])]
        for name in names
    }


def runs(numbers: list[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def render(data: dict[str, Any]) -> str:
    """JSON with one option a line, so that a change of one reads as one line."""
    lines = []
    for key, value in data.items():
        if key == "options":
            rows = ",\n".join("    " + json.dumps(entry, ensure_ascii=False) for entry in value)
            lines.append(f'  "options": [\n{rows}\n  ]')
        elif value is not None:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def compile_engine(engine: str) -> dict[str, Any]:
    """What ships: the extracted options with the hand-written corrections applied, releases as bits of `mask`."""
    source, hand = read(SOURCES / f"{engine}.flags.json"), read(SOURCES / f"{engine}.hand.flags.json")
    releases = list(source["releases"])
    more = read(SOURCES / f"{engine}.read.flags.json")
    lists: dict[str, list[dict[str, Any]]] = {}
    for part in (source, more):
        unfold(part, lists)
    releases = more.get("order", releases)
    for release, recipe in hand.get("releases", {}).items():
        releases.insert(releases.index(recipe["like"]), release)
        lists[release] = derive(lists, recipe)
    fields = Fields(releases, read(SOURCES / f"{engine}.fields.flags.json"))
    for release in releases:
        lists[release] = [fields.apply(release, entry) for entry in lists[release]]
        correct(releases, release, lists[release], hand.get("corrections", []))
    rows = pack(releases, {release: [finish(entry_defaults(e)) for e in lists[release]] for release in releases})
    kept = ("builds", "removed", "guards", "shape_ranges", "dialect")
    environment = more.get("environment") or source.get("environment")
    return {
        "engine": engine,
        "releases": releases,
        "options": rows,
        "shapes": fields.shapes(used_classes(rows)),
        "environment": masks(releases, environment) if environment else {},
        **{key: hand[key] for key in kept if key in hand},
    }


def unfold(source: dict[str, Any], lists: dict[str, list[dict[str, Any]]]) -> None:
    """Add the options of each release that a source holds."""
    releases = list(source.get("releases", ()))
    lists.update({release: [] for release in releases})
    for entry in source.get("options", ()):
        bare = {key: value for key, value in entry.items() if key != "in"}
        for release in spread(releases, entry["in"]):
            lists[release].append(dict(bare))


def entry_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    return {"action": None, "nargs": None, "type": "str", **entry}


def derive(lists: dict[str, list[dict[str, Any]]], recipe: dict[str, Any]) -> list[dict[str, Any]]:
    """A release that was read by hand: like a neighbour, without some options and with some of another neighbour."""
    without, take = set(recipe["without"]), set(recipe["take"])
    kept = [dict(entry) for entry in lists[recipe["like"]] if not without & set(entry.get("flags", []))]
    kept += [dict(entry) for entry in lists[recipe["from"]] if take & set(entry.get("flags", []))]
    return kept


def spread(releases: list[str], spans: list[list[str]]) -> list[str]:
    return [r for first, last in spans for r in releases[releases.index(first) : releases.index(last) + 1]]


def within(releases: list[str], release: str, first: str | None, last: str | None) -> bool:
    at = releases.index(release)
    return (first is None or at >= releases.index(first)) and (last is None or at <= releases.index(last))


def correct(
    releases: list[str], release: str, entries: list[dict[str, Any]], corrections: list[dict[str, Any]]
) -> None:
    """Apply corrections in order.  A correction selects by `flags`, `where` (equal keys), `having` and `from`..`to`."""
    for correction in corrections:
        if not within(releases, release, correction.get("from"), correction.get("to")):
            continue
        if "add" in correction:
            entries.append(dict(correction["add"]))
            continue
        for entry in entries:
            chosen = bool(set(correction["flags"]) & set(entry.get("flags", []))) if "flags" in correction else True
            chosen = chosen and correction.get("having", "flags") in entry
            if chosen and all(entry.get(key) == value for key, value in correction.get("where", {}).items()):
                entry.update(correction.get("set", {}))
                if correction.get("inverses"):
                    inverses(entry)
                if correction.get("negations") and not entry.get("off"):
                    entry["off"] = ["--no-" + flag[2:] for flag in entry["flags"] if flag.startswith("--")]
                if correction.get("later") == "hint":
                    entry["later"] = entry["hint"]


def inverses(entry: dict[str, Any]) -> None:
    """`--enable-x` switches also as `--disable-x`, and the reverse (vLLM from 0.33)."""
    pairs = (("--enable-", "--disable-"), ("--disable-", "--enable-"))
    turned = [new + flag[len(old) :] for flag in entry["flags"] for old, new in pairs if flag.startswith(old)]
    entry["off"] = [*entry.get("off", []), *turned]


class Fields:
    """Config classes by release: which options take None, the ranges checked after parsing, the keys of JSON options."""

    def __init__(self, releases: list[str], data: dict[str, Any]) -> None:
        self.releases = releases
        self.classes: dict[str, Any] = data.get("classes", {})

    def apply(self, release: str, entry: dict[str, Any]) -> dict[str, Any]:
        owner, _, name = str(entry.pop("field", "")).partition(".")
        for facts, spans in self.classes.get(owner, {}).get("fields", {}).get(name, []):
            if release in spread(self.releases, spans):
                entry.update({key: facts[key] for key in ("optional", "range") if key in facts})
        return entry

    def shapes(self, names: set[str]) -> dict[str, Any]:
        """For each class its keys and, as a mask, the releases that refuse others."""
        found = {}
        for name in sorted(names & set(self.classes)):
            keys = {}
            for key, rows in self.classes[name]["fields"].items():
                keys[key] = mask(self.releases, [r for _, spans in rows for r in spread(self.releases, spans)])
            strict = mask(self.releases, spread(self.releases, self.classes[name]["strict"]))
            found[name] = {"strict": strict, "keys": keys}
        return found


def used_classes(rows: list[dict[str, Any]]) -> set[str]:
    return {row["type"][len("json:") :] for row in rows if str(row.get("type")).startswith("json:")}


def mask(releases: list[str], chosen: list[str]) -> int:
    return sum(1 << releases.index(release) for release in set(chosen))


def masks(releases: list[str], environment: dict[str, Any]) -> dict[str, Any]:
    """Names of variables; each list was read at some releases only and holds from there to the next one read."""
    known = environment["releases"]
    found = {}
    for name, spans in environment["names"].items():
        read_at = spread(known, spans)
        found[name] = mask(releases, [r for r in releases if nearest_read(releases, known, r) in read_at])
    return found


def nearest_read(releases: list[str], known: list[str], release: str) -> str:
    before = [r for r in known if releases.index(r) <= releases.index(release)]
    return before[-1] if before else known[0]


def pack(releases: list[str], lists: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = fold(releases, lists)
    syntaxes: dict[str, int] = {}
    packed = []
    for row in rows:
        spans = row.pop("in")
        same = json.dumps([row.get(key) for key in SYNTAX], sort_keys=True)
        out = {key: row[key] for key in ORDER if key in row}
        out["mask"] = mask(releases, spread(releases, spans))
        out["syntax"] = syntaxes.setdefault(same, len(syntaxes))
        packed.append(out)
    return packed


if __name__ == "__main__":
    main()
