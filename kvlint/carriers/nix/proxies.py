"""`services.nginx` of NixOS: the configuration that the module writes of its options, as far as limits and upstreams go.

NixOS/nixpkgs: nixos/modules/services/web-servers/nginx/default.nix
"""

from __future__ import annotations

from collections.abc import Iterator

from kvlint.carriers.base import Finding
from kvlint.carriers.embedded import Around
from kvlint.source import Span, Text
from kvlint.tree import Map, Node, Scalar

_AROUND = ("commonHttpConfig", "appendHttpConfig", "httpConfig")


def nginx(node: Map, path: str, unit: str) -> Iterator[Finding]:
    """Every virtual host's locations, with the limits around them."""
    from kvlint.carriers.proxies import nginx as reader

    parts = [Text.at("events {}\nhttp {\n", node.span)]
    for key in _AROUND:
        parts += _text(node.get(key))
    for entry in node.map("upstreams") or ():
        parts += _upstream(entry.key, entry.value)
    for entry in node.map("virtualHosts") or ():
        parts += _host(entry.key, entry.value)
    parts.append(Text.at("}\n", node.span))
    text = Text.join(parts)
    if reader.CLAIM.search(text.value):
        yield from reader.config([(text, Around(path, unit))])


def _text(node: Node | None) -> list[Text]:
    return [node.text, Text.at("\n", node.span)] if isinstance(node, Scalar) and node.tag != "null" else []


def _upstream(name: Scalar, node: Node) -> Iterator[Text]:
    """`servers."127.0.0.1:8001" = { max_conns = 4; }`: each option of a server becomes a word behind it."""
    if not isinstance(node, Map):
        return
    yield from (Text.at("upstream ", name.span), name.text, Text.at(" {\n", name.span))
    yield from _text(node.get("extraConfig"))
    for server in node.map("servers") or ():
        yield from (Text.at("server ", server.key.span), server.key.text)
        for option in server.value if isinstance(server.value, Map) else ():
            if isinstance(option.value, Scalar) and option.value.tag != "bool":
                yield from (Text.at(f" {option.key.value}=", option.key.span), option.value.text)
        yield Text.at(";\n", server.key.span)
    yield Text.at("}\n", name.span)


def _host(name: Scalar, node: Node) -> Iterator[Text]:
    if not isinstance(node, Map):
        return
    yield from (Text.at("server {\nserver_name ", name.span), name.text, Text.at(";\n", name.span))
    yield from _text(node.get("extraConfig"))
    for location in node.map("locations") or ():
        yield from _location(location.key, location.value)
    yield Text.at("}\n", name.span)


def _location(name: Scalar, node: Node) -> Iterator[Text]:
    if not isinstance(node, Map):
        return
    at: Span = name.span
    yield from (Text.at("location ", at), name.text, Text.at(" {\n", at))
    target = node.text("proxyPass")
    if target is not None and target.value:
        yield from (Text.at("proxy_pass ", target.span), target, Text.at(";\n", target.span))
    yield from _text(node.get("extraConfig"))
    yield Text.at("}\n", at)
