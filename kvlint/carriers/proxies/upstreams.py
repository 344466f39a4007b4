"""What the carriers of general proxies share: addresses of upstreams, and what is told of where they listen.

Such a proxy stands before any service; `general` marks it as of interest only where a server of ours is behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies.served import reached
from kvlint.facts import Assumed, Fact, Unknown, Value, Written
from kvlint.patterns import regex
from kvlint.source import Span, Text
from kvlint.subjects import Admission, Endpoint

_ADDRESS = regex(
    r"(?:(?P<scheme>https?|h2c|grpcs?|tcp4?)(?:://|@))?(?P<host>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?(?:/.*)?"
)
_STANDARD = {"https": 443, "grpcs": 443}
GENERAL = Fact(True, Assumed("it stands before any service"))


def whole(item: Item) -> Text:
    """The text of a file."""
    return Text.of(item.source, 0, len(item.source.text))


def embedded(name: str, text: Text, around: Around) -> Iterator[Finding]:
    """The configuration of a proxy that stands under a file's name in another file."""
    from kvlint.carriers.proxies import caddy, haproxy, nginx

    if name.endswith(".conf") and nginx.CLAIM.search(text.value):
        yield from nginx.config([(text, around)])
    elif name.endswith(".cfg") and haproxy.CLAIM.search(text.value):
        yield from haproxy.config(text, around)
    elif name.lower().startswith("caddyfile"):
        yield from caddy.config(text, around)


def address(text: Text, default: int | None = None) -> Endpoint | None:
    """The host and port that an upstream's word names; None for variables, sockets and what else is no address."""
    match = _ADDRESS.fullmatch(text.value) if text.known else None
    if match is None:
        return None
    port = int(match["port"]) if match["port"] else default or _STANDARD.get(match["scheme"] or "", 80)
    return Endpoint(match["host"].strip("[]"), port, text.span)


def endpoint(url: Text | None, names: tuple[str, ...] = ()) -> Endpoint | None:
    """The host and port of a base URL, and the names under which models are asked for there."""
    if url is None or not url.known or not url.value.startswith(("http://", "https://")):
        return None
    try:
        parts = urlsplit(url.value)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if host is None:
        return None
    return Endpoint(host, port or _STANDARD.get(parts.scheme, 80), url.span, names)


def number(text: Text | None) -> Fact[int] | None:
    """A whole number above zero, which limits nothing anywhere here."""
    if text is None or not text.value.isdigit() or int(text.value) == 0:
        return None
    return Fact(int(text.value), Written(text.span, text.via))


def settings(around: Around, port: Text | None, **more: Value[Any] | None) -> dict[str, Value[Any]]:
    """How others reach the proxy, and what else is known of one of its limits."""
    found: dict[str, Value[Any]] = {"general": GENERAL}
    listening = number(port)
    if listening is not None:
        found["port"] = listening
    if around.hosts and port is not None:
        found["hosts"] = Fact(around.hosts, Written(port.span))
    return {**found, **{name: value for name, value in more.items() if value is not None}}


def admission(
    around: Around, system: str, name: str, place: Span, limit: Value[int] | None, target: Endpoint | None, **about: Any
) -> Admission:
    return Admission(
        id="",
        system=system,
        unit=around.unit,
        name=name,
        place=place,
        limit=limit,
        target=reached(target, around),
        names=(name,),
        **about,
    )


def unknown_workers() -> Unknown:
    return Unknown("copies", "the number of worker processes is not in these files", "a literal worker_processes")
