"""Sizes as people write them.  GiB is 2**30, GB is 10**9; the two are never mixed.  Decimals are exact."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from kvlint.patterns import regex

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

BINARY = {"KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}
DECIMAL = {"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS = {"": 1, "B": 1, **BINARY, **DECIMAL}

# Kubernetes quantities: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
QUANTITY_SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "Ki": Fraction(KIB),
    "Mi": Fraction(MIB),
    "Gi": Fraction(GIB),
    "Ti": Fraction(TIB),
    "Pi": Fraction(2**50),
}

_SIZE = regex(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_QUANTITY = regex(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([eE][+-]?[0-9]+)|([A-Za-z]*))")


def parse_size(text: str) -> int | None:
    """Bytes of `48GiB`, `9.5 GB`, `1024`; None if it is no size or a unit is not spelled exactly."""
    match = _SIZE.fullmatch(text) if len(text) < 100 else None
    if not match or match[2] not in UNITS:
        return None
    return int(Fraction(match[1]) * UNITS[match[2]])


@lru_cache(maxsize=1024)
def parse_quantity(text: str) -> int | None:
    """Bytes (or units) of a Kubernetes quantity, `16Gi`, `500M`, `2e9`, rounded up as Kubernetes does; None if it is none."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        return None
    number = Fraction(match[1]) if match[1].strip(".") else Fraction(0)
    if match[2]:
        exponent = int(match[2][1:])
        if abs(exponent) > 30:
            return None
        number *= Fraction(10) ** exponent
    elif match[3] in QUANTITY_SUFFIXES:
        number *= QUANTITY_SUFFIXES[match[3]]
    else:
        return None
    return -(-number.numerator // number.denominator)


_COMPOSE_UNITS = {"b": 1, "k": KIB, "kb": KIB, "m": MIB, "mb": MIB, "g": GIB, "gb": GIB}


def parse_compose_size(text: str) -> int | None:
    """Bytes of docker's `512m`, `16gb`: one-letter and two-letter units are binary there."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([bBkKmMgG]?[bB]?)\s*", text)
    if not match:
        return None
    return int(Fraction(match[1]) * _COMPOSE_UNITS.get(match[2].lower(), 1))
