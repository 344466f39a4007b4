"""NixOS, nix-darwin, home-manager modules and flakes as located trees."""

from __future__ import annotations

import pytest

from kvlint.formats import nix
from kvlint.source import HOLE, Source, Text
from kvlint.tree import List, Map, Node, Opaque, Scalar

DARWIN = """\
# kvlint: window=131072 streams=2
{ config, lib, pkgs, ... }:
let
  cfg = {
    model = "mlx-community/Qwen3-30B-A3B-4bit";
    window = 131072;
    port = 8080;
  };
  gib = 1024 * 1024 * 1024;
in
{
  launchd.user.agents.chat = {
    serviceConfig.ProgramArguments = [
      "${pkgs.python3.withPackages (ps: [ ps.mlx-lm ])}/bin/mlx_lm.server"
      "--model" cfg.model
      "--port" (toString cfg.port)
      "--prompt-cache-bytes" (toString (8 * gib))
    ];
    command = "serve --ctx ${toString cfg.window} --model ${cfg.model}";
  };
}
"""


def text(node: Node | None) -> Text:
    assert isinstance(node, Scalar), node
    return node.text


def value(code: str, *path: str | int) -> str:
    """The text of a scalar of `{ … }` or of a module."""
    root = nix.evaluate(Source("m.nix", code))
    node = root.get(*path) if isinstance(root, Map) else root
    return text(node).value


def module(code: str) -> Map:
    root = nix.evaluate(Source("m.nix", code))
    assert isinstance(root, Map)
    return root


def test_characters_point_where_they_are_written() -> None:
    source = Source("mac/chat.nix", DARWIN)
    root = nix.evaluate(source)
    assert isinstance(root, Map)
    command = text(root.get("launchd", "user", "agents", "chat", "command"))
    assert command.value == "serve --ctx 131072 --model mlx-community/Qwen3-30B-A3B-4bit"
    start = command.value.index("131072")
    window = command.slice(start, start + 6)
    assert window.span == source.span(DARWIN.index("131072;"), DARWIN.index("131072;") + 6)
    assert [use.text for use in window.via] == ["${toString cfg.window}"]
    assert command.slice(0, 5).span.text == "serve"


def test_a_list_of_arguments() -> None:
    arguments = module(DARWIN).list("launchd", "user", "agents", "chat", "serviceConfig", "ProgramArguments")
    assert arguments is not None
    values = [text(item).value for item in arguments]
    assert values[0] == HOLE + "/bin/mlx_lm.server"
    assert values[1:3] == ["--model", "mlx-community/Qwen3-30B-A3B-4bit"]
    assert values[-1] == "8589934592"  # 8 * 2^30
    assert arguments.open == ()


def test_a_number_worked_out_points_at_its_expression_and_names_its_leaves() -> None:
    arguments = module(DARWIN).list("launchd", "user", "agents", "chat", "serviceConfig", "ProgramArguments")
    assert arguments is not None
    number = text(arguments.items[-1])
    assert number.span.text == "8 * gib"
    assert not number.pieces[0].literal
    assert [use.text for use in number.via] == ["1024 * 1024 * 1024"]


def test_keys_have_their_own_places() -> None:
    code = '{ services.llama-swap.settings.models."qwen".cmd = "x"; services.llama-swap.port = 8080; }'
    root = module(code)
    swap = root.map("services", "llama-swap")
    assert swap is not None
    assert [entry.key.value for entry in swap] == ["settings", "port"]
    models = swap.map("settings", "models")
    assert models is not None
    key = models.entries[0].key
    assert (key.text.span.text, key.span.text) == ("qwen", '"qwen"')
    assert text(swap.get("port")).span.text == "8080"


def test_sets_under_one_key_are_merged() -> None:
    root = module("{ a = { b = 1; }; a.c = 2; a = { d.e = 3; }; }")
    assert [text(root.get("a", *path)).value for path in (("b",), ("c",), ("d", "e"))] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("code", "tag", "shown"),
    [
        ("{ x = 0.90; }", "float", "0.90"),
        ("{ x = true; }", "bool", "true"),
        ("{ x = null; }", "null", "null"),
        ("{ x = /models/q.gguf; }", "path", "/models/q.gguf"),
        ("{ x = -1; }", "int", "-1"),
        ('{ x = "8"; }', "str", "8"),
    ],
)
def test_tags_are_the_types_of_nix(code: str, tag: str, shown: str) -> None:
    node = module(code).get("x")
    assert isinstance(node, Scalar)
    assert (node.tag, node.value, node.quoted) == (tag, shown, tag == "str")


