"""llama-swap configurations in several files (`-config-dir`), and models that a script starts which is not in view."""

from __future__ import annotations

from carried import found, words

from kvlint.pipeline import check_files

SHARED = """\
healthCheckTimeout: 900
macros:
  anywhere: 0.0.0.0
  engine: >
    docker run --rm --gpus all ghcr.io/ggml-org/llama.cpp:server-cuda
"""
CHAT = """\
models:
  chat:
    cmd: |
      ${engine}
      -m /models/chat.gguf --host ${anywhere} --port ${PORT} --ctx-size 8192 --parallel 2
"""


def test_macros_of_the_file_that_is_read_with_the_models() -> None:
    read = found({"swap/base.yaml": SHARED, "swap/models/chat.yaml": CHAT})
    ((identity, process),) = read.processes
    assert identity == "swap/models/chat.yaml#chat"
    given = words(process)
    assert given[given.index("--host") + 1] == "0.0.0.0"
    assert given[-4:] == ["--ctx-size", "8192", "--parallel", "2"]
    assert not process.line.open  # the port depends on the other files, and is one word all the same
    report = check_files({"swap/base.yaml": SHARED, "swap/models/chat.yaml": CHAT})
    assert not [each for each in report.unchecked if each.missing in ("models", "macro engine", "macro anywhere")]


def test_the_file_that_is_read_with_the_models_may_have_models_too() -> None:
    main = SHARED + "models:\n  other:\n    cmd: ${engine} -m /models/other.gguf --port ${PORT} --ctx-size 4096 -np 1\n"
    read = found({"swap/config.yaml": main, "swap/models/chat.yaml": CHAT})
    assert [identity for identity, _ in read.processes] == ["swap/config.yaml#other", "swap/models/chat.yaml#chat"]


def test_models_whose_macros_are_in_no_file_in_view_are_unchecked_and_no_error() -> None:
    other = "models:\n  draw:\n    cmd: draw-server --listen ${anywhere} --port ${PORT} --for llama\n"
    report = check_files({"models/chat.yaml": CHAT, "models/draw.yaml": other})
    assert report.findings == []
    missing = {each.missing for each in report.unchecked if each.rule == "unknown-macro"}
    assert missing == {"macro engine", "macro anywhere"}


def test_the_one_file_that_is_given_holds_all_of_its_macros() -> None:
    whole = "models:\n  chat:\n    cmd: llama-server -m ${HOME}/chat.gguf --port ${PORT}\n"
    report = check_files({"llama-swap.yaml": whole})
    assert [each.rule for each in report.findings if each.severity == "error"] == ["unknown-macro"]


def test_a_file_without_models_is_recognised_and_said_to_be_unchecked() -> None:
    report = check_files({"base.yaml": SHARED})
    assert report.files_recognized == 1
    assert [(each.rule, each.missing) for each in report.unchecked] == [("width-below-admission", "models")]
    assert check_files({"values.yaml": "macros:\n  vllm: yes\nreplicas: 2\n"}).files_recognized == 0


def test_an_image_of_ones_own_behind_docker_run_is_known_by_its_flags() -> None:
    config = """\
models:
  chat:
    cmd: docker run --rm --gpus all spark-llm:local --enforce-eager --model /models/x --max-model-len 4096 --port ${PORT}
  say:
    cmd: docker run --rm --gpus all talk:local --voice alto --port ${PORT}
"""
    ((identity, process),) = found({"config.yaml": config}).processes
    assert identity == "config.yaml#chat"
    assert words(process)[:2] == ["vllm", "serve"]
