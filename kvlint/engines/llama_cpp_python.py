"""`python -m llama_cpp.server`: llama.cpp's library behind a server of its own, which answers one request at a time.

llama-cpp-python==0.3.36:llama_cpp/server/settings.py.  Every setting is also a variable of its own name in capitals.
"""

from __future__ import annotations

from typing import Any

from kvlint.engines.base import Settings, World
from kvlint.engines.llama_said import NAME
from kvlint.facts import Default, Fact, Unknown, Value, Written
from kvlint.models.lookup import Model, written_id
from kvlint.source import Text
from kvlint.subjects import Problem

# ggml's numbers of types: ggml.h
TYPES = {0: "f32", 1: "f16", 2: "q4_0", 3: "q4_1", 6: "q5_0", 7: "q5_1", 8: "q8_0", 20: "iq4_nl", 30: "bf16"}
CONTEXT, BATCH, PORT, CACHE = 2048, 512, 8000, 2 << 30
TRUE = ("true", "1", "t", "yes", "y", "on")


def settings(world: World) -> Settings:
    """One slot with the whole context; sliding layers keep all of it, as the library's defaults have it."""
    from kvlint.engines.llama_server import builds, find_model, positions, refusals, start

    given = _given(world)
    values: dict[str, Value[Any] | None] = {"builds": builds(world)}
    text = given.get("model")
    model: Model | None = find_model(world, text) if text is not None else None
    if model is not None and text is not None:
        values["model"] = written_id(model, text)
        values["model_window"] = positions(model)
    problems: list[Problem] = []
    context = _number(world, given, "n_ctx", CONTEXT, problems)
    one = Fact(1, Default(NAME, world.releases, "one request at a time"))
    wanted: dict[str, Value[Any] | None] = {
        "context": context,
        "parallel": one,
        "batch": _number(world, given, "n_batch", BATCH, problems),
        "cache_type_k": _type(world, given, "type_k", problems),
        "cache_type_v": _type(world, given, "type_v", problems),
        "flash_attention": _flash(world, given),
        "swa_full": Fact(True, Default(NAME, world.releases, "swa_full")),
        "fit": Fact(False, Default(NAME, world.releases, "fit")),
    }
    found, started = start(model, values["builds"], wanted)
    values |= wanted | started
    values |= {
        "batch_width": one,
        "interrupted_beyond": _interrupted(world, given, one),
        "window_kind": Fact("refuse", Default(NAME, world.releases, "what is beyond n_ctx")),
        "kv_dtype": wanted["cache_type_k"],
        "port": _number(world, given, "port", PORT, problems),
    }
    values |= _prompt_cache(world, given, problems)
    kept = {name: value for name, value in values.items() if value is not None}
    alias = given.get("model_alias")
    names = (alias.value,) if alias is not None and alias.known else (model.id,) if model is not None else ()
    return Settings(kept, names, (*problems, *refusals(world, found, wanted)), model)


def _given(world: World) -> dict[str, Text]:
    """Values by setting: variables first, which flags beat; `--flag value` and `--flag=value`."""
    found = {name.lower(): text for name, text in world.env.items() if name == name.upper()}
    args = world.process.line.args
    for at, word in enumerate(args):
        if not word.value.startswith("--"):
            continue
        name, equals, _ = word.value[2:].partition("=")
        if equals:
            found[name] = word.slice(len(name) + 3)
        elif at + 1 < len(args):
            found[name] = args[at + 1]
    return found


def _number(world: World, given: dict[str, Text], name: str, default: int, problems: list[Problem]) -> Value[int]:
    text = given.get(name)
    if text is None:
        return _absent(world, name) or Fact(default, Default(NAME, world.releases, f"--{name}"))
    if not text.known:
        return Unknown(f"arguments.{name}", text.holes[0].reason, f"write --{name}")
    try:
        return Fact(int(text.value), Written(text.span, text.via))
    except ValueError:
        data = {"engine": "llama_cpp.server", "flag": f"--{name}", "expects": "an integer", "refuses": True}
        problems.append(Problem("malformed-value", text.span, data))
        return Unknown(f"arguments.{name}", f"{text.value!r} is no integer", f"an integer for --{name}")


def _absent(world: World, name: str) -> Unknown | None:
    line = world.process.line
    if not line.open and not line.env_open:
        return None
    return Unknown(f"arguments.{name}", f"--{name} may be set in a place that is not seen", f"write --{name}")


def _type(world: World, given: dict[str, Text], name: str, problems: list[Problem]) -> Value[str] | None:
    if name not in given:
        return _absent(world, name)
    number = _number(world, given, name, 1, problems)
    if isinstance(number, Unknown):
        return number
    if number.value not in TYPES:
        return Unknown(f"arguments.{name}", f"{number.value} is no type of a cache", "the number of a cache type")
    return Fact(TYPES[number.value], number.origin)


def _flash(world: World, given: dict[str, Text]) -> Value[str]:
    text = given.get("flash_attn")
    if text is None:
        return _absent(world, "flash_attn") or Fact("off", Default(NAME, world.releases, "--flash_attn"))
    if not text.known:
        return Unknown("arguments.flash_attn", text.holes[0].reason, "write --flash_attn")
    return Fact("on" if text.value.lower() in TRUE else "off", Written(text.span, text.via))


def _interrupted(world: World, given: dict[str, Text], one: Fact[int]) -> Value[int] | None:
    """`interrupt_requests`, on by default: a new request ends the one that is answered.  llama_cpp/server/settings.py"""
    text = given.get("interrupt_requests")
    if text is None:
        return _absent(world, "interrupt_requests") or one
    if not text.known:
        return Unknown("arguments.interrupt_requests", text.holes[0].reason, "write --interrupt_requests")
    return one if text.value.lower() in TRUE else None


def _prompt_cache(world: World, given: dict[str, Text], problems: list[Problem]) -> dict[str, Value[Any] | None]:
    """Prompts are kept in host memory only where `--cache` says so."""
    text = given.get("cache")
    if text is None or not text.known or text.value.lower() not in TRUE:
        return {}
    return {"host_cache_bytes": _number(world, given, "cache_size", CACHE, problems)}
