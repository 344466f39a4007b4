"""What a file takes from outside of it: module arguments, packages and their programs, flake inputs, paths, and the store."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from kvlint.formats.nix.coerce import is_package, known_string
from kvlint.formats.nix.values import (
    Attrs,
    Library,
    Outside,
    Path,
    Property,
    Scalar,
    Script,
    Str,
    Stuck,
    Thunk,
    Value,
    hole,
)
from kvlint.source import Source, Span, Text
from kvlint.tree import Opaque

if TYPE_CHECKING:
    from kvlint.formats.nix.evaluator import Evaluator

NOWHERE = Source("", "").span(0, 0)

# What the module system, a flake or callPackage hands over whatever the default says.
ARGUMENTS = frozenset(
    {"config", "inputs", "lib", "modulesPath", "options", "outputs", "pkgs", "self", "specialArgs", "utils"}
)

# The functions of nixpkgs (pkgs/build-support/trivial-builders, pkgs/build-support/writers) that write a text to the store:
# whether the file is a program below bin/.
WRITERS = {
    "writeBash": False,
    "writeBashBin": True,
    "writeDash": False,
    "writeDashBin": True,
    "writeFish": False,
    "writeFishBin": True,
    "writeScript": False,
    "writeScriptBin": True,
    "writeShellScript": False,
    "writeShellScriptBin": True,
    "writeText": False,
}
SET_WRITERS = {"writeShellApplication": True, "writeTextFile": False}
FORMAT_WRITERS = {"writeJSON": "json", "writeYAML": "yaml", "writeTOML": "toml"}

# `meta.mainProgram` of packages in nixpkgs (pkgs/by-name/**/package.nix, 2026-06), which `lib.getExe` takes.
MAIN_PROGRAMS = {
    "llama-cpp": "llama",
    "llama-cpp-rocm": "llama",
    "llama-cpp-vulkan": "llama",
    "llama-swap": "llama-swap",
    "ollama": "ollama",
    "ollama-cpu": "ollama",
    "ollama-cuda": "ollama",
    "ollama-rocm": "ollama",
    "ollama-vulkan": "ollama",
    "vllm": "vllm",
}
_REFINEMENTS = {"override", "overrideAttrs", "out", "bin", "overridePythonAttrs"}


def member(value: Outside, name: str, span: Span) -> Value:
    """`value.name` of something from outside."""
    if not value.path:
        return argument(name, span, value.module)
    if name == "lib" and _has_lib(value.path):
        return Library()
    return Outside(span, (*value.path, name), (), value.module)


def argument(name: str, span: Span, module: Thunk | None) -> Value:
    """An argument that the module system hands over."""
    if name == "lib":
        return Library()
    if name == "utils":
        return Library("utils.")
    return Outside(span, (name,), (), module if name == "config" else None)


def _has_lib(path: tuple[str, ...]) -> bool:
    last = path[-1]
    return last.startswith(("pkgs", "nixpkgs")) or (len(path) > 1 and path[-2] == "legacyPackages")


def own_definition(ev: Evaluator, value: Outside) -> Value | None:
    """What the module itself sets `config.a.b` to, if plainly: a scalar, without condition, at full priority."""
    if value.module is None or value.arguments or len(value.path) < 2:
        return None
    thunk: Thunk = value.module
    steps = list(value.path[1:])
    module = None if thunk.busy else ev.force(thunk)
    if isinstance(module, Attrs) and "config" in module.slots:
        steps.insert(0, "config")
    for step in steps:
        if thunk.busy:
            return None
        found = ev.force(thunk)
        if not isinstance(found, Attrs) or found.open or step not in found.slots or found.slots[step].maybe is not None:
            return None
        thunk = found.slots[step].value
    result = None if thunk.busy else ev.force(thunk)
    while isinstance(result, Property) and result.kind == "override" and result.priority <= 100:
        result = ev.force(result.content)
    if isinstance(result, Scalar) and not result.text.holes:
        return result
    return None


def package_name(value: Outside) -> str | None:
    """The attribute name of a package: `llama-cpp` of `pkgs.llama-cpp.override { … }`."""
    if not is_package(value):
        return None
    names = [name for name in value.path if name not in _REFINEMENTS]
    if len(names) > 2 and names[-1] == "package" and names[0] == "config":
        return names[-2]  # the option of a module is by default the package that the module is named after
    return names[-1] if len(names) > 1 else None


def executable(ev: Evaluator, thunk: Thunk, span: Span) -> Text:
    """`lib.getExe`: the store path is a hole, the program's name is known for scripts of the file and a few packages."""
    value = ev.force(thunk)
    if isinstance(value, Script) and value.program and value.name is not None:
        return ev.joined([hole(value.span, value, splice=False, via=(span,)), Text.at("/bin/", span), value.name], span)
    if isinstance(value, Outside):
        program = MAIN_PROGRAMS.get(package_name(value) or "")
        start = hole(value.span, value, splice=False)
        return ev.joined([start, Text.at("/bin/" + program, span)], span) if program else start
    if isinstance(value, Opaque):
        return hole(value.span, value, splice=False)
    raise Stuck(Opaque(span, "the program of the package is not known"))


