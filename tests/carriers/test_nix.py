"""Options of NixOS, nix-darwin and home-manager that start something, in files written for the purpose."""

from __future__ import annotations

import pytest
from found import argument, env, findings, line, lines, only, problems, processes


def module(body: str, bound: str = "") -> dict[str, str]:
    head = f"let\n{bound}\nin " if bound else ""
    return {"host/a.nix": "{ config, lib, pkgs, ... }:\n" + head + "{\n" + body + "\n}\n"}


def nix(name: str) -> str:
    return f"host/a.nix#{name}"


def test_a_systemd_service_and_where_its_numbers_are_written() -> None:
    files = module(
        'systemd.services.chat = {\n  environment = { HF_HOME = "/hf"; N = toString width; GONE = null; };\n'
        '  serviceConfig = {\n    MemoryMax = "8G";\n'
        '    ExecStart = "${pkgs.vllm}/bin/vllm serve m --max-model-len ${toString window} --max-num-seqs ${"$"}{N}";\n  };\n};',
        "window = 4096; width = 8;",
    )
    name, process = only(files)
    assert (name, line(process)) == (nix("chat"), "?/bin/vllm serve m --max-model-len 4096 --max-num-seqs 8")
    assert env(process) == {"HF_HOME": "/hf", "N": "8"}
    window = argument(process, "--max-model-len")
    assert (window.span.text, window.span.line) == ("4096", 3)
    assert argument(process, "--max-num-seqs").span.text == "8"
    assert process.site.memory_limit is not None
    assert process.site.memory_limit.value == 8 * 2**30


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('ExecStart = [ "" "/opt/vllm serve m --port 1" ];', "/opt/vllm serve m --port 1"),
        ('ExecStart = lib.concatStringsSep " " [ "/opt/vllm" "serve" "m" "--port=1" ];', "/opt/vllm serve m --port=1"),
        ('ExecStart = lib.escapeShellArgs [ "/opt/vllm" "serve" "a b" "--port" 1 ];', "/opt/vllm serve a b --port 1"),
        ("ExecStart = ''\n  /opt/vllm serve m \\\n    --port 1\n'';", "/opt/vllm serve m --port 1"),
        ("ExecStart = \"/bin/sh -c 'exec /opt/vllm serve m --port 1'\";", "/opt/vllm serve m --port 1"),
        ('Environment = [ "P=1" ]; ExecStart = "/opt/vllm serve m --port $P";', "/opt/vllm serve m --port 1"),
        (
            'ExecStart = "/opt/vllm serve m --port ${toString config.services.x.port} --max-num-seqs 2";',
            "/opt/vllm serve m --port ? --max-num-seqs 2",
        ),
        (
            'ExecStart = "/opt/vllm serve m ${lib.optionalString (1 == 1) "--enforce-eager"} --port 1";',
            "/opt/vllm serve m --enforce-eager --port 1",
        ),
        ('ExecStart = lib.mkForce "/opt/vllm serve m --port 1";', "/opt/vllm serve m --port 1"),
    ],
)
def test_how_a_command_is_written(body: str, expected: str) -> None:
    assert lines(module(f"systemd.services.chat.serviceConfig = {{ {body} }};")) == {nix("chat"): expected}


def test_a_service_of_home_manager() -> None:
    files = module(
        'systemd.user.services.chat.Service = { ExecStart = "/opt/vllm serve m --port 1"; Environment = "A=1"; };'
    )
    name, process = only(files)
    assert (name, line(process), env(process)) == (nix("chat"), "/opt/vllm serve m --port 1", {"A": "1"})


def test_a_script_of_a_service_has_its_environment() -> None:
    files = module(
        'systemd.services.chat = {\n  environment.N = "4";\n'
        "  script = ''\n    set -e\n    exec vllm serve m --max-num-seqs $N \\\n      --port ''${PORT:-8000}\n  '';\n};"
    )
    _, process = only(files)
    assert line(process) == "vllm serve m --max-num-seqs 4 --port 8000"
    assert argument(process, "--port").span.text == "8000"
    assert [each.name for each in process.line.assumed] == ["PORT"]


