"""The derived values of an Ollama server, for the one model that its settings are judged with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvlint.facts import Fact, Range, Unknown, Value, quantity
from kvlint.models.architecture import Architecture, UnknownArchitecture
from kvlint.sizing.llama.server import LlamaSizing
from kvlint.sizing.llama.settings import Outcome, Plan
from kvlint.sizing.ollama import sizes as ollama
from kvlint.sizing.ollama.sizes import Release, Settings

UNCERTAIN = Unknown("engine.version", "releases of Ollama differ in this", "name the release of Ollama")
SCHEDULER = "ollama/ollama, server/sched.go and llm/llama_server.go"


@quantity(
    "start", unit="", formula="slots of num_ctx tokens each, as the release's runner makes them", source=SCHEDULER
)
def start(architecture: Architecture, releases: tuple[Release, ...], **settings: Any) -> Outcome:
    """What a loaded model allocates; of several releases one plan only where they agree."""
    wanted = Settings(**settings)
    try:
        outcomes = [ollama.plan(architecture, wanted, release) for release in releases]
    except UnknownArchitecture as error:
        return Unknown(f"model.{error.field}", str(error), "[[model]] config with that key")
    return outcomes[0] if _agree(outcomes) else UNCERTAIN


@quantity("window", unit="tokens", formula="num_ctx, at most the trained context", source=SCHEDULER)
def window(releases: tuple[Release, ...], model_window: int | None = None, **settings: Any) -> int | Unknown:
    wanted = Settings(**settings)
    found = [ollama.context(wanted, model_window, release) for release in releases]
    return found[0] if _agree(found) else UNCERTAIN


@quantity("batch_width", unit="sequences", formula="OLLAMA_NUM_PARALLEL, one for some families", source=SCHEDULER)
def width(releases: tuple[Release, ...], family: str, parallel: int | None = None) -> int | Unknown:
    wanted = Settings(parallel=parallel)
    found = [ollama.slots(wanted, family, release) for release in releases]
    return found[0] if _agree(found) else UNCERTAIN


@quantity("pool_bytes", unit="B", formula="every cache of one loaded model", source=SCHEDULER)
def pool_bytes(
    plan: Plan, architecture: Architecture, releases: tuple[Release, ...], **settings: Any
) -> int | Range | Unknown:
    """A range where num_batch is not set, which the windows of sliding layers depend on."""
    sizes = [ollama.pool_bytes(architecture, Settings(**settings), release) for release in releases]
    known = [size for size in sizes if isinstance(size, (int, Range))]
    if len(known) < len(sizes):
        return plan.pool_bytes
    return known[0] if _agree(known) else UNCERTAIN


@quantity("host_memory_bytes", unit="B", formula="loaded models × host prompt cache of each", source=SCHEDULER)
def host_memory_bytes(host_cache_bytes: int, loaded_models: int) -> int:
    return host_cache_bytes * loaded_models


def _agree(outcomes: Sequence[Any]) -> bool:
    return all(outcome == outcomes[0] for outcome in outcomes)


class OllamaSizing(LlamaSizing):
    """A llama-server for each loaded model, every slot of which has the whole context."""

    def pool_bytes(self) -> Value[Any]:
        wanted = self.need("wanted")
        if isinstance(wanted, Unknown):
            return wanted
        releases, plan = self.need("releases"), self.need("plan")
        return pool_bytes(plan=plan, architecture=self.server.architecture, releases=releases, **wanted.value)

    def checkpoints_bytes(self) -> Value[Any]:
        if isinstance(self.server.settings.get("builds"), Fact):
            return super().checkpoints_bytes()
        return Unknown("engine.version", "the llama.cpp of this release is not known", "name the release of Ollama")

    def host_memory_bytes(self) -> Value[int] | None:
        limit = self.server.settings.get("host_cache_bytes")
        return host_memory_bytes(limit, self.need("loaded_models")) if limit is not None else None