def call(ev: Evaluator, function: Outside, given: Thunk, span: Span) -> Value:
    """Something from outside, called: a script where the text is written here, else unknown."""
    arguments = (*function.arguments, given)
    result = Outside(span, function.path, arguments)
    name = function.path[-1] if function.path else ""
    if name in WRITERS and len(arguments) == 2:
        return _script(ev, name, arguments[0], arguments[1], WRITERS[name], span)
    if name in SET_WRITERS and len(arguments) == 1:
        return _set_script(ev, name, given, span) or result
    if len(arguments) == 2 and (name == "generate" or name in FORMAT_WRITERS):
        ev.generated[span] = (result, *arguments)
    return result


def _set_script(ev: Evaluator, function: str, given: Thunk, span: Span) -> Value | None:
    value = ev.force(given)
    if not isinstance(value, Attrs) or "text" not in value.slots or "name" not in value.slots:
        return None
    return _script(ev, function, value.slots["name"].value, value.slots["text"].value, SET_WRITERS[function], span)


def _script(ev: Evaluator, function: str, name: Thunk, text: Thunk, program: bool, span: Span) -> Value:
    try:
        body = ev.text_of(text)
    except Stuck as stuck:
        body = hole(span, stuck.unknown, splice=True)
    called = ev.force(name)
    script = Script(function, called.text if isinstance(called, Str) else None, body, span, program)
    ev.scripts.setdefault((span, body.value), script)
    return script


def script_member(value: Script, name: str, span: Span) -> Value:
    if name == "name" and value.name is not None:
        return Str(value.name)
    if name in _REFINEMENTS or name == "outPath":
        return value
    return Opaque(span, f"{name} of what {value.function} writes is not known")


def path(source: Source, text: Text, span: Span) -> Value:
    """A path literal's value: from the file's directory, from a home directory, or from the root."""
    written = known_string(text)
    if written.startswith("~/"):
        return Path(_below(span, "a home directory", text.slice(1)))
    if written.startswith("/"):
        return Path(_canonical(text, span))
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source.path), written))
    return Path(_in_project(file, span), file)


def longer_path(start: Path, tail: Text, span: Span) -> Value:
    """`path + string`."""
    if start.file is not None:
        file = posixpath.normpath(start.file + known_string(tail))
        return Path(_in_project(file, span), file)
    return Path(_canonical(Text.join([start.text, tail]), span))


def _in_project(file: str, span: Span) -> Text:
    if file.startswith("/"):
        return Text.at(file, span)
    tail = "" if file == "." or file.startswith("..") else "/" + file
    return _below(span, "the directory of the project", Text.at(tail, span))


def _below(span: Span, what: str, tail: Text) -> Text:
    return Text.join([hole(span, Opaque(span, f"{what} is not known"), splice=False), tail])


def _canonical(text: Text, span: Span) -> Text:
    """An absolute path without `.`, `..` and doubled slashes."""
    steps: list[str] = []
    for step in text.value.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    clean = "/" + "/".join(steps)
    if clean == text.value:
        return text
    if text.holes:
        raise Stuck(Opaque(span, "the path is not known"))
    return Text.at(clean, span)


def load(ev: Evaluator, thunk: Thunk, span: Span) -> Value:
    """`import`: a file of the project, or something from outside."""
    value = ev.known_or_outside(thunk)
    if isinstance(value, Path) and value.file is not None:
        return ev.force(ev.load(value.file, span))
    if isinstance(value, Outside):
        if value.path == ("nixpkgs/lib",):
            return Library()
        return value
    raise Stuck(Opaque(span, "the file is not in the project"))


def source_of(ev: Evaluator, thunk: Thunk, span: Span) -> Text:
    """`builtins.readFile` of a file of the project."""
    value = ev.known(thunk)
    if isinstance(value, Path) and value.file is not None and ev.resolve is not None:
        source = ev.resolve(value.file)
        if source is not None:
            return Text.of(source, 0, len(source.text)) if source.text else Text("", (), (), source.span(0, 0))
    raise Stuck(Opaque(span, "the file is not in the project"))
