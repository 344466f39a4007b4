"""Configurations of machines at home: builds of one's own, files that are filled in, programs behind llama-swap."""

from __future__ import annotations

import pytest

from kvlint.facts import Unknown
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.subjects import Server


def servers(files: dict[str, str]) -> dict[str, Server]:
    return {group.id: group.first for group in evaluate(memory_project(files)).groups}


def found(files: dict[str, str]) -> list[tuple[str, str]]:
    return [(each.severity, each.rule) for each in check_files(files).findings if each.severity != "note"]


SWAP = """healthCheckTimeout: 60
models:
  chat: {{cmd: "{} --port ${{PORT}} -m /m/a.gguf -c 32768 -np 2"}}
"""


@pytest.mark.parametrize(
    "program",
    [
        "/home/me/bin/llama-server-therock",
        "/opt/llama.cpp/llama-server-vulkan",
        "ik-llama-server",
        "llama-server-cuda12.exe",
        "llama-server-b9000",
    ],
)
def test_a_build_that_is_named_after_its_backend(program: str) -> None:
    (server,) = servers({"config.yaml": SWAP.format(program)}).values()
    assert (server.engine, server.settings["window"].value) == ("llama-server", 16384)  # 32768 over 2 slots
    report = check_files({"config.yaml": SWAP.format(program)})
    assert all(each.severity != "error" for each in report.findings)


@pytest.mark.parametrize(
    "program", ["stop-llama-server", "llama-server-health", "llama-server-log", "my-llama-servers"]
)
def test_a_program_that_only_speaks_of_the_server(program: str) -> None:
    assert servers({"config.yaml": SWAP.format(program)}) == {}


def test_a_wrapper_may_add_what_is_not_written() -> None:
    (wrapped,) = servers({"config.yaml": SWAP.format("llama-server-wrapped").replace(" -np 2", "")}).values()
    assert isinstance(wrapped.settings["batch_width"], Unknown)


def test_a_program_of_llama_swap_that_is_no_engine() -> None:
    report = check_files({"config.yaml": SWAP.format("/usr/bin/sd-server")})
    (gap,) = report.unchecked
    assert (gap.rule, gap.server, gap.missing) == ("width-below-admission", "config.yaml#chat", "engine")
    assert "`/usr/bin/sd-server --port " in gap.supply


PLACEHOLDERS = """apiVersion: v1
kind: ConfigMap
metadata: {name: swap, namespace: @namespace@}
data:
  config.yaml: |
    models:
      chat:
        cmd: llama-server --port ${PORT} -m /m/a.gguf -np 1 -c @context@
"""


def test_names_between_at_signs_are_filled_in_later() -> None:
    report = check_files({"swap.yaml": PLACEHOLDERS})
    assert report.not_understood == []
    assert [each for each in report.findings if each.severity == "error"] == []
    (server,) = servers({"swap.yaml": PLACEHOLDERS}).values()
    assert server.engine == "llama-server"


@pytest.mark.parametrize("text", ["a: vllm\nb: '@me@example.social'\n", "a: vllm\nb: x@sha256:12@y\n"])
def test_at_signs_in_ordinary_text(text: str) -> None:
    assert check_files({"a.yaml": text}).not_understood == []


ROUTER = """services:
  router:
    image: ghcr.io/ggml-org/llama.cpp:server-b9093
    command: --models-preset /models.ini --port 8080 --host 0.0.0.0
    volumes: ["./models.ini:/models.ini"]
"""


def test_the_models_of_one_router_are_no_replicas() -> None:
    presets = "[small]\nhf = a/b-GGUF:Q4_K_M\nctx-size = 8192\n[large]\nhf = c/d-GGUF:Q4_K_M\nctx-size = 8192\n"
    files = {"compose.yaml": ROUTER, "models.ini": presets}
    assert len(servers(files)) == 2
    assert "replica-identity" not in [rule for _, rule in found(files)]