def test_a_condition_that_is_not_known_keeps_what_it_guards() -> None:
    code = """{ config, lib, ... }: {
      config = lib.mkIf config.services.chat.enable {
        services.llama-cpp = lib.mkMerge [ { port = 1; } (lib.mkIf true { host = "::"; }) (lib.mkIf false { model = "x"; }) ];
      };
    }"""
    reading = nix.read(Source("m.nix", code))
    assert isinstance(reading.root, Map)
    unit = reading.root.map("config", "services", "llama-cpp")
    assert unit is not None
    assert [entry.key.value for entry in unit] == ["port", "host"]
    port = next(entry for entry in reading.entries() if entry.path[-1] == "port")
    assert [condition.span.text for condition in port.conditions] == ["config.services.chat.enable"]
    assert [path for path, _ in reading.modules()] == [("config",)]


def test_priorities_of_definitions() -> None:
    code = """{ lib, config, ... }: lib.mkMerge [
      { a = lib.mkDefault 1; b = 1; c = lib.mkForce 1; e = 1; }
      { a = 2; b = lib.mkForce 2; c = lib.mkOverride 40 2; e = lib.mkIf config.x 2; }
      { d = lib.mkDefault 3; l = [ 2 ]; }
      { l = lib.mkBefore [ 1 ]; }
      { l = lib.mkAfter [ 3 ]; }
    ]"""
    root = module(code)
    assert [text(root.get(name)).value for name in "abcd"] == ["2", "2", "2", "3"]
    assert isinstance(root.get("e"), Opaque)
    numbers = root.list("l")
    assert numbers is not None
    assert [text(item).value for item in numbers] == ["1", "2", "3"]


def test_what_comes_from_outside_is_unknown_with_a_reason() -> None:
    root = module("{ config, pkgs, ... }: { a = config.services.x.port; b = pkgs.vllm; c = { d = 1; } // config.e; }")
    for name in "ab":
        node = root.get(name)
        assert isinstance(node, Opaque)
        assert "from outside of the file" in node.reason
    merged = root.map("c")
    assert merged is not None
    assert isinstance(merged.get("d"), Opaque)
    assert merged.open


def test_an_option_that_the_module_sets_itself_is_known() -> None:
    code = """{ config, ... }: {
      services.llama-swap.port = 9292;
      x = "http://localhost:${toString config.services.llama-swap.port}/v1";
      y = config.services.llama-swap.host;
    }"""
    root = module(code)
    address = text(root.get("x"))
    assert address.value == "http://localhost:9292/v1"
    assert address.slice(17, 21).span.text == "9292"
    assert isinstance(root.get("y"), Opaque)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("lib.getExe pkgs.llama-swap", HOLE + "/bin/llama-swap"),
        ("lib.getExe (pkgs.ollama.override { acceleration = null; })", HOLE + "/bin/ollama"),
        ("lib.getExe pkgs.unheard-of", HOLE),
        ('lib.getExe\' pkgs.llama-cpp "llama-server"', HOLE + "/bin/llama-server"),
        ('"${pkgs.vllm}/bin/vllm serve"', HOLE + "/bin/vllm serve"),
        ('lib.getExe (pkgs.writeShellScriptBin "chat" "exec true")', HOLE + "/bin/chat"),
        ('"${./chat.jinja}"', HOLE),
        ("toString ./chat.jinja", HOLE + "/mac/chat.jinja"),
        ('"/models" + "/${"q"}.gguf"', "/models/q.gguf"),
    ],
)
def test_paths_of_programs(expression: str, shown: str) -> None:
    root = nix.evaluate(Source("mac/m.nix", f"{{ lib, pkgs, ... }}: {{ x = {expression}; }}"))
    assert isinstance(root, Map)
    assert text(root.get("x")).value == shown


@pytest.mark.parametrize(
    ("part", "splice"),
    [
        ("${pkgs.vllm}", False),
        ("${toString config.x.port}", False),
        ("${config.x.model}", False),
        ("${config.x.extraArgs}", True),
        ('${lib.optionalString config.x "--a --b"}', True),
        ("${lib.escapeShellArgs config.flags}", True),
        ("${lib.escapeShellArg config.flags}", False),
        ('${if config.x then "--a" else ""}', True),
        ("${toString (config.x.gib * 2)}", False),
    ],
)
def test_what_may_be_several_words(part: str, splice: bool) -> None:
    shown = text(module(f'{{ lib, config, pkgs, ... }}: {{ x = "serve {part}"; }}').get("x"))
    assert [hole.splice for hole in shown.holes if hole.splice or not splice] == [splice]


