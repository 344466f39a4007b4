"""The engines' ways of reading an argument list, one module a family."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvlint.engines.argparse import Load, Reading
    from kvlint.engines.options import Options
    from kvlint.source import Text

    Read = Callable[[Options, str, tuple[Text, ...], str | None, Load], Reading]

_MODULES = {
    "vllm": "vllm",
    "mlx-lm": "python",
    "vllm-mlx": "python",
    "sglang": "sglang",
    "llama-server": "llama",
    "tgi": "clap",
    "lmdeploy": "python",
    "trtllm": "click",
    "ollama": "click",
}
_KEY = re.compile(r"^\s*[\"']?([A-Za-z][\w.-]*)[\"']?\s*:", re.MULTILINE)


def of(engine: str) -> Read:
    """The reader of an engine's arguments."""
    reader: Read = import_module(f"kvlint.engines.dialects.{_MODULES[engine]}").read
    return reader


def signature(options: Options, flags: Iterable[str], release: str) -> tuple[Any, ...]:
    """What decides how `release` reads a list with these words.  Equal signatures give equal readings."""
    cache = options.outcomes
    base = cache.get(("", release))
    if base is None:
        table = options.at(release)
        syntaxes = tuple(option.syntax for option in (*table.positionals, *table.required))
        base = cache[("", release)] = (options.habits(release), syntaxes)
    found = [base]
    for flag in flags:
        key = (flag, release)
        outcome = cache.get(key)
        if outcome is None:
            if len(cache) > 50_000:
                cache.clear()
            outcome = cache[key] = _outcome(options, flag, release)
        found.append(outcome)
    return tuple(found)


def _outcome(options: Options, flag: str, release: str) -> Any:
    from kvlint.engines.dialects.python import optional

    table = options.at(release)
    name = re.split(r"[.=]", flag, maxsplit=1)[0]
    dashed = name.replace("_", "-") if name.startswith("--") else name
    shapes: list[Any] = ["CompilationConfig"] if flag.startswith("-O") else []
    found: list[Any] = []
    for spelling in dict.fromkeys((flag, name, dashed)):
        match = optional(table, spelling)
        if match is None or (match.option is None and not match.candidates):
            found.append(options.history(spelling, release).gone is not None)
            continue
        records = [match.option] if match.option else [table.by_spelling[s] for s in match.candidates]
        shapes += [record.type[len("json:") :] for record in records if record.type.startswith("json:")]
        found.append((match.spelling, *(record.syntax for record in records)))
    return (*found, *(options.shape(name, release) for name in shapes))


def file_flags(text: str) -> list[str]:
    """Every key of a configuration file as a flag, also switched off; more than are used does no harm."""
    keys = _KEY.findall(text)
    return [flag for key in keys for flag in (f"--{key}", f"--no-{key}")]
