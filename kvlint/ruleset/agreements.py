"""What must agree without anybody's saying so: the port that a proxy calls, the name it asks for, a router's block size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kvlint.carriers.base import directory
from kvlint.carriers.wrappers.programs import Container
from kvlint.facts import Fact, Value, Written
from kvlint.links import CLUSTER, LOCAL_HOSTS, Link, units_of
from kvlint.records import dataclass
from kvlint.ruleset import views
from kvlint.ruleset.judge import Subject
from kvlint.source import Span
from kvlint.subjects import Admission, Endpoint, Process, ServerGroup

if TYPE_CHECKING:
    from kvlint.evaluation import Evaluation

# Engines whose port is a fixed number where none is written, whatever the image.
FIXED_PORT = ("vllm", "sglang", "llama-server")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two values: `source` says of what, the first one is underlined."""

    source: str
    group: ServerGroup
    first: tuple[str, Fact[Any]]
    second: tuple[str, Fact[Any]]
    agree: bool


def subjects(evaluation: Evaluation) -> Iterator[Subject]:
    groups = {id(group.first.process): group for group in evaluation.groups}
    for front in evaluation.findings.admissions:
        if isinstance(front.target, Process) and id(front.target) in groups:
            yield from _subjects(evaluation, _upstream(front, groups[id(front.target)]))
        elif isinstance(front.target, Endpoint):
            yield from _subjects(evaluation, _called(front, evaluation.groups))
    for link in evaluation.chain.adjacent():
        yield from _subjects(evaluation, _asked(link))
    for group in evaluation.groups:
        yield from _subjects(evaluation, _counted(group))
        yield from _subjects(evaluation, _found_by(group))


def _subjects(evaluation: Evaluation, pair: Pair | None) -> Iterator[Subject]:
    if pair is None:
        return
    name = f"the {pair.source.rpartition('default ')[2]} of {pair.group.id.partition('#')[2]}"
    words = tuple(f"{label} is {fact.value}" for label, fact in (pair.first, pair.second))
    place = _place(pair.first[1]) or pair.group.first.program
    facts = {
        "name": views.stated(name, place),
        "source": views.stated(pair.source, place),
        "agree": views.stated(pair.agree, place),
        "values": views.stated(words, place),
        "member_0": pair.first[1],
        "member_1": pair.second[1],
    }
    other = _place(pair.second[1])
    related = [("counterpart", other, words[1])] if other is not None else []
    yield views.plain(
        "parity_set",
        facts,
        place,
        evaluation.coefficients.get,
        identity=name,
        server=pair.group.id,
        servers=(pair.group.id,),
        related=related,
        doubt=next((doubt for _, fact in (pair.first, pair.second) for doubt in _doubts(fact)), None),
    )


def _doubts(fact: Fact[Any]) -> Iterator[str]:
    """What leaves open whether a value is the one that counts: a default of a variable, something that may follow."""
    origins = (leaf.origin for leaf in fact.leaves())
    return (origin.doubt for origin in origins if isinstance(origin, Written) and origin.doubt)


def _place(fact: Fact[Any]) -> Span | None:
    return views.written(fact)


def _upstream(front: Admission, group: ServerGroup) -> Pair | None:
    """The literal port to which a proxy sends what is meant for the process that it starts."""
    container = group.first.process.line.container
    apart = isinstance(container, Container) and not (
        container.network is not None and container.network.value == "host"
    )
    called = front.settings.get("upstream_port") or (front.settings.get("assigned_port") if apart else None)
    if not isinstance(called, Fact):
        return None
    first = (f"the port of `proxy` in {front.system}", called)
    if isinstance(container, Container) and apart:
        return _through_container(group, first, container)
    port = _agreed(group, "port")
    return _ports(group, first, port) if isinstance(port, Fact) else None


def _through_container(group: ServerGroup, first: tuple[str, Fact[Any]], container: Container) -> Pair | None:
    """`-p host:container`: the proxy must call one of the host's, and what stands behind it must be the server's."""
    if container.service is not None or not container.ports or not all(each.known for each in container.ports):
        return None
    from kvlint.carriers.host import published

    mapped = dict(published(container.ports))
    if len(mapped) != len(container.ports):
        return None
    inner = mapped.get(first[1].value)
    if inner is None:
        text = container.ports[0]
        return Pair("port", group, first, ("the port that is published", Fact(text.value, Written(text.span))), False)
    port = _agreed(group, "port")
    return _ports(group, ("the published port", inner), port) if isinstance(port, Fact) else None


def _agreed(group: ServerGroup, name: str) -> Value[Any]:
    from kvlint.addresses import value_of

    return value_of(group, name)


