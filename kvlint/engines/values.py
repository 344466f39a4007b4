"""Values of options, read as each engine's own converter reads them.

`convert(type, text)` gives the value or raises `Malformed` with what would have been accepted.  Types are named in the engines'
data; a name not listed here is a string that nothing checks.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from kvlint.patterns import regex

DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SUFFIXED = regex(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_SI = regex(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")
_BARE_SUFFIX = regex(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
_QUOTED = regex(r'("(?:[^"\\]|\\.)*")')
_LONGEST = 4096
_DEEPEST = 64


class Malformed(ValueError):
    """The engine's converter refuses the text.  `expects`: what it takes, for people."""

    def __init__(self, expects: str, reason: str = "") -> None:
        super().__init__(reason or f"expects {expects}")
        self.expects = expects
        self.reason = reason


def plain_int(text: str) -> int:
    """Python's `int`: blanks around it and `_` between digits are accepted."""
    if len(text) > _LONGEST:
        raise Malformed("an integer")
    try:
        return int(text)
    except ValueError:
        raise Malformed("an integer") from None


def plain_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Malformed("a number") from None


def _suffixed(text: str, suffixes: str) -> int:
    match = _SUFFIXED.fullmatch(text.strip())
    if match and match[2] in suffixes:
        number, suffix = match.groups()
        if suffix in DECIMAL:
            return _whole(float(number) * DECIMAL[suffix])
        if "." in number:
            raise Malformed(f"an integer; {number}{suffix.lower()} for decimals", "decimals need a lower-case suffix")
        return plain_int(number) * BINARY[suffix]
    try:
        return plain_int(text.strip())
    except Malformed:
        raise Malformed("an integer, or one with k, m, g (powers of 1000) or K, M, G (powers of 1024)") from None


def _whole(number: float) -> int:
    if not math.isfinite(number):
        raise Malformed("an integer")
    return int(number)


def human_int(text: str) -> int:
    """vLLM from 0.13: lower case is decimal, upper case binary; decimals only with lower case."""
    return _suffixed(text, "kKmMgGtT")


def human_int_no_tera(text: str) -> int:
    """vLLM up to 0.12: its tables end at G."""
    return _suffixed(text, "kKmMgG")


def human_int_or_auto(text: str) -> int:
    """vLLM's window from 0.14: also `auto`, any case, which is -1."""
    if text.strip().lower() == "auto":
        return -1
    return human_int(text)


def si_int(text: str) -> int:
    """SGLang from 0.5.10: k, M, G, T are powers of 1000, Ki, Mi, Gi, Ti powers of 1024; bare K is refused."""
    match = _SI.fullmatch(text.strip())
    if not match:
        try:
            return plain_int(text.strip())
        except Malformed:
            raise Malformed("an integer, or one with k, M, G (powers of 1000) or Ki, Mi, Gi (powers of 1024)") from None
    number, suffix = match.groups()
    if suffix.endswith("i"):
        if "." in number:
            raise Malformed("an integer before Ki, Mi, Gi", "decimals need k, M or G")
        return plain_int(number) * BINARY[suffix[0]]
    return int(Decimal(number) * DECIMAL[suffix.lower()])


_SIZES = {"M": 10**6, "MB": 10**6, "G": 10**9, "GB": 10**9, "": 1}


def _size(text: str, number: Callable[[str], Any]) -> int:
    split = next((at for at, char in enumerate(text) if not (char.isdigit() or char == ".")), len(text))
    expects = "a number of bytes, or one with M, MB, G or GB (powers of 1000)"
    unit = _SIZES.get(text[split:].strip().upper())
    if unit is None:
        raise Malformed(expects)
    try:
        return int(number(text[:split]) * unit)
    except (ValueError, InvalidOperation, OverflowError):
        raise Malformed(expects) from None


def size(text: str) -> int:
    """mlx-lm from 0.32: a decimal size, exact."""
    return _size(text, Decimal)


def size_float(text: str) -> int:
    """mlx-lm 0.31: the same through a float."""
    return _size(text, float)


def load_json(text: str) -> Any:
    """JSON as Python reads it; depth and length are bounded."""
    if len(text) > 1 << 20 or _depth(text) > _DEEPEST:
        raise Malformed("a smaller JSON value")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("JSON", "not valid JSON") from None


