"""Dataclasses whose methods are made when they are first needed.

The standard decorator writes and compiles five functions for each class while its module is imported.  A run imports two
hundred classes and makes records of sixty; most of a short run went there.  Here comparison, hash and repr are shared, and
`__init__` is compiled for the third record of a class.  What the records do is the same, and `dataclasses.fields`, `replace` and
`asdict` know them.  Options and fields that kvlint does not use are not supported.

`frozen` gives a record its hash, and type checkers refuse to set its fields.  At run time nothing does: a class that refuses
would make each of its records by one call for each field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

MISSING: Any = object()
FROM_FACTORY: Any = object()  # the argument was left out, and its default is made anew for each record


class Field:
    """A field's name, and how it is filled, shown and compared."""

    __slots__ = ("compare", "default", "default_factory", "init", "name", "repr")

    def __init__(
        self,
        *,
        default: Any = MISSING,
        default_factory: Any = MISSING,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.name = ""
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare


def _fields(record: Any) -> tuple[Field, ...]:
    """The fields of a record or of its class, in order."""
    found: tuple[Field, ...] = record.__record__
    return found


def _replace(record: Any, /, **changes: Any) -> Any:
    """A copy with some fields changed."""
    for each in record.__record__:
        if each.init and each.name not in changes:
            changes[each.name] = getattr(record, each.name)
    return type(record)(**changes)


def _dataclass(*, frozen: bool = False, eq: bool = True, slots: bool) -> Callable[[Any], Any]:
    """Make a class's annotated names its slots and fields."""
    if not slots:
        raise TypeError("a record has slots")
    return lambda cls: _record(cls, frozen, eq)


def _record(cls: Any, frozen: bool, eq: bool) -> Any:
    namespace = dict(cls.__dict__)
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    inherited = {each.name: each for each in getattr(cls.__base__, "__record__", ())}
    own = {name: _field(name, namespace.pop(name, MISSING)) for name in cls.__annotations__}
    every = tuple({**inherited, **own}.values())
    namespace["__slots__"] = tuple([name for name in own if name not in inherited])
    namespace["__record__"] = every
    namespace["__match_args__"] = tuple([each.name for each in every if each.init])
    namespace["__dataclass_fields__"] = _STANDARD
    namespace["__init__"] = _first_init()
    namespace.setdefault("__repr__", _repr)
    if eq:
        namespace["__values__"] = staticmethod(_values([each.name for each in every if each.compare]))
        namespace.setdefault("__eq__", _eq)
        namespace.setdefault("__hash__", _hash if frozen else None)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


def _field(name: str, default: Any) -> Field:
    made = default if isinstance(default, Field) else Field(default=default)
    made.name = name
    return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the compared fields of a record as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _first_init() -> Callable[..., None]:
    """Fills the first records of a class, and puts a compiled `__init__` in its place once there are more."""
    left = 2

    def init(self: Any, /, *args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        if left >= 0 and _filled(self, args, kwargs):
            return
        cls: Any = next(base for base in type(self).__mro__ if base.__dict__.get("__init__") is init)
        compiled = _compiled_init(cls)
        cls.__init__ = compiled
        compiled(self, *args, **kwargs)

    return init


def _filled(record: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the arguments fit, and then the fields are set."""
    given = dict(zip(record.__match_args__, args, strict=False))
    if len(given) != len(args) or not given.keys().isdisjoint(kwargs):
        return False
    given.update(kwargs)
    values = {}
    for each in record.__record__:
        if each.init and each.name in given:
            values[each.name] = given.pop(each.name)
        elif each.default_factory is not MISSING:
            values[each.name] = each.default_factory()
        elif each.default is not MISSING:
            values[each.name] = each.default
        elif each.init:
            return False
    if given:
        return False
    for name, value in values.items():
        setattr(record, name, value)
    if hasattr(record, "__post_init__"):
        record.__post_init__()
    return True


def _compiled_init(cls: Any) -> Callable[..., None]:
    plain = [each for each in cls.__record__ if each.init and each.default_factory is MISSING]
    if hasattr(cls, "__post_init__") or len(plain) < len(cls.__record__):
        return _written_init(cls)
    names = cls.__match_args__
    code = _stores(len(names)).replace(co_varnames=("self", *names), co_names=names)
    defaults = tuple([each.default for each in plain if each.default is not MISSING])
    made = FunctionType(code, {}, "__init__", defaults)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


@cache
def _stores(count: int) -> CodeType:
    """The code of an `__init__` that sets `count` fields to its arguments; classes differ in their names alone."""
    names = [f"field_{number}" for number in range(count)]
    scope: dict[str, Any] = {}
    stores = "\n ".join([f"self.{name} = {name}" for name in names] or ["pass"])
    exec(f"def __init__({', '.join(['self', *names])}):\n {stores}", scope)
    code: CodeType = scope["__init__"].__code__
    return code


def _written_init(cls: Any) -> Callable[..., None]:
    """The `__init__` of a class with fields that are made anew or left out, or with more to do than setting them."""
    scope: dict[str, Any] = {"FROM_FACTORY": FROM_FACTORY}
    parameters = ["self"]
    body = []
    for each in cls.__record__:
        name = value = each.name
        if each.default_factory is not MISSING:
            scope[f"make_{name}"] = each.default_factory
            value = f"make_{name}() if {name} is FROM_FACTORY else {name}" if each.init else f"make_{name}()"
            default = "=FROM_FACTORY"
        elif each.default is not MISSING:
            scope[f"default_{name}"] = each.default
            value = name if each.init else f"default_{name}"
            default = f"=default_{name}"
        elif each.init:
            default = ""
        else:
            continue
        if each.init:
            parameters.append(name + default)
        body.append(f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"]), scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    shown: Iterable[str] = (f"{each.name}={getattr(self, each.name)!r}" for each in self.__record__ if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__values__(self) == self.__values__(other)


def _hash(self: Any) -> int:
    return hash(self.__values__(self))


class _Standard:
    """`__dataclass_fields__`, made when a function of the standard module asks for it."""

    def __get__(self, record: Any, cls: Any) -> dict[str, Any]:
        import dataclasses

        made = []
        for each in cls.__record__:
            how: dict[str, Any] = {"init": each.init, "repr": each.repr, "compare": each.compare}
            if each.default_factory is not MISSING:
                how["default_factory"] = each.default_factory
            elif each.default is not MISSING:
                how["default"] = each.default
            made.append((each.name, Any, dataclasses.field(**how)))
        standard: Any = dataclasses.make_dataclass("Standard", made, kw_only=True)
        fields: dict[str, Any] = standard.__dataclass_fields__
        return fields


_STANDARD = _Standard()

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    dataclass, field, fields, replace = _dataclass, Field, _fields, _replace
