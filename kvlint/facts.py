"""Values that know where they came from.

A `Fact` is a value with its `Origin`; an `Unknown` says why there is no value and what would supply one; a `Range`
is a value known only between two ends.  `@quantity` lifts a plain function on numbers to facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import update_wrapper
from itertools import product
from typing import Any, Generic, TypeVar, Union, cast

from kvlint.records import dataclass
from kvlint.source import Span

T = TypeVar("T")
Number = Union[int, float, Fraction]


@dataclass(frozen=True, slots=True)
class Written:
    """`span`: where the characters to edit stand; `via`: the uses that led there, outermost first.

    `doubt`: `splice` (something unseen may follow and win), `default` (a variable's default was taken), `claimed` (nothing
    enforces it), `supposed` (who states it is supposed to stand before the server).  It lowers what a rule may say.
    """

    span: Span
    via: tuple[Span, ...] = ()
    doubt: str | None = None
    kind = "written"


@dataclass(frozen=True, slots=True)
class Default:
    """What `engine` takes when `flag` is absent, in `versions`."""

    engine: str
    versions: tuple[str, ...]
    flag: str
    kind = "default"


@dataclass(frozen=True, slots=True)
class Catalog:
    """A model's own configuration: `field` of `model`, as `source` has it.

    `doubt`: `named` (nothing but the name in a path says that it is this model).  It lowers what a rule may say.
    """

    model: str
    field: str
    source: str
    revision: str | None = None
    doubt: str | None = None
    kind = "catalog"


@dataclass(frozen=True, slots=True)
class Device:
    """A property of a named device or instance, with the source of the figure."""

    name: str
    source: str
    kind = "device"


@dataclass(frozen=True, slots=True)
class Lock:
    """A row of `kvlint.lock`."""

    model: str
    revision: str | None
    kind = "lock"


@dataclass(frozen=True, slots=True)
class Receipt:
    """A figure that a running engine printed, recorded by `kvlint lock --from-log`."""

    path: str
    line: int
    kind = "receipt"


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A figure that was measured or chosen: data/coefficients.toml, or `[coefficients]` of the project."""

    name: str
    reason: str
    kind = "coefficient"


@dataclass(frozen=True, slots=True)
class Assumed:
    """Nothing states it; `why` says on what ground it is taken."""

    why: str
    kind = "assumed"


@dataclass(frozen=True, slots=True)
class Derived:
    """Worked out by the function of `quantity` from `inputs` (name, fact)."""

    quantity: Quantity[Any]
    inputs: tuple[tuple[str, Fact[Any]], ...]
    kind = "derived"


Origin = Union[Written, Default, Catalog, Device, Lock, Receipt, Coefficient, Assumed, Derived]


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """A value and where it came from."""

    value: T
    origin: Origin

    def leaves(self) -> Iterator[Fact[Any]]:
        """The facts that nothing was derived from, in the order of the formula, each once."""
        seen: set[int] = set()
        stack: list[Fact[Any]] = [self]
        while stack:
            fact = stack.pop()
            if id(fact) in seen:
                continue
            seen.add(id(fact))
            if isinstance(fact.origin, Derived):
                stack.extend(input_ for _, input_ in reversed(fact.origin.inputs))
            else:
                yield fact

    def spans(self) -> Iterator[Span]:
        """Every written place that the value rests on."""
        for leaf in self.leaves():
            if isinstance(leaf.origin, Written):
                yield leaf.origin.span
                yield from leaf.origin.via


@dataclass(frozen=True, slots=True)
class Unknown:
    """Not to be had from the files.  `missing`: a short stable key (`hardware.memory`); `supply`: a sentence."""

    missing: str
    reason: str
    supply: str

    def __bool__(self) -> bool:
        return False


Value = Union[Fact[T], Unknown]


@dataclass(frozen=True, slots=True)
class Range:
    """A continuous doubt: `low <= true value <= high`, `nominal` the most likely."""

    low: Number
    nominal: Number
    high: Number

    @property
    def exact(self) -> bool:
        return self.low == self.high


def low(value: Any) -> Any:
    return value.low if isinstance(value, Range) else value


def nominal(value: Any) -> Any:
    return value.nominal if isinstance(value, Range) else value


def high(value: Any) -> Any:
    return value.high if isinstance(value, Range) else value


class Quantity(Generic[T]):
    """A plain function of numbers, lifted to facts when called; `plain` is the function itself.

    Ranges are evaluated at their corners, which is exact for functions monotone in each argument (property-tested).
    An `Unknown` argument makes the result that `Unknown`.  A function may itself return one: a layout it does not know.
    """

    def __init__(self, plain: Callable[..., T], name: str, unit: str, formula: str, source: str) -> None:
        self.plain = plain
        self.name = name
        self.unit = unit
        self.formula = formula
        self.source = source
        code = getattr(plain, "__wrapped__", plain).__code__
        self.parameters: tuple[str, ...] = code.co_varnames[: code.co_argcount]
        update_wrapper(self, plain)

    def __repr__(self) -> str:
        return f"<quantity {self.name}>"

    def __call__(self, *args: Value[Any], **kwargs: Value[Any]) -> Value[Any]:
        given: dict[str, Any] = dict(zip(self.parameters, args, strict=False))
        given.update(kwargs)
        values: dict[str, Any] = {}
        ranged: list[str] = []
        for name, fact in given.items():
            if isinstance(fact, Unknown):
                return fact
            values[name] = value = fact.value
            if isinstance(value, Range):
                ranged.append(name)
        result = self._evaluate(values, ranged) if ranged else self.plain(**values)
        if isinstance(result, Unknown):
            return result
        return Fact(result, Derived(self, tuple(given.items())))

    def _evaluate(self, values: dict[str, Any], ranged: list[str]) -> Any:
        """The function at its nominal arguments and at the corners of the ranges."""
        middle = self.plain(**{name: nominal(value) for name, value in values.items()})
        if isinstance(middle, Unknown):
            return middle
        corners: list[Any] = []
        for corner in product(*((values[name].low, values[name].high) for name in ranged)):
            result = self.plain(**{**values, **dict(zip(ranged, corner, strict=True))})
            if isinstance(result, Unknown):
                return result
            corners.append(result)
        least, most = min(corners), max(corners)
        return middle if least == most else Range(least, cast(Any, middle), most)


def quantity(name: str, *, unit: str, formula: str, source: str) -> Callable[[Callable[..., T]], Quantity[T]]:
    """Declare a plain function as a named quantity: `name` is the contract's, `source` says who gives the formula."""

    def wrap(plain: Callable[..., T]) -> Quantity[T]:
        return Quantity(plain, name, unit, formula, source)

    return wrap