def _depth(text: str) -> int:
    deepest = level = 0
    for char in text:
        if char in "[{":
            level += 1
            deepest = max(deepest, level)
        elif char in "]}":
            level -= 1
    return deepest


def expand_numbers(text: str) -> str:
    """vLLM from 0.20: `80g` outside quotes inside a JSON value is written out before it is read."""
    parts = _QUOTED.split(text)
    for at in range(0, len(parts), 2):
        parts[at] = _BARE_SUFFIX.sub(lambda match: str(human_int(match.group())), parts[at])
    return "".join(parts)


def json_object(text: str) -> dict[str, Any]:
    value = load_json(text)
    if not isinstance(value, dict):
        raise Malformed("a JSON object")
    return value


def json_list(text: str) -> list[Any]:
    value = load_json(text)
    if not isinstance(value, list):
        raise Malformed("a JSON list")
    return value


def json_or_kvs(text: str) -> Any:
    """vLLM up to 0.9.2: JSON in braces, else `key=1,other=2`."""
    if re.match(r"^{.*}$", text):
        return load_json(text)
    return kvs(text)


def kvs(text: str) -> dict[str, int]:
    pairs: dict[str, int] = {}
    for item in text.split(","):
        key, equals, value = (part.strip().lower() for part in item.partition("="))
        if not equals or "=" in value:
            raise Malformed("JSON, or key=integer pairs with commas")
        pairs[key] = plain_int(value)
    return pairs


def json_or_str(text: str) -> Any:
    """vLLM: what stands in braces is JSON, anything else stays text."""
    return load_json(text) if re.match(r"(?s)^\s*{.*}\s*$", text) else text


def positive_int(text: str) -> int:
    value = plain_int(text)
    if value < 1:
        raise Malformed("an integer of at least 1")
    return value


def positive_float(text: str) -> float:
    value = plain_float(text)
    if not value > 0:
        raise Malformed("a number above 0")
    return value


def auto_or_positive_int(text: str) -> int | str:
    return text if text == "auto" else positive_int(text)


def truth(text: str) -> bool:
    """vLLM up to 0.8: `--flag true` in any case."""
    if text.lower() not in ("true", "false"):
        raise Malformed("true or false")
    return text.lower() == "true"


def optional_str(text: str) -> str | None:
    return None if text in ("", "None") else text


def snake(text: str) -> str:
    """vLLM's names of backends: any case, `-` for `_`."""
    return text.lower().replace("-", "_")


def comma_list(text: str) -> list[str]:
    return text.split(",")


def device_ids(text: str) -> list[int | str]:
    parts = [part.strip() for part in text.split(",")]
    return [int(part) if part.isdecimal() else part for part in parts]


def key_values(text: str) -> tuple[str, str]:
    """SGLang up to 0.4: `name=path`, or a path that is its own name."""
    name, equals, path = text.partition("=")
    return (name, path) if equals else (text, text)


def lora_module(text: str) -> Any:
    """vLLM: `name=path`, or a JSON object of a module."""
    if "=" in text and "," not in text:
        if text.count("=") > 1:
            raise Malformed("name=path, or a JSON object")
        return text
    return json_object(text) if text else None


def name_path(text: str) -> str:
    """vLLM's prompt adapters: one equals sign."""
    if text.count("=") != 1:
        raise Malformed("name=path")
    return text


def unsigned(bits: int) -> Callable[[str], int]:
    """A Rust integer without a sign: digits, one `+` in front at most."""

    def read(text: str) -> int:
        if not re.fullmatch(r"\+?[0-9]+", text) or len(text) > 40 or int(text) >= 1 << bits:
            raise Malformed(f"an integer from 0 to {(1 << bits) - 1}")
        return int(text)

    return read


def rust_float(text: str) -> float:
    if not re.fullmatch(r"[+-]?(inf|infinity|nan|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)", text, re.IGNORECASE):
        raise Malformed("a number")
    return float(text)


def rust_bool(text: str) -> bool:
    if text not in ("true", "false"):
        raise Malformed("true or false")
    return text == "true"


_STOI = regex(r"\s*([+-]?\d+)", re.ASCII)
_STOF = regex(r"\s*([+-]?(?:inf(?:inity)?|nan|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))", re.ASCII | re.IGNORECASE)


