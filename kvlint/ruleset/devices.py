"""Devices that several servers use: what they take of them together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from kvlint.facts import Assumed, Fact, Unknown, Value, Written, low, nominal, quantity
from kvlint.links import elsewhere, local_ports
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.residence import largest
from kvlint.ruleset import views
from kvlint.ruleset.judge import Subject
from kvlint.source import Text
from kvlint.subjects import Server, ServerGroup
from kvlint.tree import Map

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation

VISIBLE = ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
# Carriers whose servers run on the host that the file is for; elsewhere a scheduler chooses.
HOSTS = ("compose", "llama-swap", "systemd", "supervisor", "launchd", "nix", "shell")
_DOCKER = regex(r"\"?device=([0-9,]+)\"?|nvidia\.com/gpu=([0-9]+)")


@quantity("fraction_sum", unit="fraction", formula="Σ memory fractions", source="arithmetic")
def fraction_sum(**shares: Fraction) -> Fraction:
    return sum(shares.values(), Fraction(0))


@quantity("demand_bytes", unit="B", formula="Σ budgets that can be resident together", source="arithmetic")
def demand(**budgets: int) -> int:
    return sum(budgets.values())


@quantity("duplicated_bytes", unit="B", formula="weights × (copies - 1)", source="arithmetic")
def duplicated(weights_bytes: Any, copies: int) -> int:
    return int(low(weights_bytes)) * (copies - 1)


@dataclass(frozen=True, slots=True)
class Use:
    """A server on a device of one host."""

    group: ServerGroup
    host: str
    device: str


def subjects(evaluation: Evaluation) -> Iterator[Subject]:
    """Shared devices, once for the same servers; then machines whose ceiling is stated."""
    coefficient = evaluation.coefficients.get
    by_device: dict[tuple[str, str], list[ServerGroup]] = {}
    for use in _uses(evaluation.groups):
        by_device.setdefault((use.host, use.device), []).append(use.group)
    by_servers: dict[tuple[int, ...], tuple[list[ServerGroup], list[str]]] = {}
    for (_, device), groups in by_device.items():
        if len(groups) > 1:
            by_servers.setdefault(tuple(map(id, groups)), (groups, []))[1].append(device)
    for groups, devices in by_servers.values():
        counted, facts = _shared(evaluation, groups)
        if len(counted) > 1:
            facts["name"] = views.stated(", ".join(devices), counted[-1].first.program)
            yield _subject(facts, counted, coefficient)
    for groups in _by_ceiling(evaluation.groups):
        yield _subject(dict(_ceiling(groups)), groups, coefficient)


def _subject(facts: dict[str, Any], groups: list[ServerGroup], coefficient: Any) -> Subject:
    names = tuple(group.id.partition("#")[2] for group in groups)
    last = groups[-1].first
    facts["servers"] = views.stated(names, last.program)
    return views.plain(
        "device",
        facts,
        last.program,
        coefficient,
        identity=", ".join(names),
        server=groups[-1].id,
        servers=[group.id for group in groups],
        related=[("counterpart", group.first.program, "is on the same device") for group in groups[:-1]],
    )


def _uses(groups: Iterable[ServerGroup]) -> Iterator[Use]:
    for group in groups:
        server, site = group.first, group.first.site
        claims: tuple[str, ...] = site.data.get("claims", ())
        if server.engine != "vllm" or elsewhere(server) or not (site.carrier in HOSTS or site.resident_with):
            continue
        if claims:
            yield from _claimed(group, claims)
            continue
        # scripts beside each other are alternatives as often as not
        host = f"script {site.place.path}" if site.carrier == "shell" else site.unit
        if site.carrier not in HOSTS:
            host = site.resident_with or host  # the containers of one pod share its node
        for device in _used(group, _visible(group)):
            yield Use(group, host, device)


def _claimed(group: ServerGroup, claims: tuple[str, ...]) -> Iterator[Use]:
    """The devices of one claim, or of several where the parallelism needs one of each."""
    needed = group.first.settings.get("devices_needed")
    if len(claims) > 1 and not (isinstance(needed, Fact) and needed.value == len(claims)):
        return
    for claim in claims:
        yield Use(group, claim, f"(claim {claim.rpartition(' ')[2]})")


def _visible(group: ServerGroup) -> tuple[str, ...]:
    """The literal ids of the devices that a server sees; none where a variable or a scheduler decides."""
    site, line = group.first.site, group.first.process.line
    if site.gpus is not None and not site.device_ids:
        return ()
    named = [text for name in VISIBLE if (text := line.env.get(name)) is not None]
    own = tuple(text.value for text in site.device_ids if text.known)
    if len(own) != len(site.device_ids) or not all(text.known for text in named):
        return ()
    if own:
        return _picked(own, named)
    container = line.container
    if container is not None:
        asked = [text for text in (container.gpus, *container.devices) if text is not None]
        found = [match for text in asked if text.known and (match := _DOCKER.search(text.value))]
        return tuple(each for match in found for each in (match[1] or match[2]).split(","))
    if named:
        return tuple(part.strip() for part in named[0].value.split(",") if part.strip().isdigit())
    return ("0", "1", "2", "3", "4", "5", "6", "7") if "residence" in site.data else ()


def _picked(own: tuple[str, ...], named: list[Text]) -> tuple[str, ...]:
    """Inside the container the devices are counted anew: `CUDA_VISIBLE_DEVICES` picks among them."""
    if not named:
        return own
    parts = [part.strip() for part in named[0].value.split(",")]
    inner = [int(part) for part in parts if part.isdigit()]
    return tuple(own[number] for number in inner if number < len(own)) if len(inner) == len(parts) else own


def _used(group: ServerGroup, visible: tuple[str, ...]) -> tuple[str, ...]:
    """The first devices, as many as the parallelism needs."""
    needed = group.first.settings.get("devices_needed")
    count = needed.value if isinstance(needed, Fact) and isinstance(needed.value, int) else len(visible)
    return visible[:count]


def _shared(evaluation: Evaluation, groups: list[ServerGroup]) -> tuple[list[ServerGroup], dict[str, Any]]:
    """The servers that provably run together, else all that may, and their shares."""
    together = _together(evaluation, groups)
    proved = len(together) > 1
    counted = together if proved else _apart(groups)
    facts: dict[str, Any] = {"resident": Fact(proved, Assumed("by the place where both are started"))}
    shares = {f"share_{number}": _share(group) for number, group in enumerate(counted, 1)}
    if len(shares) > 1 and not any(share is None for share in shares.values()):
        facts["fraction_sum"] = fraction_sum(**{name: share for name, share in shares.items() if share is not None})
    return counted, facts | _duplicates(counted)


def _together(evaluation: Evaluation, groups: list[ServerGroup]) -> list[ServerGroup]:
    """The largest set whose members something starts and keeps at the same time."""
    sets: dict[str, list[ServerGroup]] = {}
    for group in groups:
        site = group.first.site
        if "residence" in site.data:
            sets.setdefault(f"{site.carrier} {site.place.path}", []).append(group)
        elif site.resident_with is not None and not _optional(evaluation, group):
            sets.setdefault(site.resident_with, []).append(group)
    return max((_loaded(each) for each in sets.values()), key=len, default=[])


def _loaded(groups: list[ServerGroup], weights: Mapping[str, int] | None = None) -> list[ServerGroup]:
    """Those of one file's servers that may be loaded at once: of all such sets the one of the greatest weight, or share."""
    if "residence" not in groups[0].first.site.data:
        return groups
    if weights is None:
        weights = {group.id: 1 + _millionths(group) for group in groups}
    entries: dict[str, int] = {}
    for group in groups:
        entry = group.first.site.data["residence"][1]
        entries[entry] = entries.get(entry, 0) + weights[group.id]
    chosen = largest(groups[0].first.site.data["residence"][0], lambda name: entries.get(name, 0))
    return [group for group in groups if group.first.site.data["residence"][1] in chosen]


