"""What a server's devices are and what it may use of them: kvlint.toml first, then what its carrier names.

The result maps `device`, `device_name`, `device_memory` (bytes as torch would report them, a range), `device_nominal_gib`,
`capability`, `devices`, `unified`, `ceiling`, `budget`, `available_kv`, `free`, `loaded_free` (free after the weights are loaded)
to facts; what nobody says is an `Unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from kvlint.coefficients import Coefficients
from kvlint.facts import Device as DeviceOrigin
from kvlint.facts import Fact, Range, Unknown, Value, Written
from kvlint.hardware import devices
from kvlint.hardware.devices import Device
from kvlint.subjects import Product, Site
from kvlint.units import GIB, MIB

NO_DEVICE = Unknown(
    "hardware.memory",
    "no device is named",
    "name the device in the files (a node label) or set [[hardware]] device or memory in kvlint.toml",
)
NO_BUDGET = Unknown(
    "hardware.budget", "nothing states what this server may use", "set [[hardware]] budget in kvlint.toml"
)
SPREADS = ("usable_spread", "usable_below_driver", "usable_share_of_nominal")
LABEL_MIB = ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory")
INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


def hardware(site: Site, table: Mapping[str, Fact[Any]], coefficients: Coefficients) -> dict[str, Value[Any]]:
    """Facts of the devices behind a site; `table` is what `[[hardware]]` says of the server."""
    found = _named(table, site)
    facts: dict[str, Value[Any]] = {
        "budget": table.get("budget") or NO_BUDGET,
        "device_memory": NO_DEVICE,
        "device": NO_DEVICE,
    }
    for key in ("ceiling", "available_kv", "free", "loaded_free"):
        if key in table:
            facts[key] = table[key]
    if "count" in table:
        facts["devices"] = table["count"]
    elif site.gpus is not None:
        facts["devices"] = site.gpus
    if found is not None:
        facts |= _device_facts(*found, coefficients)
    if "memory" in table:
        size = table["memory"]
        facts["device_memory"] = size
        facts["device_nominal_gib"] = Fact(Fraction(size.value, GIB), size.origin)
    elif "device_memory" in facts and isinstance(facts["device_memory"], Unknown):
        facts |= _labelled_memory(site, coefficients)
    if "capability" in table:
        facts["capability"] = table["capability"]
    if "unified" in table:
        facts["unified"] = table["unified"]
    return facts


def _named(table: Mapping[str, Fact[Any]], site: Site) -> tuple[Device, Any] | None:
    """The one product that is named, and by what."""
    if "device" in table:
        matches = devices.named(table["device"].value)
        return (matches[0], table["device"].origin) if len(matches) == 1 else None
    memory = _label_mib(site)
    for product in site.product:
        if product.key in (*LABEL_MIB, "amd.com/gpu.vram"):
            continue
        found = _of_product(product, memory)
        if found is not None:
            return found, Written(product.text.span, product.text.via)
    return None


def _of_product(product: Product, memory_mib: int | None) -> Device | None:
    if product.key in INSTANCE_LABELS:
        machine = devices.instance(product.text.value)
        return machine.device if machine and machine.gpus >= 1 else None
    name = product.text.value
    matches = devices.named(f"{product.key}={name}") if product.key.endswith("device-id") else devices.named(name)
    if len(matches) > 1 and memory_mib is not None:
        near = [each for each in matches if abs(memory_mib - each.nominal_gib * 1024) < each.nominal_gib * 100]
        matches = tuple(near)
    return matches[0] if len(matches) == 1 else None


def _device_facts(device: Device, origin: Any, coefficients: Coefficients) -> dict[str, Value[Any]]:
    usable = _usable(device, coefficients)
    source = DeviceOrigin(device.product, device.source)
    facts: dict[str, Value[Any]] = {
        "device": Fact(device, origin),
        "device_name": Fact(device.product, origin),
        "device_memory": Fact(usable, source),
        "device_nominal_gib": Fact(Fraction(int(usable.nominal), GIB), source),
        "unified": Fact(device.unified, source),
    }
    if device.capability is not None:
        facts["capability"] = Fact(device.capability, source)
    return facts


def _usable(device: Device, coefficients: Coefficients) -> Range:
    """Servers share few products."""
    found: Range | None = coefficients.memo.get(device.product)
    if found is None:
        spreads = {name: _range(coefficients.value(name)) for name in SPREADS}
        found = coefficients.memo[device.product] = devices.usable(device, spreads)
    return found


def _labelled_memory(site: Site, coefficients: Coefficients) -> dict[str, Value[Any]]:
    """A label that gives the driver's memory without naming the product."""
    for product in site.product:
        if product.key in LABEL_MIB and product.text.value.isdigit():
            total = int(product.text.value) * MIB
            gap = _range(coefficients.value("usable_below_driver"))
            size = Range(*(int(total - Fraction(str(each)) * GIB) for each in (gap.high, gap.nominal, gap.low)))
            return {"device_memory": Fact(size, Written(product.text.span, product.text.via))}
    return {}


def _label_mib(site: Site) -> int | None:
    values = (product.text.value for product in site.product if product.key in LABEL_MIB)
    return next((int(value) for value in values if value.isdigit()), None)


def _range(value: Any) -> Range:
    return value if isinstance(value, Range) else Range(value, value, value)