def leading_int(text: str) -> int:
    """C++ `std::stoi`: the digits in front count, the rest is dropped; 32 bits."""
    match = _STOI.match(text)
    if not match or len(match[1]) > 12 or not -(1 << 31) <= int(match[1]) < 1 << 31:
        raise Malformed("an integer below 2147483648")
    return int(match[1])


def leading_unsigned(text: str) -> int:
    """C++ `std::stoul` stored in 32 bits."""
    match = _STOI.match(text)
    if not match or len(match[1]) > 20:
        raise Malformed("an integer")
    return int(match[1]) & 0xFFFFFFFF


def leading_float(text: str) -> float:
    """C++ `std::stof`: the number in front counts."""
    match = _STOF.match(text)
    if not match:
        raise Malformed("a number")
    value = float(match[1])
    if math.isfinite(value) and abs(value) > 3.4028235e38:
        raise Malformed("a number")
    return value


def layers(text: str) -> int | str:
    """llama-server's -ngl: a number, `auto` or `all`."""
    return text if text in ("auto", "all") else leading_int(text)


_ON = ("on", "enabled", "true", "1")
_OFF = ("off", "disabled", "false", "0")


def on_off(text: str) -> bool:
    if text not in _ON + _OFF:
        raise Malformed("on or off")
    return text in _ON


def on_off_auto(text: str) -> bool | str:
    return "auto" if text in ("auto", "-1") else on_off(text)


def float_list(text: str) -> list[float]:
    return [leading_float(part) for part in re.split(r"[,/]+", text)]


def int_list(text: str) -> list[int]:
    return [leading_int(part) for part in re.split(r"[,/]+", text)]


def kv_override(text: str) -> str:
    """llama-server: KEY=TYPE:VALUE, several with commas."""
    for item in text.split(","):
        if not re.match(r"[^=]{1,127}=(int:\s*[+-]?\d|float:|bool:(true|false)$|str:)", item):
            raise Malformed("KEY=TYPE:VALUE, TYPE one of int, float, bool, str")
    return text


def tensor_override(text: str) -> str:
    """llama-server: PATTERN=BUFFER, several with commas."""
    if not all("=" in item for item in text.split(",")):
        raise Malformed("PATTERN=BUFFER")
    return text


def scaled_files(text: str) -> list[tuple[str, float]]:
    """llama-server: FILE:SCALE, several with commas."""
    parts = [item.split(":") for item in text.split(",")]
    if any(len(part) != 2 for part in parts):
        raise Malformed("FILE:SCALE")
    return [(name, leading_float(scale)) for name, scale in parts]


def click_bool(text: str) -> bool:
    if text.strip().lower() not in ("1", "true", "t", "yes", "y", "on", "0", "false", "f", "no", "n", "off"):
        raise Malformed("a boolean")
    return text.strip().lower() in ("1", "true", "t", "yes", "y", "on")


TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": plain_int,
    "float": plain_float,
    "human_int": human_int,
    "human_int_no_tera": human_int_no_tera,
    "human_int_or_auto": human_int_or_auto,
    "si_int": si_int,
    "size": size,
    "size_float": size_float,
    "json": load_json,
    "json_loads": load_json,
    "json_object": json_object,
    "json_list": json_list,
    "json_or_kvs": json_or_kvs,
    "json_or_str": json_or_str,
    "kvs": kvs,
    "positive_int": positive_int,
    "positive_float": positive_float,
    "auto_or_positive_int": auto_or_positive_int,
    "truth": truth,
    "optional_str": optional_str,
    "snake": snake,
    "comma_list": comma_list,
    "device_ids": device_ids,
    "key_values": key_values,
    "lora_module": lora_module,
    "name_path": name_path,
    "u16": unsigned(16),
    "u32": unsigned(32),
    "u64": unsigned(64),
    "rust_float": rust_float,
    "rust_bool": rust_bool,
    "leading_int": leading_int,
    "leading_unsigned": leading_unsigned,
    "leading_float": leading_float,
    "layers": layers,
    "on_off": on_off,
    "on_off_auto": on_off_auto,
    "float_list": float_list,
    "kv_override": kv_override,
    "tensor_override": tensor_override,
    "scaled_files": scaled_files,
    "int_list": int_list,
    "click_bool": click_bool,
}


def convert(kind: str, text: str) -> Any:
    """The value of `text` as type `kind`.  Raises `Malformed`."""
    reader = TYPES.get(kind)
    return text if reader is None else reader(text)