@pytest.mark.parametrize(
    "start", ["${serve}", "${serve} --port 1", "${bin}/bin/serve --port 1", "${lib.getExe bin} --port 1"]
)
def test_a_script_that_a_service_starts_is_the_service_s(start: str) -> None:
    bound = (
        "serve = pkgs.writeShellScript \"serve\" ''\n  exec vllm serve m --max-num-seqs 4 \"$@\"\n'';\n"
        "bin = pkgs.writeShellScriptBin \"serve\" ''\n  exec vllm serve m --max-num-seqs 4 \"$@\"\n'';"
    )
    found = processes(module(f'systemd.services.chat.serviceConfig.ExecStart = "{start}";', bound))
    expected = "vllm serve m --max-num-seqs 4" + (" --port 1" if "--port" in start else "")
    assert line(found[nix("chat")]) == expected
    # The other text is one that nothing in the file starts.
    assert sorted(found) == [nix("chat"), nix("serve")]


def test_a_script_that_nothing_starts_is_named_by_itself() -> None:
    text = (
        '{ pkgs, width ? 4 }:\npkgs.writeShellApplication {\n  name = "chat";\n  runtimeInputs = [ pkgs.vllm ];\n'
        "  text = ''\n    exec vllm serve m --max-num-seqs ${toString width} \\\n"
        "      --max-model-len \"''${WINDOW:-4096}\" \"$@\"\n  '';\n}\n"
    )
    name, process = only({"pkgs/chat.nix": text})
    assert (name, line(process)) == ("pkgs/chat.nix#chat", "vllm serve m --max-num-seqs 4 --max-model-len 4096 ?")
    assert argument(process, "--max-num-seqs").span.text == "4"


def test_a_script_beside_the_file() -> None:
    files = module('systemd.services.chat.script = "exec ${../bin/serve.sh} m";')
    files["bin/serve.sh"] = '#!/bin/sh\nexec vllm serve "$1" --port 1\n'
    assert lines(files) == {nix("chat"): "vllm serve m --port 1"}


@pytest.mark.parametrize(
    "path",
    ["launchd.user.agents.chat.serviceConfig", "launchd.daemons.chat.serviceConfig", "launchd.agents.chat.config"],
)
def test_an_agent(path: str) -> None:
    body = (
        f'{path} = {{ ProgramArguments = [ "${{pkgs.mlx}}/bin/mlx_lm.server" "--model" "a b" "--port" (toString 81) ];'
        ' EnvironmentVariables.HF_HOME = "~/hf"; };'
    )
    name, process = only(module(body))
    assert (name, line(process)) == (nix("chat"), "?/bin/mlx_lm.server --model a b --port 81")
    assert env(process) == {"HF_HOME": "~/hf"}
    assert argument(process, "--model").span.text == '"a b"' or argument(process, "--model").span.text == "a b"


def test_an_agent_with_a_command_is_started_by_a_shell() -> None:
    files = module(
        'launchd.user.agents.chat = { command = "mlx_lm.server --model $M --port 1"; environment.M = "q"; };'
    )
    _, process = only(files)
    assert (line(process), process.line.shell) == ("mlx_lm.server --model q --port 1", True)


def test_arguments_that_come_from_elsewhere_leave_the_line_open() -> None:
    body = 'launchd.user.agents.chat.serviceConfig.ProgramArguments = [ "/opt/vllm" "serve" "m" ] ++ config.my.args;'
    _, process = only(module(body))
    assert [(opening.index, opening.span.text) for opening in process.line.open] == [(2, "config.my.args")]


def test_llama_cpp_as_the_module_starts_it() -> None:
    body = (
        'services.llama-cpp = { enable = false; model = "/m.gguf"; host = "0.0.0.0"; port = 8081;\n'
        '  extraFlags = [ "-c" "8192" "--parallel" "2" ]; };'
    )
    name, process = only(module(body))
    assert (name, line(process)) == (
        nix("llama-cpp"),
        "llama-server --host 0.0.0.0 --port 8081 --model /m.gguf -c 8192 --parallel 2",
    )
    assert (argument(process, "-c").span.text, process.site.place.text) == ("8192", "llama-cpp")


def test_llama_cpp_with_settings() -> None:
    body = (
        'services.llama-cpp.settings = { model = "/m.gguf"; ctx-size = 8192; no-warmup = true; offline = false;\n'
        '  port = config.x.port; lora = [ "a" "b" ]; no-mmproj-auto = ""; };'
    )
    _, process = only(module(body))
    assert line(process) == (
        "llama-server --model /m.gguf --ctx-size 8192 --no-warmup --port ? --lora a --lora b --no-mmproj-auto"
    )
    assert argument(process, "--ctx-size").span.text == "8192"