def _optional(evaluation: Evaluation, group: ServerGroup) -> bool:
    """A compose service behind a profile is started only when it is asked for."""
    site = group.first.site
    if site.carrier != "compose":
        return False
    for item in evaluation.project.items(site.place.path):
        if isinstance(item.node, Map) and item.node.get("services", site.name, "profiles") is not None:
            return True
    return False


def _apart(groups: list[ServerGroup]) -> list[ServerGroup]:
    """Of servers that something runs one at a time, or that listen on one port of the host, only the first counts."""
    kept: list[ServerGroup] = []
    seen: set[tuple[str, str]] = set()
    ports: set[int] = set()
    for group in _each_file(groups):
        site = group.first.site
        key = (site.carrier, site.place.path)
        listening = _host_ports(group.first)
        alone = site.exclusive and "residence" not in site.data
        if (alone and key in seen) or ports & listening:
            continue
        seen |= {key} if alone else set()
        ports |= listening
        kept.append(group)
    return kept


def _millionths(group: ServerGroup) -> int:
    share = _share(group)
    return int(share.value * 10**6) if isinstance(share, Fact) else 0


def _each_file(groups: Iterable[ServerGroup]) -> Iterator[ServerGroup]:
    """The servers, of a program that loads and unloads them only those that may be loaded at once."""
    by_file: dict[tuple[str, str], list[ServerGroup]] = {}
    for group in groups:
        site = group.first.site
        by_file.setdefault((site.carrier, site.place.path if "residence" in site.data else group.id), []).append(group)
    for each in by_file.values():
        yield from _loaded(each)


