"""Files that recurse, explode or are cut off: always an answer, in bounded time, never an exception."""

from __future__ import annotations

import random
import time

import pytest

from kvlint.formats import nix
from kvlint.source import Source
from kvlint.tree import Map, Opaque, Scalar, walk

DOUBLED = " ".join(f"a{n + 1} = {{ l = a{n}; r = a{n}; }};" for n in range(60))
HOSTILE = {
    "itself": "let x = x; in x",
    "rec": "rec { a = b; b = a; }",
    "mutual": "let f = x: g x; g = x: f x; in f 1",
    "omega": "(x: x x) (x: x x)",
    "endless list": "let f = n: [ n (f (n + 1)) ]; in f 1",
    "endless set": "let f = n: { a = f (n + 1); }; in f 1",
    "doubled string": 'let a0 = "aaaaaaaa"; ' + " ".join(f"a{n + 1} = a{n} + a{n};" for n in range(60)) + " in a60",
    "doubled list": "let a0 = [ 1 ]; " + " ".join(f"a{n + 1} = a{n} ++ a{n};" for n in range(60)) + " in a60",
    "doubled set": f"let a0 = 1; {DOUBLED} in a60",
    "doubled json": f"let a0 = 1; {DOUBLED} in builtins.toJSON a60",
    "doubled equality": f"let a0 = 1; {DOUBLED} in a60 == a60",
    "long list": "builtins.genList (x: x) 1000000000",
    "merge itself": "{ lib, ... }: let m = lib.mkMerge [ m m ]; in m",
    "module itself": "let m = { lib, ... }: m; in m",
    "config itself": "{ config, ... }: { a = config.b; b = config.a; c = config.c; }",
    "import itself": "import ./m.nix",
    "parentheses": "(" * 5000 + "1" + ")" * 5000,
    "lists": "[" * 3000 + "]" * 3000,
    "sets": "{ a = " * 3000 + "1" + "; }" * 3000,
    "functions": "x: " * 5000 + "1",
    "sum": "1" + " + 1" * 5000,
    "calls": "f" + " 1" * 3000,
    "negations": "!" * 3000 + "true",
    "interpolations": '"${' * 1000 + "1" + '}"' * 1000,
    "big number": "9" * 5000,
    "nothing": "",
    "noise": '%$#@!&*()<>?:"{}|',
    "nul": '{ a = "\0"; }',
    "surrogate": '{ a = "\ud800"; b = 1; }',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_answer_in_bounded_time(name: str) -> None:
    source = Source("m.nix", HOSTILE[name])
    start = time.process_time()
    reading = nix.read(source, resolve={"m.nix": source}.get)
    assert time.process_time() - start < 5
    assert sum(1 for _ in walk(reading.root)) < 50_000


@pytest.mark.parametrize("name", ["itself", "mutual", "omega", "long list", "import itself", "big number"])
def test_no_value_is_made_up(name: str) -> None:
    root = nix.evaluate(Source("m.nix", HOSTILE[name]))
    assert isinstance(root, Opaque)
    assert root.reason


def test_a_deep_stack_is_no_danger() -> None:
    def down(depth: int) -> object:
        if depth:
            return down(depth - 1)
        return nix.evaluate(Source("m.nix", "let f = n: if n == 0 then 0 else 1 + f (n - 1); in { a = f 60; }"))

    assert isinstance(down(700), (Map, Opaque))


def test_recursion_of_a_reasonable_depth_is_known() -> None:
    root = nix.evaluate(Source("m.nix", "let f = n: if n == 0 then 0 else 1 + f (n - 1); in f 40"))
    assert isinstance(root, Scalar)
    assert root.value == "40"


SOUND = """\
{ config, lib, pkgs, ... }:
let window = 131072; args = [ "--ctx-size" (toString window) ] ++ lib.optionals config.x [ "--jinja" ]; in
{
  systemd.services."llama".serviceConfig.ExecStart = "${lib.getExe' pkgs.llama-cpp "llama-server"} ${lib.escapeShellArgs args}";
  services.llama-swap.settings.models.q = { cmd = ''
    llama-server \\
      --port ''${PORT} ${toString (window / 2)}
  ''; ttl = 300; }; # end
}
"""
NOISE = [
    "{",
    "}",
    "''",
    '"',
    "${",
    ";",
    "(",
    ")",
    "[",
    "=",
    "é",
    "\r\n",
    "<<<<<<< HEAD\n",
    "let ",
    "in ",
    "rec ",
    "@",
    "'",
]


def test_places_hold_in_broken_files() -> None:
    rand = random.Random(1)
    for _ in range(300):
        at = rand.randrange(len(SOUND))
        cut = SOUND[:at] + rand.choice(["", *NOISE]) + SOUND[at + rand.randrange(20) :]
        reading = nix.read(Source("m.nix", cut))
        for node in walk(reading.root):
            if not isinstance(node, Scalar):
                continue
            end = 0
            for piece in node.text.pieces:
                assert piece.at == end
                end += piece.length
                assert not piece.literal or piece.span.text == node.text.value[piece.at : end]
            assert end == len(node.text.value)