def test_items_that_may_be_missing_keep_their_place() -> None:
    code = """{ lib, config, ... }: {
      a = [ "x" ] ++ lib.optionals config.gpu [ "--gpu" ] ++ [ "y" ];
      b = lib.concatStringsSep " " ([ "x" ] ++ config.more ++ [ "y" ]);
    }"""
    root = module(code)
    found = root.list("a")
    assert found is not None
    assert len(found.items) == 3
    assert found.open == (found.items[1],)
    joined = text(root.get("b"))
    assert joined.value == f"x {HOLE} y"
    assert joined.holes[0].splice


def test_optional_attributes_are_conditional() -> None:
    code = '{ lib, config, ... }: { e = { A = "1"; } // lib.optionalAttrs config.gpu { B = "2"; }; }'
    reading = nix.read(Source("m.nix", code))
    found = {entry.path: [c.span.text for c in entry.conditions] for entry in reading.entries()}
    assert found == {("e",): [], ("e", "A"): [], ("e", "B"): ["config.gpu"]}


def test_command_lines_made_of_sets() -> None:
    code = """{ lib, ... }: {
      x = lib.cli.toGNUCommandLineShell { } { model = "a b"; ctx-size = 131072; c = 4; jinja = true; no = false; hf = null; };
    }"""
    line = text(module(code).get("x"))
    assert line.value == "-c 4 --ctx-size 131072 --jinja --model 'a b'"
    start = line.value.index("131072")
    assert line.slice(start, start + 6).span.text == "131072"
    assert line.slice(start - 9, start - 1).span.text == "ctx-size"


def test_a_system_unit_quotes_its_arguments() -> None:
    code = '{ utils, ... }: { x = utils.escapeSystemdExecArgs [ "serve" "50%" "$A" 8080 ]; }'
    assert value(code, "x") == '"serve" "50%%" "$$A" "8080"'


def test_functions_make_units() -> None:
    code = """{ lib, ... }:
    let
      models = { qwen = { window = 32768; }; gemma = { window = 8192; port = 2; }; };
      unit = name: { window, port ? 1, ... }: lib.nameValuePair "chat-${name}" {
        script = "serve ${name} -c ${toString window} -p ${toString port}";
      };
    in { systemd.services = lib.mapAttrs' unit models; }"""
    services = module(code).map("systemd", "services")
    assert services is not None
    assert services.string("chat-qwen", "script") == "serve qwen -c 32768 -p 1"
    assert services.string("chat-gemma", "script") == "serve gemma -c 8192 -p 2"


def test_a_flake_shows_its_modules() -> None:
    code = """{
      inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";
      outputs = { self, nixpkgs, ... }@inputs: {
        nixosConfigurations.box = nixpkgs.lib.nixosSystem {
          system = "x86_64-linux";
          modules = [ ./hardware.nix ({ pkgs, ... }: { services.ollama.environmentVariables.OLLAMA_NUM_PARALLEL = "4"; }) ];
        };
        homeConfigurations.me = inputs.home-manager.lib.homeManagerConfiguration { modules = [ { a = 1; } ]; };
      };
    }"""
    found = list(nix.read(Source("flake.nix", code)).modules())
    assert [path[:3] for path, _ in found] == [
        ("outputs", "nixosConfigurations", "box"),
        ("outputs", "homeConfigurations", "me"),
    ]
    assert found[0][1].string("services", "ollama", "environmentVariables", "OLLAMA_NUM_PARALLEL") == "4"


def test_scripts_are_found_wherever_they_stand() -> None:
    code = """{ pkgs, config, ... }:
    let
      run = pkgs.writeShellScript "run" ''
        exec vllm serve m --max-model-len ${toString 4096}
      '';
      unused = port: pkgs.writeShellApplication { name = "app"; text = "llama-server --port ${toString port}"; };
    in { systemd.services.x.serviceConfig.ExecStart = "${run} --now"; }"""
    reading = nix.read(Source("m.nix", code))
    names = [(script.function, script.name.value if script.name else None) for script in reading.scripts]
    assert names == [("writeShellScript", "run"), ("writeShellApplication", "app")]
    run, app = reading.scripts
    assert run.text.value == "exec vllm serve m --max-model-len 4096\n"
    assert app.text.value == f"llama-server --port {HOLE}"
    assert isinstance(reading.root, Map)
    start = text(reading.root.get("systemd", "services", "x", "serviceConfig", "ExecStart"))
    assert start.holes[0].span == run.span