@pytest.mark.parametrize("question", ["--list-devices", "--version"])
def test_a_script_that_asks_for_the_devices(question: str) -> None:
    assert servers({"ask.sh": f"#!/bin/sh\nllama-server {question}\n"}) == {}
    unit = f"[Service]\nExecStart=/usr/bin/llama-server {question}\n"
    assert [rule for _, rule in found({"llama.service": unit})] == ["help-instead-of-server"]


def messages(files: dict[str, str], rule: str) -> list[tuple[str, str]]:
    return [(each.severity, each.message) for each in check_files(files).findings if each.rule == rule]


def test_a_flag_and_its_value_in_one_word() -> None:
    """No release of llama-server splits at the sign: `--port=8080` ends in an invalid argument."""
    text = "#!/bin/sh\nllama-server -m a.gguf --port=8080\n"
    ((severity, message),) = messages({"a.sh": text}, "unknown-flag")
    assert severity == "error"
    assert "`--port=8080` is one argument" in message
    ((severity, _),) = messages({"a.sh": text.replace("server ", "server-wrapper ")}, "unknown-flag")
    assert severity == "warning"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("llama-server -m a.gguf -fa --jinja", "refuses `-fa --jinja` since b9093: it takes on or off"),
        ("llama-server -m a.gguf --no-mmap", "refuses `--no-mmap` since b11434; instead"),
        (
            "vllm-mlx serve a/b --max-tokens 40000",
            "refuses `--max-tokens 40000` since 0.2.9: it is above --max-request-tokens, 32,768, its default",
        ),
    ],
)
def test_what_the_newest_release_refuses_is_named(arguments: str, said: str) -> None:
    ((severity, message),) = messages({"a.sh": f"#!/bin/sh\n{arguments}\n"}, "breaks-when-updated")
    assert severity == "warning"
    assert said in message


def test_a_switch_of_a_preset_goes_by_its_flag() -> None:
    presets = {"models.ini": "[a]\nhf = a/b-GGUF:Q4_K_M\nno-mmap = true\n"}
    ((_, message),) = messages(presets, "removed-flag") or messages(presets, "breaks-when-updated")
    assert "`--no-mmap`" in message


def test_why_two_values_do_not_go_together() -> None:
    line = (
        "#!/bin/sh\nuvx --from vllm==0.22.1 vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --max-num-batched-tokens 128\n"
    )
    ((severity, message),) = messages({"a.sh": line}, "malformed-value")
    assert severity == "error"
    assert "above --max-num-batched-tokens, 128" in message


def settings(server: Server) -> tuple[object, ...]:
    return tuple(server.settings[name].value for name in ("window", "batch_width", "kv_dtype"))


PRESET_OPTION = """{ lib, pkgs, ... }:
let common = { ctx-size = "65536"; parallel = 2; cache-type-k = "q8_0"; cache-type-v = "q8_0"; flash-attn = "on"; };
in {
  services.llama-cpp = {
    enable = true;
    port = 8090;
    modelsPreset = {
      large = common // { hf-repo = "a/b-GGUF:Q4_K_M"; };
      small = common // { model = "/m/s.gguf"; ctx-size = 8192; jinja = true; };
    };
  };
}
"""


def test_presets_of_nixpkgs_own_module() -> None:
    found = servers({"llm.nix": PRESET_OPTION})
    large, small = found["llm.nix#large"], found["llm.nix#small"]
    assert settings(large) == (32768, 2, "q8_0")  # 65536 over 2 slots
    assert settings(small) == (4096, 2, "q8_0")  # 8192 over 2 slots
    assert "65536" in [span.text for span in large.settings["window"].spans()]
    assert small.settings["port"].value == 8090


