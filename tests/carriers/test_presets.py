"""Presets of llama-server's router: one process a section, as the router starts it."""

from __future__ import annotations

from carried import found, processes, value, words

from kvlint.formats.ini import sections
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.source import Source, Text

INI = """\
version = 1   ; reserved
[*]
c = 8192
parallel = 1
jinja = true

[chat]
model = /models/chat.gguf
ctx-size = 32768      # wins over [*]
parallel = 4
kv-unified = false
load-on-startup = true
[ggml-org/gemma-3-4b-it-GGUF:Q8_0]
LLAMA_ARG_CACHE_RAM = 1024
no-kv-unified = false
"""
ROUTER = "#!/bin/sh\nexec llama-server --models-preset ./models.ini --models-max 1 --port 8081 --api-key x -ngl 99\n"


def test_sections_and_settings() -> None:
    source = Source("m.ini", "a=1\r\n[ x y ] ; c\r\nkey.a = v w # c\n=\nkey.a=2;\n[z]")
    read = list(sections(Text.of(source, 0, len(source.text))))
    shown = [(each.name and each.name.value, [(key.value, text.value) for key, text in each.settings]) for each in read]
    assert shown == [(None, [("a", "1")]), ("x y", [("key.a", "2")]), ("z", [])]
    assert read[1].settings[0][1].span.text == "2"


def test_a_section_over_all_sections_and_the_router_over_both() -> None:
    read = processes({"models.ini": INI, "serve.sh": ROUTER})
    assert set(read) == {"models.ini#chat", "models.ini#ggml-org/gemma-3-4b-it-GGUF:Q8_0"}
    own = ["--models-preset", "./models.ini", "--port", "8081", "-ngl", "99"]
    assert words(read["models.ini#chat"]) == [
        *("llama-server", "--ctx-size", "32768", "--parallel", "4", "--jinja", "--model", "/models/chat.gguf"),
        *("--no-kv-unified", *own),
    ]
    assert words(read["models.ini#ggml-org/gemma-3-4b-it-GGUF:Q8_0"]) == [
        *(
            "llama-server",
            "-hf",
            "ggml-org/gemma-3-4b-it-GGUF:Q8_0",
            "--ctx-size",
            "8192",
            "--parallel",
            "1",
            "--jinja",
        ),
        *("--cache-ram", "1024", "--kv-unified", *own),
    ]
    assert read["models.ini#chat"].site.exclusive  # one is loaded at a time
    assert read["models.ini#chat"].site.place.text == "chat"


def test_a_file_that_no_router_in_view_names() -> None:
    read = processes({"models.ini": INI})
    assert set(read) == {"models.ini#chat", "models.ini#ggml-org/gemma-3-4b-it-GGUF:Q8_0"}
    for other in (
        "[server]\nport = 80\nname = llama\n",
        "[llama]\nmodel = gpt-4\n",
        "[llama]\nmodel = x.gguf\ncolour = red\n",
    ):
        assert found({"other.ini": other}).processes == []


def test_what_is_asked_of_a_router_by_name() -> None:
    proxy = "model_list:\n  - model_name: x\n    litellm_params: {model: openai/chat, api_base: 'http://localhost:8081/v1'}\n"
    evaluation = evaluate(memory_project({"models.ini": INI, "serve.sh": ROUTER, "litellm.yaml": proxy}))
    assert [link.group.id for link in evaluation.chain.links] == ["models.ini#chat"]


def test_a_preset_in_a_config_map() -> None:
    manifest = """\
apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
    - name: server
      image: ghcr.io/ggml-org/llama.cpp:server-b11434
      args: [--models-preset, /etc/llama/models.ini]
  volumes: [{name: presets, configMap: {name: presets}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: presets}
data:
  models.ini: |
    [chat]
    hf = ggml-org/gemma-3-4b-it-GGUF
    c = 16384
    parallel = 4
"""
    (group,) = evaluate(memory_project({"pod.yaml": manifest})).groups
    assert group.id == "pod.yaml#chat"
    context = group.first.settings["context"]
    assert (value(context), context.origin.span.text) == (16384, "16384")  # type: ignore[union-attr]


def test_a_key_that_is_no_option() -> None:
    """`option '…' not recognized`: the router does not load the file."""
    report = check_files({"models.ini": "[chat]\nmodel = /m/chat.gguf\nctx-sizes = 4096\n", "serve.sh": ROUTER})
    assert [each.text for each in report.findings if each.rule == "unknown-flag"] == ["ctx-sizes"]


def test_a_variable_that_the_routers_line_is_made_of_is_none_of_its_models() -> None:
    router = "#!/bin/sh\n{}exec llama-server --models-dir {} --models-preset ./models.ini\n"
    files = {"models.ini": "[chat]\nmodel = /m/a.gguf\nc = 4096\nparallel = 1\n"}
    export = "export LLAMA_MODELS_DIR=/srv\n"

    def said(text: str) -> list[str]:
        return [each.rule for each in check_files({**files, "run.sh": text}).findings if each.severity != "note"]

    assert said(router.format(export, "$LLAMA_MODELS_DIR")) == []
    assert said(router.format(export, "/srv")) == ["unknown-environment"]
