"""`mlx_lm.server`: one process, no reservation, no window; what batches and what is cached depends on the release."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

from kvlint.command import CommandLine
from kvlint.engines import basename
from kvlint.engines.base import Program, Settings, World
from kvlint.engines.fields import Fields
from kvlint.engines.options import options
from kvlint.facts import Default, Fact, Unknown, Value, quantity
from kvlint.models.lookup import Model, written_id
from kvlint.sizing.server import Sizing
from kvlint.subjects import Problem

if TYPE_CHECKING:
    from kvlint.sizing.mlx.releases import Meaning

SERVER = "mlx_lm.server"


@quantity(
    "batch_width",
    unit="sequences",
    formula="max(decode concurrency, prompt concurrency)",
    source="mlx-lm==0.32.2: BatchGenerator raises the decode limit to the prompt limit",
)
def effective_width(decode_concurrency: int, prompt_concurrency: int) -> int:
    """Sequences decoded together: a decode limit below the prompt limit has no effect."""
    return max(decode_concurrency, prompt_concurrency)


class MlxLm:
    name = "mlx-lm"
    distribution = "mlx-lm"
    images: tuple[str, ...] = ()

    def recognise(self, line: CommandLine) -> Program | None:
        if line.program is None:
            return None
        word = basename(line.program.value)
        if word == SERVER:
            return Program(SERVER, line.args, line.program.span)
        if word == "mlx_lm" and line.args and line.args[0].value == "server":
            return Program("mlx_lm server", line.args[1:], line.program.span, args_at=1)
        if word == "mlx_lm" and line.args and line.args[0].value.startswith("--"):
            problem = Problem(
                "missing-subcommand", line.program.span, {"engine": self.name, "expected": "server", "refuses": True}
            )
            return Program("mlx_lm server", line.args, line.program.span, problems=(problem,))
        return None

    def semantics(self, release: str) -> Hashable:
        from kvlint.sizing.mlx.server import meaning

        return meaning(release)

    def settled(self, release: str) -> bool:
        return True

    def sizing(self) -> type[Sizing]:
        from kvlint.sizing.mlx.server import MlxSizing

        return MlxSizing

    def settings(self, world: World) -> Settings:
        from kvlint.sizing.mlx.server import meaning

        fields, rules = Fields(world), meaning(world.release)
        values: dict[str, Value[Any] | None] = {"release": Fact(world.release, Default("mlx-lm", world.releases, ""))}
        model = None
        given = fields.given("model")
        text = given.value if given is not None else None
        if text is not None:
            model = world.model(text)
            values["model"] = written_id(model, text)
            values["model_window"] = model.positions
        values |= _drafted(fields, world)
        values |= _width(fields, rules.batches)
        values |= {
            "kv_bits": fields.value("kv_bits"),
            "kv_group_size": fields.value("kv_group_size"),
            "kv_quant_start": fields.value("quantized_kv_start"),
            "prompt_cache_entries": fields.value("prompt_cache_size")
            or Fact(rules.entries, Default("mlx-lm", world.releases, "prompt cache entries")),
            "prompt_cache_bytes": fields.value("prompt_cache_bytes"),
            "draft_model": fields.value("draft_model"),
            "draft_tokens": fields.value("num_draft_tokens") if fields.given("draft_model") else None,
            "prefill_step": fields.value("prefill_step_size"),
            "adapters": fields.value("adapter_path", lambda path: (path,)),
            "chat_template": fields.written("chat_template"),
            "port": fields.value("port"),
            "max_output": fields.value("max_tokens"),
            "tensor_parallel": Fact(1, Default("mlx-lm", world.releases, "one process")),
        }
        values["kv_dtype"] = _kv_dtype(values.get("kv_bits"), model.dtype if model else None)
        kept = {name: value for name, value in values.items() if value is not None}
        names = (model.id,) if model is not None else ()
        problems = _ignored_limit(fields, rules, model) if rules.byte_limit_skipped else ()
        return Settings(kept, names, tuple(problems), model)


def _width(fields: Fields, batches: bool) -> dict[str, Value[Any] | None]:
    """Decode and prompt concurrency: flags from 0.30.6, fixed at 32 and 8 before, one request at a time before 0.28.4."""
    world = fields.world
    known = options("mlx-lm").at(world.releases[-1])
    if not batches:
        one = Fact(1, Default("mlx-lm", world.releases, "one request at a time"))
        return {"batch_width": one, "prefill_width": one}
    if "--decode-concurrency" not in known.by_spelling:
        decode: Value[Any] = Fact(32, Default("mlx-lm", world.releases, "decode concurrency"))
        prompt: Value[Any] = Fact(8, Default("mlx-lm", world.releases, "prompt concurrency"))
        return {"batch_width": decode, "prefill_width": prompt}
    decode = fields.value("decode_concurrency") or fields.unseen("decode_concurrency")
    prompt = fields.value("prompt_concurrency") or fields.unseen("prompt_concurrency")
    wider = isinstance(decode, Fact) and isinstance(prompt, Fact) and decode.value >= prompt.value
    return {
        "batch_width": decode if wider or isinstance(decode, Unknown) else effective_width(decode, prompt),
        "prefill_width": prompt,
        "decode_concurrency": decode,
    }


def _ignored_limit(fields: Fields, rules: Meaning, model: Model | None) -> Iterator[Problem]:
    """`--prompt-cache-bytes` is heard only where requests are batched."""
    limit = fields.given("prompt_cache_bytes")
    if limit is None:
        return
    data = {"engine": "mlx-lm", "flag": "--prompt-cache-bytes", "bounds": True}
    for dest, serial in (("draft_model", rules.draft_serial), ("kv_bits", rules.quantized_serial)):
        given = fields.given(dest)
        if given is not None and serial:
            related = (("cause", given.name.span, "one request is answered at a time"),)
            yield Problem("prompt-cache-limit-ignored", limit.name.span, {**data, "reason": given.spelling}, related)
            return
    arch = model.architecture if model is not None else None
    if isinstance(arch, Fact):
        from kvlint.sizing.mlx.caches import unmergeable_caches

        classes = unmergeable_caches.plain(arch.value, fields.world.release)
        if isinstance(classes, tuple) and classes:
            yield Problem("prompt-cache-limit-ignored", limit.name.span, {**data, "reason": ", ".join(classes)})


def _drafted(fields: Fields, world: World) -> dict[str, Value[Any] | None]:
    """Layers and weights of the draft model."""
    given = fields.given("draft_model")
    if given is None or given.value is None:
        return {}
    model = world.model(given.value)
    return {"draft_architecture": model.architecture, "draft_weights": model.weights_bytes}


def _kv_dtype(bits: Value[Any] | None, dtype: Value[str] | None) -> Value[Any] | None:
    if isinstance(bits, Fact):
        return Fact(f"int{bits.value}", bits.origin)
    return bits if bits is not None else dtype


ENGINE = MlxLm()