@pytest.mark.parametrize(
    "written",
    [
        'pkgs.writeText "m.ini" "[a]\\nhf = a/b-GGUF:Q4\\nctx-size = 16384\\nparallel = 4\\n"',
        '(pkgs.formats.ini { }).generate "m.ini" { a = { hf = "a/b-GGUF:Q4"; ctx-size = 16384; parallel = 4; }; }',
    ],
)
def test_presets_that_a_unit_takes_from_the_store(written: str) -> None:
    text = f"""{{ lib, pkgs, ... }}:
let presets = {written};
in {{
  systemd.services.llm.serviceConfig.ExecStart = "${{pkgs.llama-cpp}}/bin/llama-server --models-preset ${{presets}} --port 81";
}}
"""
    (server,) = servers({"llm.nix": text}).values()
    assert settings(server)[:2] == (4096, 4)  # 16384 over 4 slots


@pytest.mark.parametrize(
    "files",
    [
        {
            "llm.nix": "{ m, ... }:\n{ services.llama-cpp = { port = 80; modelsPreset = builtins.mapAttrs (n: v: v) m; }; }\n"
        },
        {"llm.sh": "#!/bin/sh\nllama-server --port 80 --models-preset /etc/llama/models.ini -np 2\n"},
    ],
)
def test_presets_that_are_not_in_view(files: dict[str, str]) -> None:
    (server,) = servers(files).values()
    assert isinstance(server.settings["window"], Unknown)
    assert "width-below-admission" not in [rule for _, rule in found(files)]


OWN_MODULE = """{ pkgs, ... }:
let model = name: "/models/${name}";
in {
  services.llama-server.servers.small = {
    enable = true;
    port = 8013;
    model = model "Qwen3-4B-Q6_K.gguf";
    ngl = 99;
    extraFlags = ''--ctx-size 32768 --parallel 2'';
  };
}
"""


def test_several_servers_of_a_module_of_ones_own() -> None:
    (server,) = servers({"host.nix": OWN_MODULE}).values()
    assert server.settings["model"].value == "/models/Qwen3-4B-Q6_K.gguf"
    assert server.settings["batch_width"].value == 2
    assert server.settings["window"].value == 16384  # 32768 over 2 slots


PACKAGE = """{{ config, lib, pkgs, ... }}:
let cfg = config.services.ollama;
    package = if cfg.fast then cfg.package else cfg.package.override {{ inherit (cfg) acceleration; }};
in {{
  config.launchd.daemons.ollama = {{
    {start}
    serviceConfig.EnvironmentVariables = {{ OLLAMA_NUM_PARALLEL = "3"; OLLAMA_CONTEXT_LENGTH = "4096"; }}{more};
  }};
}}
"""


@pytest.mark.parametrize(
    "start",
    [
        'command = "${lib.getExe cfg.package} serve";',
        'serviceConfig.ProgramArguments = [ (lib.getExe package) "serve" ];',
        'serviceConfig.ProgramArguments = [ "${lib.getExe package}" "serve" ];',
    ],
)
def test_a_package_that_is_an_option(start: str) -> None:
    (server,) = servers({"ollama.nix": PACKAGE.format(start=start, more="")}).values()
    assert (server.engine, server.settings["batch_width"].value) == ("ollama", 3)


def test_variables_that_another_module_may_replace() -> None:
    text = PACKAGE.format(start='command = "${lib.getExe cfg.package} serve";', more=" // cfg.environmentVariables")
    (server,) = servers({"ollama.nix": text}).values()
    assert isinstance(server.settings["batch_width"], Unknown)


def test_variables_that_launchd_gives_to_the_app() -> None:
    script = "#!/bin/sh\nlaunchctl setenv OLLAMA_NUM_PARALLEL 4\nlaunchctl setenv OLLAMA_CONTEXT_LENGTH 8192\n"
    (server,) = servers({"mac.sh": script}).values()
    assert (server.engine, server.settings["batch_width"].value, server.settings["window"].value) == ("ollama", 4, 8192)
    agent = '{ launchd.user.envVariables = { OLLAMA_NUM_PARALEL = "4"; EDITOR = "vi"; }; }\n'
    assert ("warning", "unknown-environment") in found({"mac.nix": agent})
    assert servers({"mac.nix": '{ launchd.user.envVariables.EDITOR = "vi"; }\n'}) == {}