def _host_ports(server: Server) -> set[int]:
    """Ports that a server takes of the host itself: the second one to ask for such a port does not start."""
    contained = server.site.carrier == "compose" or server.process.line.container is not None
    return set() if contained and not server.site.published else local_ports(server)


def _share(group: ServerGroup) -> Value[Any] | None:
    """The smallest share over its worlds; None where the pool is stated otherwise or may be let go."""
    found: list[Value[Any]] = []
    for world in group.live:
        if {"kv_pool_bytes", "sleep_mode"} & set(world.settings):
            return None
        share = world.settings.get("memory_fraction")
        if share is None:
            return None
        found.append(share)
    unknown = next((each for each in found if isinstance(each, Unknown)), None)
    return (
        unknown
        if unknown is not None
        else min((each for each in found if isinstance(each, Fact)), key=lambda each: each.value)
    )


def _duplicates(groups: list[ServerGroup]) -> dict[str, Any]:
    """The first model that two of the servers load, and what its copies take."""
    by_model: dict[tuple[str, str], list[ServerGroup]] = {}
    for group in groups:
        model, revision = group.first.settings.get("model"), group.first.settings.get("revision")
        if isinstance(model, Fact):
            by_model.setdefault((model.value, str(getattr(revision, "value", ""))), []).append(group)
    for (shared, _), same in by_model.items():
        if len(same) > 1:
            copies = Fact(len(same), Assumed("servers with this model"))
            weights = same[-1].first.sizing.need("weights_bytes_per_device")
            name = Fact(shared, same[-1].first.settings["model"].origin)  # type: ignore[union-attr]
            return {"duplicated_model": name, "duplicated_bytes": duplicated(weights, copies)}
    return {}


def _by_ceiling(groups: Iterable[ServerGroup]) -> Iterator[list[ServerGroup]]:
    """Servers under one statement of a ceiling: one machine's."""
    found: dict[tuple[int, int], list[ServerGroup]] = {}
    for group in groups:
        ceiling = group.first.hardware.get("ceiling")
        if isinstance(ceiling, Fact) and isinstance(ceiling.origin, Written):
            place = ceiling.origin.span
            found.setdefault((id(place.source), place.start), []).append(group)
    yield from found.values()


def _ceiling(groups: list[ServerGroup]) -> Iterator[tuple[str, Any]]:
    """The ceiling, and the budgets under it: of servers that run one at a time the largest."""
    yield "ceiling_bytes", groups[0].first.hardware["ceiling"]
    budgets = {group.id: budget for group in groups if (budget := _budget(group)) is not None}
    weights = {name: int(nominal(budget.value)) for name, budget in budgets.items()}
    by_file: dict[Any, list[ServerGroup]] = {}
    for group in groups:
        site = group.first.site
        if group.id in budgets:
            shared = site.exclusive or "residence" in site.data
            by_file.setdefault((site.carrier, site.place.path) if shared else group.id, []).append(group)
    counted: list[Fact[int]] = []
    for same in by_file.values():
        loaded = _loaded(same, weights)
        if "residence" not in same[0].first.site.data:
            loaded = [max(same, key=lambda group: weights[group.id])]
        counted += [budgets[group.id] for group in loaded]
    if counted:
        yield "demand_bytes", demand(**{f"budget_{number}": each for number, each in enumerate(counted, 1)})
    yield from _duplicates(_apart(groups)).items()


def _budget(group: ServerGroup) -> Fact[int] | None:
    """What one server may use: as stated, or its share of a unified memory."""
    server = group.first
    stated, unified = server.hardware.get("budget"), server.hardware.get("unified")
    if isinstance(stated, Fact):
        return stated
    if isinstance(unified, Fact) and unified.value:
        usable = server.sizing.get("usable_bytes")
        return usable if isinstance(usable, Fact) and isinstance(low(usable.value), int) else None
    return None
