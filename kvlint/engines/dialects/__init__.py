"""The engines' ways of reading an argument list, one module a family."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kvlint.patterns import regex

if TYPE_CHECKING:
    from kvlint.engines.argparse import Load, Reading
    from kvlint.engines.options import Options, OptionSet
    from kvlint.source import Text

    Read = Callable[[Options, str, tuple[Text, ...], str | None, Load], Reading]

_MODULES = {
    "vllm": "vllm",
    "mlx-lm": "python",
    "vllm-mlx": "python",
    "sglang": "sglang",
    "llama-server": "llama",
    "tgi": "clap",
    "lmdeploy": "lmdeploy",
    "trtllm": "trtllm",
    "ollama": "click",
}
_KEY = regex(r"^\s*[\"']?([A-Za-z][\w.-]*)[\"']?\s*:", re.MULTILINE)


def of(engine: str) -> Read:
    """The reader of an engine's arguments."""
    reader: Read = import_module(f"kvlint.engines.dialects.{_MODULES[engine]}").read
    return reader


_RELEVANT = (
    # Habits of a parser that matter only to lists with such a word.
    (regex(r"-O"), {"level", "mode", "optimization", "optimization_dotted"}),
    (regex(r"-O|--?c"), {"compilation_number"}),
    (regex(r"[^{]*\{"), {"json_human"}),
    (regex(r"--?[^=.]*\."), {"dotted", "dotted_dashes", "dotted_human", "dotted_json", "level", "mode"}),
    (
        regex(r"--config"),
        {"config", "config_bool", "config_entry", "config_list", "config_map"},
    ),
    (regex(r"--config"), {"config_json", "config_model", "config_no", "config_second", "config_strict"}),
    (regex(r"--model-type"), {"model_type"}),
    (regex(r"--model"), {"model_refused", "model_moved"}),
    (regex(r"--serve"), {"served_name_needs_model"}),
    (regex(r"--help="), {"help_keyword"}),
    (regex(r"--[^=]*[._]"), {"flexible"}),
)


def kind_of(entry: str | None) -> str:
    """Which of an engine's parsers an entry point leads to: a module's own, or that of `serve`."""
    return "api_server" if entry is not None and entry.endswith("api_server") else "serve"


def signatures(options: Options, words: tuple[str, ...], at: Sequence[tuple[str, str | None]]) -> list[tuple[str, Any]]:
    """For each release (with its entry point) what decides how it reads a list with these words.

    Equal signatures give equal readings.  `words`: the list in its order, then whatever a file may bring in.
    """
    wanted = _served(words) if any(entry is not None and entry.endswith("serve") for _, entry in at) else set()
    for pattern, names in _RELEVANT:
        if any(map(pattern.match, words)):
            wanted |= names
    if words and not words[0].startswith("-"):
        wanted.discard("served_name_needs_model")
    flags = tuple((word, words[i + 1 : i + 2]) for i, word in enumerate(words) if word.startswith("-"))
    dashed = tuple(flag.partition("=")[0].replace("_", "-") for flag, _ in flags)
    found = []
    awake: dict[int, bool] = {}
    for release, entry in at:
        features, base = _base(options, release, entry)
        touched = tuple(
            (id(guard), _ends(options, release, guard))
            for guard in options.guards_at(release)
            if _is_awake(options, guard, dashed, awake)
        )
        outcomes = tuple([_outcome(options, flag, following, release, entry) for flag, following in flags])
        found.append((release, (entry, base, features & wanted, touched, outcomes)))
    return found


def _served(words: tuple[str, ...]) -> set[str]:
    """Habits of a subcommand `serve` that decide where its model is."""
    first = bool(words) and (not words[0].startswith("-") or words[0].startswith("--model-type"))
    found = {"positional_model"} if first else set()
    named = any(word.partition("=")[0] == "--model-path" for word in words)
    # A file's own names are among the words, and do not count.
    return found if named and "--config" not in words else {*found, "literal_model_path"}