def test_ollama_is_configured_by_its_environment() -> None:
    body = 'services.ollama = { enable = true; host = "0.0.0.0"; port = 11500; environmentVariables.OLLAMA_NUM_PARALLEL = "4"; };'
    name, process = only(module(body))
    assert (name, line(process)) == (nix("ollama"), "ollama serve")
    assert env(process) == {"OLLAMA_NUM_PARALLEL": "4", "OLLAMA_HOST": "0.0.0.0:11500"}
    assert process.line.env["OLLAMA_NUM_PARALLEL"].span.text == "4"


SETTINGS = (
    '{ macros.server = "${lib.getExe\' pkgs.llama-cpp "llama-server"} --port \\${PORT} -c 8192";\n'
    '  models."q:8b" = { cmd = "\\${server} -m /m.gguf"; concurrencyLimit = 3; }; }'
)


@pytest.mark.parametrize(
    "body",
    [
        f"services.llama-swap = {{ enable = true; port = 8090; settings = {SETTINGS}; }};",
        f'environment.etc."llama-swap.json".source = (pkgs.formats.json {{ }}).generate "s.json" ({SETTINGS});',
        "xdg.configFile.\"llama-swap/config.yaml\".text = ''\n"
        "  models:\n    q:8b:\n      cmd: llama-server --port ''${PORT} -c 8192 -m /m.gguf\n      concurrencyLimit: 3\n'';",
        'systemd.services.proxy.serviceConfig.ExecStart = "/bin/llama-swap --config ${pkgs.writeText "c.yaml" \'\'\n'
        "  models:\n    q:8b:\n      cmd: llama-server --port ''${PORT} -c 8192 -m /m.gguf\n      concurrencyLimit: 3\n''}\";",
    ],
)
def test_a_llama_swap_configuration_however_it_is_written(body: str) -> None:
    found = findings(module(body))
    ((name, process),) = found.processes
    assert (name, process.site.carrier) == (nix("q:8b"), "llama-swap")
    assert line(process).removeprefix("?/bin/") == "llama-server --port 5800 -c 8192 -m /m.gguf"
    assert argument(process, "-c").span.text == "8192"
    (admission,) = found.admissions
    assert admission.limit is not None
    assert (admission.limit.value, admission.limit.origin.span.text) == (3, "3")
    if "services.llama-swap" in body:
        assert admission.settings["port"].value == 8090


def test_a_container() -> None:
    body = (
        'virtualisation.oci-containers.containers.chat = { image = "vllm/vllm-openai:v0.11.0"; ports = [ "8001:8000" ];\n'
        '  environment.HF_HOME = "/hf"; environmentFiles = [ ./chat.env ]; extraOptions = [ "--gpus=2" "--shm-size=16g" ];\n'
        '  cmd = [ "--model" "m" "--max-model-len" (toString 4096) ]; };'
    )
    name, process = only({**module(body), "host/chat.env": "VLLM_X=1\n"})
    assert (name, line(process)) == (nix("chat"), "[vllm/vllm-openai:v0.11.0] --model m --max-model-len 4096")
    assert env(process) == {"HF_HOME": "/hf", "VLLM_X": "1"}
    assert argument(process, "--max-model-len").span.text in ("4096", "toString 4096")
    site = process.site
    assert {host: port.value for host, port in site.published.items()} == {8001: 8000}
    assert (site.gpus.value, site.shared_memory.value) == (2, 16 * 2**30)  # type: ignore[union-attr]


def test_a_container_with_its_own_entrypoint_and_quadlet() -> None:
    body = (
        'virtualisation.oci-containers.containers.a = { image = "x:1"; entrypoint = "vllm"; cmd = [ "serve" "m" ]; };\n'
        'virtualisation.quadlet.containers.b.containerConfig = { image = "y:1"; exec = "vllm serve m"; };'
    )
    assert lines(module(body)) == {nix("a"): "vllm serve m", nix("b"): "vllm serve m"}


def test_services_made_by_a_function_are_several() -> None:
    bound = 'make = model: port: { serviceConfig.ExecStart = "/opt/vllm serve ${model} --port ${toString port}"; };'
    found = processes(module('systemd.services = { a = make "x" 1; b = make "y" 2; };', bound))
    assert {name: line(process) for name, process in found.items()} == {
        nix("a"): "/opt/vllm serve x --port 1",
        nix("b"): "/opt/vllm serve y --port 2",
    }


