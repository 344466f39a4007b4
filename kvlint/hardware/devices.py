"""Device and instance names as labels, clouds and people spell them, and the memory behind each.

`usable` memory is what torch reports as a device's total: the base of every engine's memory fraction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from kvlint.compiled import load
from kvlint.facts import Range
from kvlint.patterns import regex
from kvlint.records import dataclass
from kvlint.units import GIB, MIB

_MIG = regex(r"(?P<base>.+?)-MIG-(?P<profile>[0-9]g\.[0-9]+gb)(?:\.me)?(?:-SHARED)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Device:
    """One product.  Sizes as the source gives them: nominal and usable in GiB, the driver's in MiB; None: not seen."""

    product: str
    vendor: str
    nominal_gib: Fraction
    driver_mib: int | None
    usable_gib: Fraction | None
    usable_gib_unseen: Fraction | None
    capability: Fraction | None
    unified: bool
    source: str


@dataclass(frozen=True, slots=True)
class Instance:
    """One machine type: how many devices of which product a node has."""

    name: str
    gpus: Fraction
    device: Device | None
    host_bytes: int | None
    source: str


@cache
def _load() -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Products by name, and the rows of products and of instances."""
    data = load("devices.json")
    names: dict[str, tuple[str, ...]] = {}
    for row in data["devices"]:
        for name in {spelled.lower() for spelled in (*row["names"], row["product"])}:
            names[name] = (*names.get(name, ()), row["product"])
    products = {row["product"]: row for row in data["devices"]}
    return names, products, {row["instance"].lower(): row for row in data["instances"]}


@cache
def _device(product: str) -> Device:
    row = _load()[1][product]

    def number(key: str) -> Fraction | None:
        return None if row.get(key) is None else Fraction(str(row[key]))

    return Device(
        product=row["product"],
        vendor=row["vendor"],
        nominal_gib=Fraction(str(row["nominal_gib"])),
        driver_mib=row.get("driver_mib"),
        usable_gib=number("usable_gib"),
        usable_gib_unseen=number("usable_gib_unseen"),
        capability=number("capability"),
        unified=row.get("unified", False),
        source=row["source"],
    )


def named(name: str) -> tuple[Device, ...]:
    """The products that a name can mean: one, several where the name is ambiguous (`a100`), none where it is not known."""
    names, _, _ = _load()
    key = name.strip().lower()
    mig = _MIG.fullmatch(key) if "-mig-" in key else None
    if mig:
        return tuple(map(_device, names.get(f"mig-{mig['profile']}", ())))
    joined = key.replace(" ", "-")
    for spelled in (key, key.removesuffix("-shared"), key.removeprefix("nvidia-"), joined, f"nvidia-{joined}"):
        if spelled in names:
            return tuple(map(_device, names[spelled]))
    return ()


def names() -> tuple[str, ...]:
    """Every spelling that `named` knows."""
    return tuple(_load()[0])


def instance(name: str) -> Instance | None:
    _, products, instances = _load()
    row = instances.get(name.strip().lower())
    if row is None:
        return None
    host = row.get("host_mib")
    return Instance(
        name=row["instance"],
        gpus=Fraction(str(row["gpus"])),
        device=_device(row["product"]) if row["product"] in products else next(iter(named(row["product"])), None),
        host_bytes=None if host is None else host * MIB,
        source=row["source"],
    )


def usable(device: Device, coefficient: Mapping[str, Range]) -> Range:
    """Bytes that torch would report as the device's total.

    From what was seen of it, else from the driver's figure, else from the data sheet; each step wider than the one before.
    """
    if device.vendor == "apple":
        size = int(device.nominal_gib * GIB)
        return Range(size, size, size)
    if device.usable_gib is not None:
        return _around(device.usable_gib, coefficient["usable_spread"])
    if device.driver_mib is not None:
        total, gap = Fraction(device.driver_mib, 1024), coefficient["usable_below_driver"]
        middle = device.usable_gib_unseen or total - Fraction(gap.nominal)
        return _gib(min(total - Fraction(gap.high), middle), middle, total)
    share = coefficient["usable_share_of_nominal"]
    middle = device.usable_gib_unseen or device.nominal_gib * Fraction(share.nominal)
    return _gib(
        min(device.nominal_gib * Fraction(share.low), middle), middle, device.nominal_gib * Fraction(share.high)
    )


def _around(middle: Fraction, spread: Range) -> Range:
    return _gib(middle + Fraction(spread.low), middle, middle + Fraction(spread.high))


def _gib(low: Fraction, middle: Fraction, high: Fraction) -> Range:
    return Range(int(low * GIB), int(middle * GIB), int(high * GIB))