def _base(options: Options, release: str, entry: str | None) -> tuple[Any, ...]:
    """Habits, and what is missed when it is absent."""
    base: tuple[Any, ...] | None = options.outcomes.get(("", release, entry))
    if base is None:
        table = options.at(release, kind_of(entry))
        places = tuple((o.dest, o.nargs, o.type) for o in (*table.positionals, *table.required))
        base = options.outcomes[("", release, entry)] = (options.features(release), places)
    return base


def _is_awake(options: Options, guard: Mapping[str, Any], flags: tuple[str, ...], known: dict[int, bool]) -> bool:
    """Whether a condition may be asked: a flag of it is on the line, or it is asked of any line."""
    found = known.get(id(guard))
    if found is None:
        dests = [guard["given"]] if "given" in guard else [*guard.get("at_most", ()), *guard.get("divides", ())]
        names = [spelling for dest in dests for spelling in options.spellings(dest)]
        found = known[id(guard)] = not dests or any(_wakes(flags, name) for name in names)
    return found


def _wakes(words: tuple[str, ...], name: str) -> bool:
    """Whether one of the words may mean the flag: the beginning of it, or a short one with its value behind it."""
    return name.startswith(words) or (not name.startswith("--") and any(word.startswith(name) for word in words))


def _ends(options: Options, release: str, guard: Mapping[str, Any]) -> tuple[Any, ...]:
    """The defaults that stand in for a side of a comparison that is not on the line."""
    dests = () if guard.get("both") else (*guard.get("at_most", ()), *guard.get("divides", ())[1:])
    return tuple(options.default(dest, release) for dest in dests)


def _outcome(options: Options, flag: str, following: tuple[str, ...], release: str, entry: str | None) -> Any:
    record = _plainly(options.at(release, kind_of(entry)), flag)
    key = (flag, following, record) if record is not None else (flag, following, release, entry)
    outcome = options.outcomes.get(key)
    if outcome is None:
        if len(options.outcomes) > 50_000:
            options.outcomes.clear()
        outcome = options.outcomes[key] = _resolve(options, flag, following, release, entry)
    return outcome


def _plainly(table: OptionSet, flag: str) -> int | None:
    """The record of a flag that is spelt in full and means the same in all releases of the record."""
    name = flag.partition("=")[0]
    option = table.find(name) if name.startswith("--") and not ("_" in name or "." in name) else None
    return id(option) if option is not None and not option.type.startswith("json:") else None


def _resolve(options: Options, flag: str, following: tuple[str, ...], release: str, entry: str | None) -> Any:
    """What the word means, and what its value becomes where it takes one."""
    from kvlint.engines.dialects.common import effect
    from kvlint.engines.dialects.python import matched

    table = options.at(release, kind_of(entry))
    name = re.split(r"[.=]", flag, maxsplit=1)[0]
    dashed = name.replace("_", "-") if name.startswith("--") else name
    found: list[Any] = []
    if flag.startswith("-O"):
        found.append(options.shape("CompilationConfig", release))
    explicit = flag.partition("=")[2:] if "=" in flag else following
    for spelling in dict.fromkeys((flag, name, dashed)):
        match = matched(table, spelling)
        if match is None or (match.option is None and not match.candidates):
            gone = options.history(spelling, release).gone is not None
            found.append((gone, gone and all(record.nargs != 0 for record in options.known(spelling))))
        elif match.option is None:
            found.append(tuple((s, record.nargs == 0) for s in match.candidates if (record := table.find(s))))
        else:
            found.append((match.spelling, match.at, effect(options, release, match.option, match.spelling, explicit)))
    return tuple(found)


def file_flags(text: str) -> list[str]:
    """Every key of a configuration file as a flag, also switched off; more than are used does no harm."""
    keys = _KEY.findall(text)
    return [flag for key in keys for flag in (f"--{key}", f"--no-{key}")]