def test_conditional_content_is_read_as_it_is_written() -> None:
    body = 'systemd.services.a = lib.mkIf config.my.enable { script = "vllm serve m --port 1"; };'
    assert lines(module(body)) == {nix("a"): "vllm serve m --port 1"}


def test_modules_of_a_flake() -> None:
    text = (
        "{ outputs = { nixpkgs, ... }: { nixosConfigurations.host = nixpkgs.lib.nixosSystem { modules = [\n"
        '  ({ pkgs, ... }: { systemd.services.chat.script = "vllm serve m --port 1"; }) ]; }; }; }\n'
    )
    assert lines({"flake.nix": text}) == {"flake.nix#chat": "vllm serve m --port 1"}


@pytest.mark.parametrize(
    "body",
    [
        'my.chat.command = "vllm serve m --port 1";',
        'my.chat = "cd /srv && exec vllm serve m --port 1";',
        'my.chat.args = [ "vllm" "serve" "m" "--port" "1" ];',
        'environment.shellAliases.chat = "vllm serve m --port 1";',
    ],
)
def test_a_text_that_plainly_starts_an_engine(body: str) -> None:
    assert lines(module(body)) == {nix("chat"): "vllm serve m --port 1"}


@pytest.mark.parametrize(
    "body",
    [
        'my.chat.description = "vllm serve m --port 1";',
        'my.note = "vllm serves models --fast";',
        'systemd.services.a.script = "systemctl restart vllm";',
        "environment.systemPackages = [ pkgs.vllm ];",
    ],
)
def test_a_text_that_does_not(body: str) -> None:
    assert lines(module(body)) == {}


def test_a_module_that_hands_its_options_on_is_no_configuration() -> None:
    text = (
        "{ config, lib, pkgs, utils, ... }:\nlet\n  cfg = config.services.chat;\n"
        '  args = [ "--port" (toString cfg.port) ] ++ cfg.extraFlags;\nin {\n'
        "  options.services.chat.port = lib.mkOption { default = 8000; };\n"
        '  options.services.chat.extraFlags = lib.mkOption { example = [ "vllm" "serve" "-c" "1" ]; };\n'
        "  config.systemd.services.chat.serviceConfig.ExecStart =\n"
        '    "${cfg.package}/bin/vllm serve ${utils.escapeSystemdExecArgs args}";\n}\n'
    )
    assert lines({"module.nix": text}) == {}


def test_kubernetes_objects_written_as_nix() -> None:
    body = (
        'services.k3s.manifests.chat.content = { apiVersion = "v1"; kind = "Pod"; metadata.name = "p";\n'
        '  spec.containers = [ { name = "c"; image = "vllm/vllm-openai:v0.11.0"; args = [ "--model" "m" ]; } ]; };'
    )
    assert lines(module(body)) == {nix("p/c"): "[vllm/vllm-openai:v0.11.0] --model m"}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('systemd.services.a = { environment.PATH = "/x:$PATH"; script = "vllm serve m --port $P"; };', ["$PATH"]),
        ('systemd.user.services.a.Service = { Environment = "H=$HOME"; ExecStart = "/opt/vllm serve m"; };', ["$HOME"]),
        ('systemd.services.a = { environment.PATH = "/x:$PATH"; script = "gunicorn vllm"; };', []),
        ('launchd.agents.a.config.ProgramArguments = [ "/opt/vllm" "serve" "$HOME/m" ];', ["$HOME"]),
        ('launchd.user.agents.a = { command = "vllm serve $HOME/m"; environment.H = "$HOME"; };', ["$HOME"]),
        ('launchd.agents.a.config.ProgramArguments = [ "/bin/sh" "-c" "exec vllm serve $HOME/m" ];', []),
    ],
)
def test_variables_that_stay_text(body: str, expected: list[str]) -> None:
    assert [text for kind, text in problems(module(body)) if kind == "unexpanded-variable"] == expected


def test_pins_on_the_line_and_none_from_a_package() -> None:
    body = (
        'launchd.agents.a.config.ProgramArguments = [ "uvx" "--from" "mlx-lm==0.31.2" "mlx_lm.server" "--model" "m" ];'
    )
    _, process = only(module(body))
    assert [pin.version.span.text for pin in process.line.pins] == ["0.31.2"]
    _, process = only(
        module('launchd.agents.a.config.ProgramArguments = [ "${pkgs.mlx-lm}/bin/mlx_lm.server" "--model" "m" ];')
    )
    assert process.line.pins == ()
