"""The endpoint picker of the Gateway API's Inference Extension and of llm-d: requests in flight that it gives each pod.

Facts: llm-d/llm-d-inference-scheduler@520af478:pkg/epp/framework/plugins/flowcontrol/saturationdetector/concurrency/README.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvlint.admission import system
from kvlint.carriers.base import Finding, count_of
from kvlint.carriers.embedded import Around
from kvlint.carriers.kubernetes.cluster import Cluster, texts, unit
from kvlint.facts import Default, Fact
from kvlint.subjects import Admission, Process
from kvlint.tree import List, Map

SYSTEM = "llm-d"
KIND = "EndpointPickerConfig"
DETECTOR = "concurrency-detector"
POOLS = ("endpointPickerRef", "extensionRef")  # of v1 and of the versions before it


def config(root: Map, around: Around) -> Iterator[Finding]:
    """The detector that counts requests; the one that measures queues and caches bounds nothing by itself."""
    for plugin in (root.list("plugins") or List((), root.span)).maps():
        kind = plugin.scalar("type")
        parameters = plugin.map("parameters") or Map((), plugin.span)
        if kind is None or kind.value != DETECTOR or parameters.string("concurrencyMode") not in (None, "requests"):
            continue
        entry = parameters.entry("maxConcurrency")
        limit = count_of(entry.value if entry is not None else None, "maxConcurrency", "a literal maxConcurrency")
        if limit is None:
            limit = Fact(system(SYSTEM)["default_concurrency"], Default(SYSTEM, (), "maxConcurrency"))
        yield Admission(
            id="",
            system=SYSTEM,
            unit=around.unit,
            name=plugin.string("name") or DETECTOR,
            place=entry.value.span if entry is not None else kind.span,
            limit=limit,
            per="pod",
            excess="wait",
            names=around.hosts,
        )


def target(picker: Admission, started: Iterable[Process], cluster: Cluster) -> Process | None:
    """The one server of the pool whose picker it is."""
    pools = [each for each in cluster.of_kind("InferencePool") if unit(each) == picker.unit]
    named = [each for each in pools if isinstance(each.node, Map) and {*_pickers(each.node)} & {*picker.names}]
    if len(named or pools) != 1:
        return None
    node = (named or pools)[0].node
    assert isinstance(node, Map)
    wanted = texts(node.map("spec", "selector", "matchLabels") or node.map("spec", "selector"))
    found = [
        each
        for each in started
        if each.site.unit == picker.unit and wanted and all(each.site.labels.get(key) == wanted[key] for key in wanted)
    ]
    return found[0] if len(found) == 1 else None


def _pickers(pool: Map) -> Iterator[str]:
    yield from (name for key in POOLS if (name := pool.string("spec", key, "name")) is not None)
