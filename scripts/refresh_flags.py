#!/usr/bin/env python3
"""Compare the engines' flags with an engine itself, and refresh what is read from vLLM's config classes.

    python scripts/refresh_flags.py diff ENGINE RELEASE --tree DIR [--file PATH]...   # a source tree, by syntax tree
    python scripts/refresh_flags.py diff ENGINE RELEASE --module mlx_lm.server        # an installed engine's own parser
    python scripts/refresh_flags.py fields RELEASE=DIR...                             # writes data/engines/vllm.fields.flags.json

`--tree` runs nothing of what it reads.  `--module` imports the module and calls its `main` up to the parser's `parse_args`.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from build_flags import COMPILED, SOURCES, read, runs

DEFAULT_FILES = {
    "vllm": ("vllm/engine/arg_utils.py", "vllm/entrypoints/**/cli_args.py", "vllm/entrypoints/cli/serve.py"),
    "mlx-lm": ("mlx_lm/server.py",),
    "vllm-mlx": ("vllm_mlx/cli.py",),
    "sglang": ("sglang/srt/server_args.py", "sglang/srt/arg_groups/**/*.py"),
    "lmdeploy": ("lmdeploy/cli/serve.py", "lmdeploy/cli/utils.py"),
    "trtllm": ("tensorrt_llm/commands/serve.py",),
}
# Config classes that are always built before the server starts, so that their ranges refuse a start.
CHECKED = ("CacheConfig", "SchedulerConfig", "ParallelConfig", "ModelConfig", "UVAOffloadConfig", "OffloadConfig")
# A range written in the class's own code, before the fields declared one: vllm/config.py, _verify_args.
BY_HAND = {
    ("CacheConfig", "gpu_memory_utilization"): {"le": 1},
    ("CacheConfig", "cpu_offload_gb"): {"ge": 0},
    ("SchedulerConfig", "max_num_batched_tokens"): {"ge": 1},
}
LIMITS = ("ge", "gt", "le", "lt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    diff = commands.add_parser("diff")
    diff.add_argument("engine")
    diff.add_argument("release")
    diff.add_argument("--tree", type=Path)
    diff.add_argument("--file", action="append", default=[])
    diff.add_argument("--module")
    fields = commands.add_parser("fields")
    fields.add_argument("trees", nargs="+", metavar="RELEASE=DIR")
    args = parser.parse_args()
    if args.command == "fields":
        write_fields([tuple(tree.split("=", 1)) for tree in args.trees])
        return
    found = installed(args.module) if args.module else declared(args.tree, args.file or DEFAULT_FILES[args.engine])
    for line in differences(args.engine, args.release, found, declared_only=not args.module):
        print(line)


def differences(
    engine: str, release: str, found: dict[str, dict[str, Any]], declared_only: bool = False
) -> Iterator[str]:
    """One line for each spelling that the data lacks, has too many, or has otherwise.

    `declared_only`: spellings that a parser makes up itself (`--no-x`, `--help`) are not expected.
    """
    data = json.loads((COMPILED / f"{engine}.json").read_text(encoding="utf-8"))
    bit = 1 << data["releases"].index(release)
    known = {}
    for row in data["options"]:
        if row["mask"] & bit:
            known.update(dict.fromkeys(row.get("flags", []), row))
            if not declared_only:
                known.update(dict.fromkeys(row.get("off", []), row))
    for spelling in sorted(set(found) - set(known) - {"-h", "--help"}):
        yield f"+ {spelling} {found[spelling]}"
    for spelling in sorted(set(known) - set(found) - ({"-h", "--help"} if declared_only else set())):
        yield f"- {spelling}"
    for spelling in sorted(set(known) & set(found)):
        for key, value in found[spelling].items():
            if value is not None and known[spelling].get(key, value) != value:
                yield f"~ {spelling} {key}: {known[spelling].get(key)} -> {value}"


def installed(module: str) -> dict[str, dict[str, Any]]:
    """Spellings of the parser that a module's `main` builds."""

    class Stop(Exception):
        pass

    caught: list[argparse.ArgumentParser] = []

    def stop(self: argparse.ArgumentParser, *_: Any, **__: Any) -> Any:
        caught.append(self)
        raise Stop

    original = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = stop  # type: ignore[method-assign]
    try:
        importlib.import_module(module).main()
    except Stop:
        pass
    finally:
        argparse.ArgumentParser.parse_args = original  # type: ignore[method-assign]
    return {spelling: described(action) for action in actions(caught[0]) for spelling in action.option_strings}


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction) and "serve" in action.choices:
            yield from actions(action.choices["serve"])
        else:
            yield action


def described(action: argparse.Action) -> dict[str, Any]:
    choices = list(action.choices) if action.choices is not None else None
    return {"dest": action.dest, "nargs": action.nargs, "choices": choices}


