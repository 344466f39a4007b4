"""Tags of templates, and what of them changes from request to request."""

from __future__ import annotations

import pytest

from kvlint.formats.jinja import tags
from kvlint.templates import volatile

LOOP = "{% for message in messages %}{{ message.content }}{% endfor %}"


def test_tags_with_their_bodies() -> None:
    text = "a{{- x + '}}' -}}{# {{ no }} #}{%+ if y == \"%}\" %}{{"
    assert [(each.kind, text[each.start : each.end].strip()) for each in tags(text)] == [
        ("output", "x + '}}'"),
        ("statement", 'if y == "%}"'),
    ]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("{{ strftime_now('%d %b %Y') }}" + LOOP, ["date"]),
        ('{{ strftime_now("%H:%M") }}' + LOOP, ["clock"]),
        ("{% set d = strftime_now('%Y') %}{% set e = 'on ' ~ d %}{{ e }}" + LOOP, ["date"]),
        ("{% set d = strftime_now('%Y') %}" + LOOP, []),  # never printed
        (LOOP + "{{ strftime_now('%H') }}", []),  # behind everything
        ("{% for m in messages %}{{ now() }}{% endfor %}", ["clock"]),
        ("{{ ['a', 'b'] | random }}" + LOOP, ["random"]),
        ("Hello {{ user_name }}" + LOOP, ["caller"]),
        ("{{ message['user_name'] }}{{ user_name == 'x' }}{{ m.username }}" + LOOP, []),
        ("{{ 'strftime_now(1)' }}{# {{ now() }} #}" + LOOP, []),
        ("{% if strftime_now is defined %}{% endif %}" + LOOP, []),
        ("{% for t in tools %}{{ t }}{% endfor %}{{ now() }}" + LOOP, ["clock"]),
        ("{{ now(", []),
        ("{%" * 2000, []),
    ],
)
def test_what_changes_before_what_is_reused(text: str, kinds: list[str]) -> None:
    assert [each.kind for each in volatile(text)] == kinds


def test_the_place_is_the_expression() -> None:
    text = '{%- set date = strftime_now("%d %b %Y") %}{{ date }}' + LOOP
    (source,) = volatile(text)
    assert text[source.start : source.end] == 'strftime_now("%d %b %Y")'
