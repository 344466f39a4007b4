"""Documents inside strings keep their places in the outer file."""

from __future__ import annotations

import random

from carried import found, words

from kvlint.carriers.embedded import documents
from kvlint.formats import yaml
from kvlint.source import Source
from kvlint.tree import Map, Scalar, walk

OUTER = """\
data:
  config.yaml: |
    models:
      "a b": {cmd: "x \\u0041 y", list: [1, two]}
      folded: >-
        one
        two
"""


def inner(text: str) -> Map:
    (document,) = yaml.documents(Source("outer.yaml", text))
    assert isinstance(document.node, Map)
    (node,) = documents(document.node.scalar("data", "config.yaml").text)  # type: ignore[union-attr]
    assert isinstance(node, Map)
    return node


def test_values_and_places() -> None:
    node = inner(OUTER)
    assert node.string("models", "folded") == "one two"
    assert node.string("models", "a b", "cmd") == "x A y"
    for scalar in (each for each in walk(node) if isinstance(each, Scalar)):
        assert scalar.span.path == "outer.yaml"
    two = node.scalar("models", "a b", "list", 1)
    assert two is not None
    assert two.text.span.text == "two"
    assert (two.span.line, two.span.column) == (
        4,
        44,
    )  # 13 of `      "a b": `, 26 of `{cmd: "x \\u0041 y", list: `, `[1, `
    folded = node.scalar("models", "folded")
    assert folded is not None
    assert folded.text.slice(4).span.text == "two"


def test_every_character_of_a_plain_value_is_where_it_says() -> None:
    random.seed(7)
    names = ["".join(random.choices("abcxyz0189", k=6)) for _ in range(40)]
    body = "".join(f"    k{number}:\n      - {name}\n" for number, name in enumerate(names))
    node = inner("data:\n  config.yaml: |\n" + body)
    for number, name in enumerate(names):
        text = node.text(f"k{number}", 0)
        assert text is not None
        assert [text.slice(at, at + 1).span.text for at in range(len(name))] == list(name)


def test_a_config_map_may_hold_a_llama_swap_and_a_litellm_file() -> None:
    text = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: swap}
data:
  config.yaml: |
    models:
      qwen:
        cmd: vllm serve Qwen/Qwen3-8B --port ${PORT}
        concurrencyLimit: 4
  litellm.yaml: |
    model_list:
      - model_name: chat
        litellm_params: {model: openai/qwen, api_base: "http://swap:8080/v1", max_parallel_requests: 8}
  notes.txt: "models: none"
"""
    read = found({"map.yaml": text})
    assert [words(each) for _, each in read.processes] == [["vllm", "serve", "Qwen/Qwen3-8B", "--port", "5800"]]
    assert {each.id: getattr(each.limit, "value", None) for each in read.admissions} == {
        "map.yaml#llama-swap:qwen": 4,
        "map.yaml#litellm:chat": 8,
    }


def test_what_cannot_be_read_and_what_grows_is_left_out() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8)
    )
    body = "".join("    " + line + "\n" for line in bomb.splitlines())
    inner("data:\n  config.yaml: |\n" + body)
    (document,) = yaml.documents(Source("o.yaml", "a: |\n  b: [\n"))
    assert isinstance(document.node, Map)
    text = document.node.text("a")
    assert text is not None
    assert documents(text) == []
