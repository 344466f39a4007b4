"""nginx, Caddy and HAProxy: directives and words with their places."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.formats import haproxy, nginx
from kvlint.source import Source, Text


def read(path: str, text: str) -> Text:
    return Text.of(Source(path, text), 0, len(text))


def shape(directives: tuple[nginx.Directive, ...]) -> list[Any]:
    return [
        [word.value for word in each.words]
        if each.block is None
        else ([word.value for word in each.words], shape(each.block))
        for each in directives
    ]


def test_nginx() -> None:
    text = """\
# a comment; {
worker_processes 4;
http {
  limit_conn_zone $server_name zone=all:10m;
  log_format main '$remote_addr; {x}';  # behind
  server { listen 80; location ~ ^/v1/(chat|x){1,2} { proxy_pass http://llm$1; } }
  content_by_lua_block { if x then y = {} end }
  map $x $y { default ""; }
  server{listen 81;location /{return 200;}}
}
"""
    found = nginx.parse(read("nginx.conf", text))
    assert shape(found) == [
        ["worker_processes", "4"],
        (
            ["http"],
            [
                ["limit_conn_zone", "$server_name", "zone=all:10m"],
                ["log_format", "main", "$remote_addr; {x}"],
                (
                    ["server"],
                    [["listen", "80"], (["location", "~", "^/v1/(chat|x){1,2}"], [["proxy_pass", "http://llm$1"]])],
                ),
                (["content_by_lua_block"], []),
                (["map", "$x", "$y"], [["default", ""]]),
                (["server"], [["listen", "81"], (["location", "/"], [["return", "200"]])]),
            ],
        ),
    ]
    assert found[0].args[0].span.text == "4"


def test_caddy() -> None:
    text = """\
{
\tadmin off
}
llm.example.com, :8080 {
\treverse_proxy /v1/* {
\t\tto vllm:8000 {$OTHER}
\t\tunhealthy_request_count 8
\t}
}
"""
    assert shape(nginx.parse(read("Caddyfile", text), by_line=True)) == [
        (["{"], [["admin", "off"]]),
        (
            ["llm.example.com,", ":8080"],
            [(["reverse_proxy", "/v1/*"], [["to", "vllm:8000", "{$OTHER}"], ["unhealthy_request_count", "8"]])],
        ),
    ]


def test_haproxy() -> None:
    text = """\
global
    maxconn 1000
backend llm   # servers
    balance "least conn"
    server one 10.0.0.1:8000 maxconn 16 # here
    server two two\\ words:8000 check
"""
    one, two = haproxy.parse(read("haproxy.cfg", text))
    assert (one.kind, one.name, len(one.lines)) == ("global", None, 1)
    assert two.name is not None
    assert (two.kind, two.name.value) == ("backend", "llm")
    assert [[word.value for word in line] for line in two.lines] == [
        ["balance", "least conn"],
        ["server", "one", "10.0.0.1:8000", "maxconn", "16"],
        ["server", "two", "two\\ words:8000", "check"],
    ]
    limit = haproxy.option(two.lines[1], "maxconn")
    assert limit is not None
    assert limit.span.text == "16"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="a{};#\"'\\$ \n\r\t`", max_size=60))
def test_any_text_is_read(text: str) -> None:
    source = read("x", text)
    for by_line in (False, True):
        nginx.parse(source, by_line=by_line)
    list(haproxy.parse(source))


def test_deep_and_long_files_end() -> None:
    nginx.parse(read("x", "a {\n" * 100_000))
    nginx.parse(read("x", '"' * 20_001))
    list(haproxy.parse(read("x", "backend a\n" + "server " * 50_000)))
