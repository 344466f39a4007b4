"""What kvlint.toml says, and a configuration has written otherwise: the one wins, and the other is shown beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kvlint.engines.claims import pins
from kvlint.facts import Fact, Written
from kvlint.subjects import Problem, Process

if TYPE_CHECKING:
    from kvlint.subjects import Server


def contradictions(
    process: Process,
    server: Server,
    version: Fact[str] | None,
    hardware: Mapping[str, Fact[Any]],
    workload: Mapping[str, Fact[Any]],
) -> Iterator[Problem]:
    """Labels and tags are inferences, of which nothing is said; a promise contradicts a limit only where it is above it."""
    for pin in pins(process, server.engine):
        if version is not None and pin.known and _differ(version.value, pin.value):
            yield from _between("version", version, Fact(pin.value, Written(pin.span, pin.via)))
    count, gpus = hardware.get("count"), process.site.gpus
    if count is not None and isinstance(gpus, Fact) and gpus.value != count.value:
        yield from _between("count", count, gpus)
    for key in ("window", "max_output"):
        promised, written = workload.get(key), server.settings.get(key)
        if (
            promised is not None
            and isinstance(written, Fact)
            and isinstance(written.value, int)
            and written.value < promised.value
        ):
            yield from _between(key, promised, written)
    beside = process.site.data.get("declared", {})
    for key, said in workload.items():
        if key in beside and beside[key].value != said.value:
            yield from _between(key, said, beside[key])


def _differ(said: str, pinned: str) -> bool:
    """Whether two versions are not the same; bounds are no version."""
    one, other = said.lstrip("=v"), pinned.lstrip("=v")
    return one != other and one[:1].isdigit() and other[:1].isdigit()


def _between(key: str, said: Fact[Any], written: Fact[Any]) -> Iterator[Problem]:
    if (
        not isinstance(said.origin, Written)
        or not isinstance(written.origin, Written)
        or said.origin.span == written.origin.span
    ):
        return
    related = (("counterpart", written.origin.span, f"{key} = {written.value}"),)
    data = {"key": key, "value": str(said.value), "effective": str(written.value)}
    yield Problem("contradicted-declaration", said.origin.span, data, related)
