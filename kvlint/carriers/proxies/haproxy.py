"""HAProxy: `maxconn` of a server, which in HTTP mode counts requests, and the queue behind it.

Facts: haproxy/haproxy@50872daa:doc/configuration.txt#L19056-19087.  `maxconn` of a frontend and of the process counts sockets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import address, admission, number, settings, whole
from kvlint.formats.haproxy import Section, option, parse
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.source import Text

CLAIM = regex(r"^(?:backend|listen)[ \t]+\S", re.MULTILINE)
Line = tuple[Text, ...]


class HAProxy:
    name = "haproxy"

    def claims(self, item: Item) -> bool:
        return item.kind == "conf" and CLAIM.search(item.source.text) is not None

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            yield from config(whole(item), served.around(item.path, project))


CARRIER = HAProxy()


def config(text: Text, around: Around) -> Iterator[Finding]:
    """The servers of every backend."""
    sections = list(parse(text))
    ports = _ports(sections)
    defaults: dict[str, Line] = {}
    for section in sections:
        own = {line[0].value: line for line in section.lines if line[0].value == "default-server"}
        if section.kind == "defaults":
            defaults = own
        elif section.kind in ("backend", "listen"):
            fallback = own.get("default-server") or defaults.get("default-server") or ()
            port = ports.get(section.name.value if section.name is not None else "") or _bound(section)
            for line in section.lines:
                yield from _server(section, line, fallback, port, around)


def _ports(sections: list[Section]) -> dict[str, Text]:
    """The port of the frontend that leads to each backend."""
    found: dict[str, Text] = {}
    for section in sections:
        port = _bound(section) if section.kind == "frontend" else None
        for line in section.lines if port is not None else ():
            if line[0].value in ("default_backend", "use_backend") and len(line) > 1 and port is not None:
                found.setdefault(line[1].value, port)
    return found


def _bound(section: Section) -> Text | None:
    line = next((line for line in section.lines if line[0].value == "bind" and len(line) > 1), None)
    return line[1].slice(line[1].value.rfind(":") + 1) if line is not None else None


def _server(section: Section, line: Line, fallback: Line, port: Text | None, around: Around) -> Iterator[Finding]:
    """`server NAME ADDRESS …`, or `server-template PREFIX COUNT ADDRESS …`, whose servers are the replicas of one name."""
    at = {"server": 2, "server-template": 3}.get(line[0].value)
    if at is None or len(line) <= at:
        return
    target = address(line[at])
    word = option(line, "maxconn") or option(fallback, "maxconn")
    backend = section.name.value if section.name is not None else section.kind
    queue = number(option(line, "maxqueue") or option(fallback, "maxqueue"))
    yield admission(
        around,
        "haproxy",
        f"{backend}/{line[1].value}",
        word.span if word is not None else line[at].span,
        number(word),
        target,
        per="pod",
        excess="wait",
        settings=settings(around, port, queue=queue),
    )
