"""Caddy: `unhealthy_request_count` of a `reverse_proxy`, above which an upstream counts as down.

Facts: caddyserver.com/docs/caddyfile/directives/reverse_proxy.  The count is of one process, for each upstream.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding, Item
from kvlint.carriers.embedded import Around
from kvlint.carriers.proxies import served
from kvlint.carriers.proxies.upstreams import address, admission, number, settings, whole
from kvlint.formats.nginx import Directive, all_named, parse
from kvlint.patterns import regex
from kvlint.project import Project
from kvlint.source import Text

_SITE_PORT = regex(r"(?:https?://)?[^:/\s]*:([0-9]+),?")


class Caddy:
    name = "caddy"

    def claims(self, item: Item) -> bool:
        return item.kind == "caddy" and "reverse_proxy" in item.source.text

    def read(self, items: list[Item], project: Project) -> Iterator[Finding]:
        for item in items:
            yield from config(whole(item), served.around(item.path, project))


CARRIER = Caddy()


def config(text: Text, around: Around) -> Iterator[Finding]:
    """Every `reverse_proxy` of every site."""
    for site in parse(text, by_line=True):
        yield from _block(site, _port(site), site.name.rstrip(","), around)


def _port(site: Directive) -> Text | None:
    for word in site.words:
        match = _SITE_PORT.fullmatch(word.value)
        if match is not None:
            return word.slice(*match.span(1))
    return None


def _block(directive: Directive, port: Text | None, site: str, around: Around) -> Iterator[Finding]:
    if directive.name == "reverse_proxy":
        yield from _proxy(directive, port, site, around)
        return
    for each in directive.block or ():
        yield from _block(each, port, site, around)


def _proxy(directive: Directive, port: Text | None, site: str, around: Around) -> Iterator[Finding]:
    block = directive.block or ()
    upstreams = [word for word in directive.args if word.value[:1] not in ("/", "@", "*")]
    upstreams += [word for each in all_named(block, "to") for word in each.args]
    count = next((each.args[0] for each in all_named(block, "unhealthy_request_count") if each.args), None)
    for upstream in upstreams:
        yield admission(
            around,
            "caddy",
            f"{site} {upstream.value}",
            count.span if count is not None else upstream.span,
            number(count),
            address(upstream),
            per="pod",
            excess="reject",
            settings=settings(around, port),
        )