def test_files_made_of_values() -> None:
    code = """{ pkgs, ... }: {
      environment.etc."llama-swap.yaml".source = (pkgs.formats.yaml { }).generate "llama-swap.yaml" { models.q.cmd = "x"; };
      a = builtins.toJSON { window = 4096; };
    }"""
    reading = nix.read(Source("m.nix", code))
    (made,) = reading.generated
    assert isinstance(made.node, Map)
    assert made.node.string("models", "q", "cmd") == "x"
    assert isinstance(reading.root, Map)
    assert reading.root.string("a") == '{"window":4096}'


def test_other_files_of_the_project() -> None:
    files = {
        "mac/models.nix": "{ port }: { qwen = { inherit port; window = 8192; }; }",
        "mac/lib/default.nix": "x: x * 2",
        "mac/limits.json": '{"streams": 4}',
    }
    sources = {path: Source(path, content) for path, content in files.items()}
    code = """{ lib, ... }: let models = import ./models.nix { port = 5; }; in {
      a = models.qwen.window; b = import ./lib 21; c = models.qwen.port;
      d = (builtins.fromJSON (builtins.readFile ./limits.json)).streams;
      e = import ./gone.nix; f = lib.importJSON ../mac/limits.json;
    }"""
    root = nix.evaluate(Source("mac/chat.nix", code), resolve=sources.get)
    assert isinstance(root, Map)
    assert [text(root.get(name)).value for name in "abcd"] == ["8192", "42", "5", "4"]
    assert text(root.get("a")).span.path == "mac/models.nix"
    assert text(root.get("d")).span.text == "4"
    assert isinstance(root.get("e"), Opaque)


def test_a_default_of_an_argument_is_taken() -> None:
    code = '{ pkgs ? import <nixpkgs> { }, lib ? pkgs.lib, window ? 32768 }: { x = "-c ${toString window}"; }'
    assert value(code, "x") == "-c 32768"


def test_with_does_not_hide_what_is_bound() -> None:
    code = (
        "{ lib, pkgs, ... }: let a = 1; in with lib; { x = with { a = 2; b = 3; }; a + b; y = optionals true [ 1 ]; }"
    )
    root = module(code)
    assert text(root.get("x")).value == "4"
    assert isinstance(root.get("y"), List)


def test_comments_with_their_places() -> None:
    code = "{ # kvlint: ignore[a]\n  a = \"# no\"; /* b */\n  c = ''\n    # not one\n  '';\n}\n# end\n"
    found = nix.comments(Source("m.nix", code))
    assert [comment for _, comment in found] == ["# kvlint: ignore[a]", "/* b */", "# end"]
    assert all(span.text == comment for span, comment in found)


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("{ a = 1; b = ; c = 3; }", {"a": "1", "c": "3"}),
        ("{ pkgs, ... }: { a = [ 1 2; c = 3; }", {"c": "3"}),
        ('{ a = { x = "1; }; c = 3; }', {"c": "3"}),
        ("{ a = 1;\n<<<<<<< HEAD\n c = 3; }", {"a": "1"}),
        ("{ a = 1; } }", {"a": "1"}),
        ("let w = 1; in { a = 1; b = ", {"a": "1"}),
        ("{ a = 1; a = 2; c = 3; }", {"c": "3"}),
        ("{ a = 1; b = nowhere; }", {"a": "1"}),
    ],
)
def test_a_broken_file_gives_a_problem_and_the_rest(code: str, kept: dict[str, str]) -> None:
    reading = nix.read(Source("m.nix", code))
    assert reading.problems
    assert all(problem.span.source is reading.source for problem in reading.problems)
    assert isinstance(reading.root, Map)
    assert {name: text(reading.root.get(name)).value for name in kept} == kept


def test_what_is_broken_is_not_guessed() -> None:
    reading = nix.read(Source("m.nix", '{ a = "x; b = 2; }\n'))
    assert isinstance(reading.root, Map)
    assert isinstance(reading.root.get("a"), Opaque)