PLIST = """<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
<key>Label</key><string>ai.chat</string>
<key>ProgramArguments</key><array>{}</array>
</dict></plist>
"""


def agent(*words: str) -> dict[str, str]:
    return {"chat.plist": PLIST.format("".join(f"<string>{word}</string>" for word in words))}


def test_a_home_directory_that_no_shell_puts_in() -> None:
    assert found(agent("mlx_lm.server", "--model", "~/models/q")) == [("warning", "unexpanded-variable")]
    unit = {"chat.service": "[Service]\nExecStart=/usr/bin/llama-server -m ~/models/q.gguf -np 1 -c 4096\n"}
    assert found(unit) == [("error", "unexpanded-variable")]
    assert found({"config.yaml": SWAP.format("llama-server").replace("/m/a", "~/m/a")}) == [
        ("error", "unexpanded-variable")
    ]
    assert found({"chat.sh": "#!/bin/sh\nllama-server -m ~/models/q.gguf -np 1 -c 4096\n"}) == []
    assert found(agent("/bin/sh", "-c", "mlx_lm.server --model ~/models/q")) == []


def test_the_string_that_an_agent_gives_to_a_shell() -> None:
    files = agent("/bin/bash", "-lc", "$HOME/bin/serve.sh")
    files["bin/serve.sh"] = "#!/bin/sh\nexec mlx_lm.server --model Qwen/Qwen3-8B\n"
    assert list(servers(files)) == ["chat.plist#ai.chat"]
    assert found(files) == []
    files |= agent("$HOME/bin/serve.sh", "fast")
    assert found(files) == [("warning", "unexpanded-variable")]


def test_a_drop_in_that_a_script_writes() -> None:
    text = """#!/bin/sh
sudo tee /etc/systemd/system/ollama.service.d/override.conf > /dev/null <<EOF
[Service]
Environment="OLLAMA_NUM_PARALLEL=3"
EOF
"""
    ((identity, server),) = servers({"setup.sh": text}).items()
    assert (identity, server.engine, server.settings["batch_width"].value) == ("setup.sh#ollama", "ollama", 3)


def test_processes_of_process_compose() -> None:
    text = """version: "0.5"
environment: ["LLAMA_ARG_N_PARALLEL=2"]
processes:
  llm:
    command: |
      echo starting
      llama-server -m /m/a.gguf -c 8192 --port 8080
  web: {command: npm start}
"""
    ((identity, server),) = servers({"process-compose.yaml": text}).items()
    assert identity == "process-compose.yaml#llm"
    assert server.settings["window"].value == 4096  # 8192 over 2 slots


BASE = """healthCheckTimeout: 300
macros:
  host: 0.0.0.0
  server: llama-server --host ${host} --port ${PORT}
"""
ALONE = 'models:\n  chat: {cmd: "${server} -m /m/a.gguf -c 16384 -np 2"}\n'
IMAGES = 'models:\n  small: {cmd: "llama-server --host ${host} --port ${PORT} -m /m/s.gguf -c 4096 -np 1"}\n'


def test_models_whose_macros_stand_in_another_file() -> None:
    """`-config` and every file of `-config-dir` are one document: mostlygeek/llama-swap@0bdb3720:internal/config/merge.go."""
    files = {"swap/config.yaml": BASE, "models/chat.yaml": ALONE, "models/small.yaml": IMAGES}
    assert found(files) == []
    assert settings(servers(files)["models/chat.yaml#chat"])[:2] == (8192, 2)  # 16384 over 2 slots
    assert found({"config.yaml": IMAGES}) == [("error", "unknown-macro")]
    assert found({"models/small.yaml": IMAGES}) == []  # the file that is read with it may be elsewhere
    two = check_files({**files, "old/config.yaml": BASE})
    assert ("models/chat.yaml#chat", "engine") in [(each.server, each.missing) for each in two.unchecked]


