"""Procfiles, Makefiles and justfiles."""

from __future__ import annotations

import time

from found import argument, env, line, only, processes


def test_a_procfile() -> None:
    name, process = only({"Procfile": "web: gunicorn app\nllm: vllm serve m --port $PORT --max-num-seqs 4 # all\n"})
    assert (name, line(process)) == ("Procfile#llm", "vllm serve m --port ? --max-num-seqs 4")
    assert argument(process, "--max-num-seqs").span.text == "4"


MAKEFILE = """MODEL ?= org/m
WINDOW := 4096 # tokens
TWICE = 1
TWICE = 2
export HF_HOME = /hf
ifdef FAST
WIDTH = 64
endif

.PHONY: serve
serve: deps
\t@echo vllm
\t@CUDA_VISIBLE_DEVICES=0 vllm serve $(MODEL) \\
\t  --max-model-len ${WINDOW} --port $${PORT:-8000} $(EXTRA) \\
\t  --seed $(TWICE) --max-num-seqs $(WIDTH)

other:
\tpip install vllm
"""


def test_a_makefile() -> None:
    name, process = only({"Makefile": MAKEFILE})
    assert (name, line(process)) == (
        "Makefile#serve",
        "vllm serve org/m --max-model-len 4096 --port 8000 ? --seed ? --max-num-seqs ?",
    )
    window = argument(process, "--max-model-len")
    assert (window.span.text, window.span.line, [use.text for use in window.via]) == ("4096", 2, ["${WINDOW}"])
    assert env(process) == {"HF_HOME": "/hf", "CUDA_VISIBLE_DEVICES": "0"}
    assert [opening.span.text for opening in process.line.open] == ["$(EXTRA)", "$(TWICE)", "$(WIDTH)"]


JUSTFILE = """set shell := ["bash", "-c"]
window := "4096"
model := env_var_or_default("MODEL", 'org/m')
export HF_HOME := "/hf"

# serve it
serve port="8000" *args:
    @vllm serve {{model}} --max-model-len {{ window }} \\
        --port {{port}} {{args}}

script:
    #!/usr/bin/env bash
    N=5
    exec vllm serve {{model}} --max-num-seqs $N
"""


def test_a_justfile() -> None:
    found = processes({"justfile": JUSTFILE})
    assert {identity: line(process) for identity, process in found.items()} == {
        "justfile#serve": "vllm serve org/m --max-model-len 4096 --port 8000 ?",
        "justfile#script": "vllm serve org/m --max-num-seqs 5",
    }
    assert argument(found["justfile#serve"], "--max-model-len").span.text == "4096"
    assert env(found["justfile#serve"]) == {"HF_HOME": "/hf"}


def test_a_recipe_that_runs_a_script_of_the_repository() -> None:
    files = {"Makefile": "serve:\n\t./bin/serve.sh m\n", "bin/serve.sh": '#!/bin/sh\nexec vllm serve "$1" --port 1\n'}
    name, process = only(files)
    assert (name, line(process)) == ("Makefile#serve", "vllm serve m --port 1")


def test_variables_that_grow_without_end() -> None:
    grown = "A0 = x\n" + "".join(f"A{number} = " + f"$(A{number - 1}) " * 20 + "\n" for number in range(1, 9))
    start = time.process_time()
    _, process = only({"Makefile": f"{grown}a:\n\tvllm serve m --port 1 $(A8)\n"})  # 20 ** 8 words
    assert argument(process, "--port").value == "1"
    assert process.line.open
    assert time.process_time() - start < 10