def _ports(group: ServerGroup, first: tuple[str, Fact[Any]], port: Fact[Any]) -> Pair | None:
    written = port.origin.kind == "written"
    if not written and group.first.engine not in FIXED_PORT:
        return None
    words = "`--port`" if written else f"the port of {group.first.engine}, by default,"
    return Pair("port" if written else "default port", group, first, (words, port), first[1].value == port.value)


def _called(front: Admission, groups: list[ServerGroup]) -> Pair | None:
    """The port behind the name of a compose service: others of its network call what the process listens on."""
    target = front.target
    assert isinstance(target, Endpoint)
    if front.unit.startswith(CLUSTER):
        return _of_service(front, target, groups)
    if not front.unit.startswith("compose ") or target.host in LOCAL_HOSTS or target.port is None:
        return None
    found = [each for each in groups if each.first.site.unit == front.unit and target.host in each.first.site.hosts]
    if len(found) != 1 or found[0].first.process.line.shell or found[0].first.process.line.open:
        return None
    port = _agreed(found[0], "port")
    first = (f"the port that {front.system} calls", Fact(target.port, Written(target.span)))
    return _ports(found[0], first, port) if isinstance(port, Fact) else None


def _of_service(front: Admission, target: Endpoint, groups: list[ServerGroup]) -> Pair | None:
    """A Service answers on its own ports alone, whatever its pods listen on."""
    if target.host is None or target.host in LOCAL_HOSTS or target.port is None:
        return None
    host, units = target.host.partition(".")[0], units_of(target, front.unit)[:1]
    found = [
        each for each in groups if each.first.site.unit in units and host in each.first.site.data.get("called", ())
    ]
    if len(found) != 1 or found[0].first.site.data.get("build", "") != front.build:
        return None
    if not front.build and not _along(front.place.path, found[0].first.site.place.path):
        return None  # another tree may have a Service of that name for something else
    ports: tuple[Fact[int], ...] = found[0].first.site.data["called"][host]
    if not ports or target.port in {each.value for each in ports}:
        return None
    first = (f"the port that {front.system} calls", Fact(target.port, Written(target.span)))
    return Pair("port", found[0], first, (f"the port of the Service {host}", ports[0]), False)


def _along(one: str, other: str) -> bool:
    """Whether one file stands in the directory of another, or below it."""
    first, second = (f"{directory(path)}/".lstrip("/") for path in (one, other))
    return first.startswith(second) or second.startswith(first)


def _asked(link: Link) -> Pair | None:
    """The name by which a proxy asks vLLM for its model: another one is answered with 404."""
    front, server = link.front, link.group.first
    asked = front.settings.get("model")
    if server.engine != "vllm" or not isinstance(front.target, Endpoint) or not isinstance(asked, Fact):
        return None
    names = front.target.names
    if not names or not server.names or any("*" in name or name.startswith("os.environ") for name in names):
        return None
    if server.settings.get("adapters") is not None:
        return None
    words = (f"the model that {front.system} asks for", Fact(names[-1], asked.origin))
    return _served(link.group, words, {*names})


def _served(group: ServerGroup, asked: tuple[str, Fact[Any]], names: set[str]) -> Pair | None:
    """A name that is asked for, or others that do as well, and those that a server answers to."""
    server = group.first
    if server.process.line.open or any(not word.known for word in server.process.line.words):
        return None
    model = server.settings.get("model")
    served: Value[Any] | None = server.settings.get("served_names") or model
    if not isinstance(served, Fact) or not isinstance(model, Fact):
        return None
    known = {*server.names, *(() if "served_names" in server.settings else (model.value,))}
    shown = Fact(", ".join(server.names), served.origin)
    return Pair("served name", group, asked, ("the name that is served", shown), bool(names & known))


def _found_by(group: ServerGroup) -> Pair | None:
    """AIBrix finds a model's pods by their label and hands the request on with that name; vLLM answers another with 404.

    vllm-project/aibrix@e3e10f9e:docs/source/getting_started/quickstart.rst#L46-49
    """
    name = group.first.site.data.get("routed_name")
    if not isinstance(name, Fact) or group.first.engine != "vllm" or not group.first.names:
        return None
    return _served(group, ("the label model.aibrix.ai/name", name), {name.value})


def _counted(group: ServerGroup) -> Pair | None:
    """A scheduler that counts cached prefixes in blocks must cut them as the engine does."""
    counted = group.first.site.data.get("router_block_size")
    size = _agreed(group, "block_size") if counted is not None else None
    if not isinstance(counted, Fact) or not isinstance(size, Fact):
        return None
    first, second = ("`blockSize` of the scheduler", counted), ("`--block-size`", size)
    return Pair("block size", group, first, second, counted.value == size.value)