def test_a_short_flag_of_another_build_is_no_slip() -> None:
    line = "#!/bin/sh\n/opt/ik_llama/llama-server -m a.gguf -np 1 -c 4096 {} 1\n"
    assert found({"a.sh": line.format("-tm")}) == []
    assert found({"a.sh": line.format("--ctx-sise")}) == [("warning", "unknown-flag")]


def test_a_fork_has_flags_spelled_much_like_the_engines() -> None:
    image = "services:\n  llm:\n    image: ghcr.io/ikawrakow/ik-llama-cpp:cu12\n    command: -m a.gguf -np 1 --ctx-size 4096 {}\n"
    (server,) = servers({"compose.yaml": image.format("--max-gpu 2 --merge-qkv")}).values()
    assert server.engine == "llama-server"
    assert found({"compose.yaml": image.format("--max-gpu 2 --merge-qkv")}) == []
    assert found({"compose.yaml": image.format("--paralel 2")}) == [("warning", "unknown-flag")]
    twice = "--max-gpu 2 --spec-type ngram-mod:n_max=9 --spec-type mtp:n_max=3"
    assert found({"compose.yaml": image.format(twice)}) == []
    assert found({"compose.yaml": image.format("--max-gpu 2 -c 8192")}) == [("warning", "overridden-flag")]
    official = image.replace("ikawrakow/ik-llama-cpp:cu12", "ggml-org/llama.cpp:server")
    assert found({"compose.yaml": official.format("--max-gpu 2")}) == [("warning", "unknown-flag")]


@pytest.mark.parametrize(
    ("variables", "used"),
    [
        ("Environment=LLAMA_CTX_SIZE=8192\n", "-c ${LLAMA_CTX_SIZE}"),
        (
            "Environment=LLAMA_MODELS_DIR=/srv\nEnvironment=LLAMA_CTX_SIZE=8192\n",
            "-c ${LLAMA_CTX_SIZE} --path ${LLAMA_MODELS_DIR}",
        ),
    ],
)
def test_a_variable_that_the_line_is_made_of(variables: str, used: str) -> None:
    """`LLAMA_CTX_SIZE` is no variable of llama-server's, and need not be where the unit puts it into the command."""
    unit = "[Service]\n{}ExecStart=/usr/bin/llama-server -m /m/a.gguf -np 1 {}\n"
    assert found({"llm.service": unit.format(variables, used)}) == []
    assert ("warning", "unknown-environment") in found({"llm.service": unit.format(variables, "-c 8192")})


def test_a_file_that_another_imports_is_read_once() -> None:
    module = '{ ... }: { services.ollama = { enable = true; environmentVariables.OLLAMA_NUM_PARALLEL = "2"; }; }\n'
    swap = """{ port, ... }: { services.llama-swap.settings.models.chat.cmd = "llama-server --port ${toString port} -m a.gguf"; }
"""
    files = {
        "modules/default.nix": "{ ollama = import ./ollama.nix; swap = import ./swap.nix { port = 8080; }; }\n",
        "modules/ollama.nix": module,
        "modules/swap.nix": swap,
    }
    assert [each for each in servers(files) if each.startswith("modules/ollama")] == ["modules/ollama.nix#ollama"]
    ports = [each.settings["port"] for name, each in servers(files).items() if "swap.nix" in name]
    assert 8080 in [getattr(port, "value", None) for port in ports]  # what the importing file says


@pytest.mark.parametrize(("value", "severity"), [("4k", "error"), ("4096a", "warning")])
def test_what_follows_a_number(value: str, severity: str) -> None:
    line = f"#!/bin/sh\nllama-server -m a.gguf -np 1 -c {value}\n"
    assert found({"a.sh": line}) == [(severity, "suffix-not-understood")]
