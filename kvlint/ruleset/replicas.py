"""Servers that answer to one proven name: what must be the same behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kvlint.facts import Fact, Value, Written
from kvlint.ruleset import views
from kvlint.ruleset.judge import Subject
from kvlint.source import Span
from kvlint.subjects import Server, ServerGroup

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation

# In this order; the first that differs is named.
SAME = ("model", "revision", "adapters", "tokenizer", "chat_template", "kv_dtype", "block_size", "version")


def subjects(evaluation: Evaluation) -> Iterator[Subject]:
    """One a name: a Service's or an alias's that several servers share, or a proxy's with several addresses."""
    for name, groups in {**_by_host(evaluation), **_by_proxy(evaluation)}.items():
        for setting in SAME:
            values = [_value(group.first, setting) for group in groups]
            known = {str(value.value) for value in values if isinstance(value, Fact)}
            absent = any(value is None for value in values)
            if absent and setting == "version":
                continue
            if len(known) + absent > 1 and not any(
                value is not None and not isinstance(value, Fact) for value in values
            ):
                yield _subject(evaluation, name[-1], setting, groups, values)
                break


def _by_host(evaluation: Evaluation) -> dict[tuple[str, ...], list[ServerGroup]]:
    found: dict[tuple[str, ...], list[ServerGroup]] = {}
    for group in evaluation.groups:
        server = group.first
        site, port = server.site, server.settings.get("port")
        at = str(port.value) if isinstance(port, Fact) else ""  # containers of one pod share its names, not its ports
        # a router's models are told apart by the model that is asked for
        asked = site.name if "router" in site.data else ""
        # a compose file beside another says again what the service is, or what it is instead
        file = site.place.path if site.carrier == "compose" else ""
        for host in site.hosts if site.carrier in ("kubernetes", "compose") else ():
            found.setdefault((site.unit, file, _role(server), server.engine, at, asked, host), []).append(group)
    return {
        (*name[:-1], origin, name[-1]): together
        for name, groups in found.items()
        for origin, together in _together(groups).items()
        if len(together) > 1
    }


def _together(groups: list[ServerGroup]) -> dict[str, list[ServerGroup]]:
    """Those that can run at once: where an object's name stands in several files, or renders, these are alternatives."""
    names = [group.first.site.name for group in groups]
    if len(set(names)) == len(names):
        return {"": groups}
    found: dict[str, list[ServerGroup]] = {}
    for group in groups:
        found.setdefault(group.id.partition("#")[0], []).append(group)
    return found


def _by_proxy(evaluation: Evaluation) -> dict[tuple[str, ...], list[ServerGroup]]:
    """Deployments of one model name are chosen among by the proxy."""
    found: dict[tuple[str, ...], list[ServerGroup]] = {}
    for link in evaluation.chain.adjacent():
        if link.front.system == "litellm":
            key = (link.front.system, link.front.unit, link.group.first.engine, link.front.name)
            members = found.setdefault(key, [])
            if link.group not in members:
                members.append(link.group)
    return {name: groups for name, groups in found.items() if len(groups) > 1}


def _role(server: Server) -> str:
    role = server.settings.get("role")
    return str(role.value) if isinstance(role, Fact) else str(server.site.data.get("role", "both"))


def _value(server: Server, setting: str) -> Value[Any] | None:
    if setting == "version":
        return Fact(server.version.text, server.version.origin) if server.version is not None else None
    found = server.settings.get(setting)
    own = isinstance(found, Fact) and (found.origin.kind == "default" or found.value == "auto")
    return None if own else found


def _subject(
    evaluation: Evaluation, name: str, setting: str, groups: list[ServerGroup], values: list[Value[Any] | None]
) -> Subject:
    places = [_place(group, value) for group, value in zip(groups, values, strict=True)]
    shown = tuple(str(value.value) if isinstance(value, Fact) else "not set" for value in values)
    last = places[-1]
    facts = {
        "name": views.stated(name, last),
        "differ": views.stated(True, last),
        "setting": views.stated(setting, last),
        "values": views.stated(tuple(dict.fromkeys(shown)), last),
    }
    return views.plain(
        "group",
        facts,
        last,
        evaluation.coefficients.get,
        identity=f"{name} {setting}",
        server=groups[-1].id,
        servers=[group.id for group in groups],
        related=[
            ("counterpart", place, f"{setting} = {text}") for place, text in zip(places[:-1], shown, strict=False)
        ],
    )


def _place(group: ServerGroup, value: Value[Any] | None) -> Span:
    return value.origin.span if isinstance(value, Fact) and isinstance(value.origin, Written) else group.first.program
