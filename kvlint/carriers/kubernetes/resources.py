"""What a pod asks of its node for a container: devices and their kind, memory, `/dev/shm`."""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import hidden
from kvlint.facts import Assumed, Fact, Unknown, Value, Written, quantity
from kvlint.source import HOLE, Text
from kvlint.subjects import Product
from kvlint.tree import List, Map, Scalar
from kvlint.units import parse_quantity

GPU_RESOURCES = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "gpu.intel.com/xe",
    "gpu.intel.com/i915",
    "google.com/tpu",
    "habana.ai/gaudi",
)
# Node labels that name a device, in order of authority.
PRODUCT_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "karpenter.k8s.aws/instance-accelerator-name",
    "amd.com/gpu.device-id",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
)
MEMORY_LABELS = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory", "amd.com/gpu.vram")
_REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")


def gpus_of(limits: Map | None, requests: Map | None) -> Value[int] | None:
    """Whole devices that the container asks for."""
    for section in (limits, requests):
        for entry in section or ():
            if entry.key.value.strip() in GPU_RESOURCES:
                return quantity_of(entry.value)
    return None


@quantity(
    "group_gpus",
    unit="count",
    formula="gpus of a pod x pods of a group",
    source="kubernetes-sigs/lws@060ab4da:api/leaderworkerset/v1/leaderworkerset_types.go#L67-75",
)
def group_gpus(gpus: int, size: int) -> int:
    """Devices that one replica has over all its pods."""
    return gpus * size


@quantity(
    "group_devices",
    unit="devices",
    formula="devices of the leader + (pods - 1) x devices of a worker",
    source="kubernetes-sigs/lws@060ab4da:api/leaderworkerset/v1/leaderworkerset_types.go#L67-75",
)
def group_devices(leader: int, worker: int, size: int) -> int:
    """All that one group of pods may have between its containers."""
    return leader + worker * (size - 1)


@quantity("pod_devices", unit="devices", formula="devices of all containers", source="arithmetic")
def pod_devices(**asked: int) -> int:
    return sum(asked.values())


def devices_of(spec: Map) -> Value[int] | None:
    """Devices that the containers of a pod ask for together; None where none asks."""
    asked: dict[str, Value[int]] = {}
    for container in (spec.list("containers") or List((), spec.span)).maps():
        found = gpus_of(container.map("resources", "limits"), container.map("resources", "requests"))
        if found is not None:
            asked[f"container_{len(asked)}"] = found
    return pod_devices(**asked) if asked else None


def mig_of(limits: Map | None, requests: Map | None) -> Text | None:
    """The name of the slice of a device that the container asks for."""
    for section in (limits, requests):
        for entry in section or ():
            if entry.key.value.startswith("nvidia.com/mig-"):
                return entry.key.text
    return None


def slice_of(mig: Text | None) -> Iterator[Product]:
    """A slice of a device that is asked for has the slice's memory, whatever device the node has."""
    if mig is not None and mig.known:
        yield Product(mig.value, mig)


def quantity_of(node: object) -> Value[int] | None:
    """A quantity of Kubernetes as written; None where nothing stands there."""
    if node is None or (isinstance(node, Scalar) and node.tag == "null"):
        return None
    if isinstance(node, Scalar) and node.text.known:
        number = parse_quantity(node.value)
        if number is not None:
            return Fact(number, Written(node.text.span, node.text.via))
    return Unknown("resources", "a quantity that is filled in elsewhere", "a literal quantity")


def products_of(spec: Map) -> Iterator[Product]:
    """What names a device: node selectors, and required node affinity with one value."""
    labels: dict[str, Text] = {}
    for entry in spec.map("nodeSelector") or ():
        if isinstance(entry.value, Scalar):
            labels[entry.key.value] = entry.value.text
    terms = spec.list(*_REQUIRED) or spec.list("nodeSelectorTerms")
    if terms is not None and len(terms.items) == 1 and isinstance(terms.items[0], Map):
        for expression in (terms.items[0].list("matchExpressions") or List((), spec.span)).maps():
            values = expression.list("values")
            if expression.string("operator") == "In" and values and len(values.items) == 1:
                value, key = values.items[0], expression.string("key")
                if isinstance(value, Scalar) and key:
                    labels.setdefault(key, value.text)
    for key in (*PRODUCT_LABELS, *MEMORY_LABELS):
        if key in labels and HOLE not in labels[key].value:
            yield Product(key, labels[key])


def shared_memory_of(spec: Map, container: Map) -> Value[int] | None:
    """Bytes of a memory-backed `/dev/shm`; None where nothing is mounted there."""
    for mount in (container.list("volumeMounts") or List((), container.span)).maps():
        if mount.string("mountPath") not in ("/dev/shm", "/dev/shm/"):
            continue
        for volume in (spec.list("volumes") or List((), spec.span)).maps():
            if volume.string("name") == mount.string("name"):
                size = quantity_of(volume.get("emptyDir", "sizeLimit"))
                return size or Fact(0, Assumed("a mounted /dev/shm without sizeLimit takes half of the node's memory"))
        return Unknown("shared_memory", "the volume at /dev/shm is not in these files", "the volume's definition")
    unseen = hidden(container, "volumeMounts")
    return Unknown("shared_memory", unseen.reason, unseen.supply or "the volumeMounts") if unseen is not None else None