def declared(tree: Path, patterns: list[str] | tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Spellings given to `add_argument` calls with literal names, and fields of vLLM's `FrontendArgs`."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted({path for pattern in patterns for path in tree.glob(pattern)}):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
                names = [literal(arg) for arg in node.args]
                facts = {
                    key.arg: literal(key.value) for key in node.keywords if key.arg in ("dest", "nargs", "choices")
                }
                found.update({name: facts for name in names if isinstance(name, str)})
            elif isinstance(node, ast.FunctionDef) and node.name == "serve":
                found.update(decorated(node))
            elif isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):
                found.update({f"--{name.replace('_', '-')}": {} for name, _, _ in annotated(node)})
    return found


def decorated(function: ast.FunctionDef) -> Iterator[tuple[str, dict[str, Any]]]:
    """Spellings given to click's decorators of a command, or to a wrapper around them; `--x/--no-x` are two."""
    for call in function.decorator_list:
        name = getattr(call.func, "attr", getattr(call.func, "id", "")) if isinstance(call, ast.Call) else ""
        if not name.endswith("option") or not isinstance(call, ast.Call):
            continue
        for text in (literal(arg) for arg in call.args):
            if isinstance(text, str) and text.startswith("-"):
                yield from ((spelling, {}) for spelling in text.split("/"))


def literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def annotated(node: ast.ClassDef) -> Iterator[tuple[str, str, ast.expr | None]]:
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id, ast.unparse(item.annotation), item.value


def write_fields(trees: list[tuple[str, ...]]) -> None:
    releases = list(read(COMPILED / "vllm.json")["releases"])
    trees = sorted(trees, key=lambda pair: releases.index(pair[0]))
    used = used_fields()
    by_class: dict[str, dict[str, list[tuple[str, dict[str, Any]]]]] = {}
    strict: dict[str, list[str]] = {}
    for release, directory in trees:
        for name, forbids, fields in config_classes(Path(directory)):
            if name not in used:
                continue
            if forbids:
                strict.setdefault(name, []).append(release)
            for field, facts in fields:
                by_class.setdefault(name, {}).setdefault(field, []).append((release, facts))
    read_at = [release for release, _ in trees]
    classes = {
        name: {
            "strict": spans(read_at, releases, strict.get(name, [])),
            "fields": {field: folded(read_at, releases, rows) for field, rows in sorted(fields.items())},
        }
        for name, fields in sorted(by_class.items())
    }
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(facts)}" for name, facts in classes.items())
    text = '{\n  "source": "annotations and Field() calls of vllm/config in each release",\n'
    (SOURCES / "vllm.fields.flags.json").write_text(f'{text}  "classes": {{\n{lines}\n  }}\n}}\n', encoding="utf-8")


def used_fields() -> set[str]:
    names = set()
    for entry in read(SOURCES / "vllm.read.flags.json")["options"]:
        names.add(str(entry.get("field", "")).partition(".")[0])
        names.add(str(entry.get("type", "")).partition("json:")[2])
    return names - {""}


def folded(read_at: list[str], releases: list[str], rows: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    groups: dict[str, list[str]] = {}
    for release, facts in rows:
        groups.setdefault(json.dumps(facts, sort_keys=True), []).append(release)
    return [[json.loads(text), spans(read_at, releases, found)] for text, found in groups.items()]


def spans(read_at: list[str], releases: list[str], chosen: list[str]) -> list[list[str]]:
    """Runs over the releases that were read; one between two equal neighbours counts with them."""
    positions = [read_at.index(release) for release in chosen]
    return [[read_at[a], read_at[b]] for a, b in runs(positions)]


def config_classes(tree: Path) -> Iterator[tuple[str, bool, list[tuple[str, dict[str, Any]]]]]:
    """Each config class: its name, whether unknown keys are refused, its fields."""
    utils = tree / "vllm/config/utils.py"
    by_default = utils.exists() and 'merged_config = ConfigDict(extra="forbid")' in utils.read_text(encoding="utf-8")
    for path in [*tree.glob("vllm/config.py"), *sorted(tree.glob("vllm/config/**/*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef):
                continue
            decorators = " ".join(ast.unparse(item) for item in node.decorator_list)
            if "config" in decorators or "dataclass" in decorators:
                forbids = "forbid" in decorators or (by_default and decorators.startswith("config"))
                yield node.name, forbids, [(name, facts) for name, facts in fields_of(node) if not name.startswith("_")]


def fields_of(node: ast.ClassDef) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, annotation, value in annotated(node):
        if annotation.startswith("ClassVar"):
            continue
        facts: dict[str, Any] = {}
        if ("None" in annotation or "Optional" in annotation) and "bool" not in annotation:
            facts["optional"] = True
        limits = declared_limits(value) or (BY_HAND.get((node.name, name), {}))
        if limits and node.name in CHECKED:
            facts["range"] = limits
        yield name, facts


def declared_limits(value: ast.expr | None) -> dict[str, Any]:
    if not isinstance(value, ast.Call):
        return {}
    found = {key.arg: literal(key.value) for key in value.keywords if key.arg in LIMITS}
    return {key: limit for key, limit in found.items() if key and limit is not None}


if __name__ == "__main__":
    main()
