"""What was found: servers, admission limits and the chain between them, each value with its origin."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from kvlint.coefficients import bundled
from kvlint.evaluation import Evaluation, unknown_inputs
from kvlint.facts import Coefficient, Derived, Fact, Unknown
from kvlint.models.architecture import Architecture
from kvlint.reports import origin
from kvlint.reports.bar import memory_bar
from kvlint.reports.json import plain
from kvlint.ruleset.load import units
from kvlint.ruleset.messages import clean, show
from kvlint.sizing.server import DERIVED
from kvlint.source import HOLE
from kvlint.subjects import SETTINGS, Admission, Server, ServerGroup

Style = Callable[[str, str], str]


def document(evaluation: Evaluation) -> dict[str, Any]:
    """`show --format json`."""
    groups = [group for group in evaluation.groups if _shown(evaluation, group.first.program.path)]
    fronts = [each for each in evaluation.findings.admissions if _shown(evaluation, each.place.path)]
    return {
        "version": 1,
        "servers": [_server(group) for group in groups],
        "admissions": [_admission(each) for each in fronts],
    }


def _shown(evaluation: Evaluation, path: str) -> bool:
    return evaluation.project.in_focus(path)


def _server(group: ServerGroup) -> dict[str, Any]:
    first = group.live[0]
    names = [name for name in SETTINGS if any(name in world.settings for world in group.live)]
    unknown: dict[str, str] = {}
    for world in group.live:
        unknown |= unknown_inputs(world)
    return {
        "id": group.id,
        "engine": first.engine,
        "engine_versions": list(dict.fromkeys(release for world in group.live for release in world.releases)),
        "path": first.program.path,
        "line": first.program.line,
        "model": _model(first),
        "names": [name for name in first.names if HOLE not in name],
        "settings": {name: found for name in names if (found := _across(group, partial(_setting, name))) is not None},
        "sizing": {
            name: found
            for name in DERIVED
            if (found := _across(group, partial(_derived, name), unit=DERIVED[name])) is not None
        },
        "unknown": unknown,
    }


def _setting(name: str, world: Server) -> Any:
    return world.settings.get(name)


def _derived(name: str, world: Server) -> Any:
    return world.sizing.get(name)


def _model(server: Server) -> str | None:
    model = server.settings.get("model")
    return model.value if isinstance(model, Fact) else None


def _across(group: ServerGroup, get: Callable[[Server], Any], unit: str | None = None) -> dict[str, Any] | None:
    """A value in all worlds: one object, or `worlds` where they differ or only some know it; None where none does."""
    seen: list[tuple[list[str], Any, Fact[Any]]] = []
    missing = False
    for world in group.live:
        found = get(world)
        if not isinstance(found, Fact):
            missing = True
            continue
        value = plain(_bare(found.value))
        for versions, other, _ in seen:
            if other == value:
                versions.extend(world.releases)
                break
        else:
            seen.append((list(world.releases), value, found))
    if not seen:
        return None
    if len(seen) == 1 and not missing:
        return _fact(seen[0][2], unit)
    return {"worlds": [{"versions": versions, **_fact(fact, unit)} for versions, _, fact in seen]}


def _fact(fact: Fact[Any], unit: str | None) -> dict[str, Any]:
    value = plain(_bare(fact.value))
    if unit is None:
        return {"value": value, "origin": origin.as_json(fact)}
    if isinstance(fact.origin, Derived):
        inputs = list(dict.fromkeys(_contract_names(fact.origin)))
        return {"value": value, "unit": unit, "formula": fact.origin.quantity.formula, "inputs": inputs}
    return {"value": value, "unit": unit, "formula": "", "inputs": [], "origin": origin.as_json(fact)}


# The engines' own words for what has a name in the contract.  A shape is the model's; a device's memory is the budget.
_STANDS_FOR = {
    **dict.fromkeys(("architecture", "expert_bytes"), "model"),
    **dict.fromkeys(("device_bytes", "device_memory"), "budget_bytes"),
    **dict.fromkeys(("max_model_len", "context_length", "context", "input_tokens", "output_tokens"), "window"),
    **dict.fromkeys(("max_num_batched_tokens", "chunked_prefill_size"), "batched_tokens"),
    **dict.fromkeys(("kv_cache_dtype", "cache_type_k", "cache_type_v", "element_bytes", "kv_bits"), "kv_dtype"),
    **dict.fromkeys(("sequences", "parallel"), "batch_width"),
    "model_dtype": "weights_dtype",
    "weights": "weights_bytes",
    "non_torch": "non_torch_bytes",
    "draft": "draft_model",
    "speculative_tokens": "draft_tokens",
    "decode_context_parallel": "context_parallel",
    "offload_bytes": "cpu_offload_bytes",
    "page_size": "block_size",
}


def _contract_names(origin: Derived) -> Iterator[str]:
    """Settings, derived values and coefficients that a value was worked out from; what has no name there gives its own inputs."""
    for name, fact in origin.inputs:
        known = _STANDS_FOR.get(name, name)
        if known in SETTINGS or known in DERIVED:
            yield known
        elif isinstance(fact.origin, Coefficient):
            yield fact.origin.name
        elif known in bundled():
            yield known
        elif isinstance(fact.origin, Derived):
            yield from _contract_names(fact.origin)


def _bare(value: Any) -> Any:
    return value.model_type if isinstance(value, Architecture) else value


def _admission(each: Admission) -> dict[str, Any]:
    known = each.limit if isinstance(each.limit, Fact) else None
    return {
        "id": each.id,
        "system": each.system,
        "path": each.place.path,
        "line": each.place.line,
        "limit": known.value if known else None,
        "origin": origin.as_json(known) if known else {},
        "per": each.per,
        "servers": list(each.servers),
    }


def render_json(evaluation: Evaluation) -> str:
    return json.dumps(document(evaluation), ensure_ascii=False, indent=2) + "\n"


def render(evaluation: Evaluation, style: Style) -> str:
    """The same for people."""
    blocks: list[str] = []
    for group in evaluation.groups:
        if _shown(evaluation, group.first.program.path):
            blocks.append("\n".join(_server_lines(group, style)))
    for each in evaluation.findings.admissions:
        if _shown(evaluation, each.place.path):
            blocks.append("\n".join(_admission_lines(each, style)))
    if not blocks:
        blocks.append("no servers and no admission limits found")
    return "\n\n".join(blocks) + "\n"


def _server_lines(group: ServerGroup, style: Style) -> Iterator[str]:
    world = group.live[0]
    releases = [release for each in group.live for release in each.releases]
    versions = origin.span_of(tuple(releases)) if releases else "unknown version"
    yield style(clean(group.id), "strong") + f"  {world.engine} {versions}"
    if len(group.live) > 1:
        yield f"  {len(group.live)} readings of this line, by version; shown: {origin.span_of(world.releases)}"
    yield from _values({name: world.settings[name] for name in SETTINGS if name in world.settings}, style)
    derived = world.sizing.derived()
    if derived:
        yield "  " + style("derived", "frame")
        yield from _values(derived, style)
    bar = memory_bar(world, style)
    if bar:
        yield from bar
    unknown = unknown_inputs(world)
    if unknown:
        yield "  " + style("unknown", "frame")
        for missing, supply in unknown.items():
            yield f"    {missing}: {clean(supply)}"


def _values(values: Mapping[str, Any], style: Style) -> Iterator[str]:
    facts = [(name, value) for name, value in values.items() if isinstance(value, Fact)]
    width = max((len(name) for name, _ in facts), default=0)
    for name, fact in facts:
        text = show(plain(_bare(fact.value)) if isinstance(fact.value, Architecture) else fact.value, unit_of(name))
        yield f"    {name.ljust(width)}  {text}  {style(origin.in_words(fact), 'dim')}"


def unit_of(name: str) -> str:
    return units("server").get(name, "text")


def _admission_lines(each: Admission, style: Style) -> Iterator[str]:
    if isinstance(each.limit, Fact):
        limit = f"{each.limit.value} in flight per {each.per}  {style(origin.in_words(each.limit), 'dim')}"
    elif isinstance(each.limit, Unknown):
        limit = f"limit unknown: {clean(each.limit.reason)}"
    else:
        limit = "no limit on requests in flight"
    yield style(clean(each.id), "strong") + f"  {each.system}: {limit}"
    for server in each.servers:
        yield f"    before {clean(server)}"
