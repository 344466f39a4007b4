"""`kvlint size`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from kvlint.cli import _common
from kvlint.config import ENGINE_NAMES

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType

ENGINES = ("transformers", *ENGINE_NAMES)
DEFAULT_WINDOWS = "8192,16384,32768,65536,131072,262144"


class Size(_Type):
    """Bytes as a number, or with KiB MiB GiB (binary) or kB MB GB (decimal)."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from kvlint.units import parse_size

        found = value if isinstance(value, int) else parse_size(value)
        if found is None:
            self.fail(f"{value!r} is no size; write bytes, or 48GiB, 9.5GB", param, ctx)
        return found


class Share(_Type):
    """An exact decimal in [0, 1)."""

    name = "fraction"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        try:
            found = Fraction(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"{value!r} is no number", param, ctx)
        if not 0 <= found < 1:
            self.fail("must be at least 0 and below 1", param, ctx)
        return found


class Windows(_Type):
    """Token counts separated by commas."""

    name = "tokens,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        parts = [part.strip().replace("_", "") for part in str(value).split(",") if part.strip()]
        if not parts or not all(
            part.isascii() and part.isdigit() and len(part) < 16 and int(part) > 0 for part in parts
        ):
            self.fail(f"{value!r}: write token counts separated by commas", param, ctx)
        return tuple(int(part) for part in parts)


@click.command(short_help="Print the sizing table of a model and a budget.")
@click.argument("model", required=False)
@click.option("--config", metavar="FILE", help="the model's config.json, or GGUF metadata as JSON")
@click.option("--kv-bytes-per-token", type=click.IntRange(min=1), help="bytes that one token adds, instead of a model")
@click.option("--state-bytes", type=click.IntRange(min=0), default=0, help="bytes of state for each sequence")
@click.option("--budget", type=Size(), help="memory that weights, live KV and prompt cache share")
@click.option("--weights", type=Size(), help="bytes of the weights [default: the model's]")
@click.option("--holdback", type=Share(), default="0.10", show_default=True, help="share of the budget kept back")
@click.option("--streams", type=click.IntRange(min=1), default=1, show_default=True, help="full-window conversations")
@click.option("--windows", type=Windows(), default=DEFAULT_WINDOWS, show_default=True)
@click.option("--engine", type=click.Choice(ENGINES), default="mlx-lm", show_default=True, help="whose cache layout")
@click.option("--kv-dtype", help="bfloat16, fp8, q8_0, … [default: the model's]")
@click.option("--format", "format_", type=click.Choice(["full", "json", "markdown"]), default="full", show_default=True)
def command(
    model: str | None,
    config: str | None,
    kv_bytes_per_token: int | None,
    state_bytes: int,
    budget: int | None,
    weights: int | None,
    holdback: Fraction,
    streams: int,
    windows: tuple[int, ...],
    engine: str,
    kv_dtype: str | None,
    format_: str,
) -> None:
    """Print, for each window: live KV, what remains for the prompt cache, one slot, warm slots, and the largest windows that fit.

    Give MODEL (a repository id of the catalogue), a --config, or --kv-bytes-per-token.
    """
    from kvlint.reports import size as reports
    from kvlint.sizing.ask import Question, SizeError, answer

    question = Question(
        model=model,
        config=config,
        kv_bytes_per_token=kv_bytes_per_token,
        state_bytes=state_bytes,
        budget_bytes=budget,
        weights_bytes=weights,
        holdback=holdback,
        streams=streams,
        windows=windows,
        engine=engine,
        kv_dtype=kv_dtype,
    )
    try:
        found = answer(question)
    except SizeError as error:
        _common.fail(str(error))
    _common.echo(reports.render(found, format_))
