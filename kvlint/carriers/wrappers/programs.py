"""Passing through the programs that start another: what really runs, with which variables, in which image.

The programs and their options are data (data/wrappers.toml).  Where a word may be an option or the command, the passage stops
and says so: a wrong program is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kvlint.carriers.wrappers.options import Scan, Table, scan, table
from kvlint.command import CommandLine, Opening, Pin, Wrapper
from kvlint.formats.shell import Script, commands, invocation, program_name, split
from kvlint.formats.shell.text import where
from kvlint.patterns import regex
from kvlint.records import dataclass, field
from kvlint.source import HOLE, Span, Text

MOST_WRAPPERS = 16
_NO_ENV: Mapping[str, Text] = MappingProxyType({})
_ASSIGN = regex(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
_PYTHON = regex(r"(?:python|pypy)[0-9.]*t?")
_MODULE = regex(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?<!\.gguf)(?<!\.bin)", re.ASCII)
_TRANSPORT = regex(r"(?:docker|oras|library)://")
_PINNED = regex(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*===?\s*([^\s,;*]+)\s*(?:;.*)?", re.ASCII)
_TOOL = regex(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?:(?:==|@)(.+))?", re.ASCII)
_HATCH = regex(r"[\w.+-]+:(?=.)")
_INSTALLERS = frozenset({"pip", "pip3"})
_SIDE_BY_SIDE = ("concurrently", "conc")


@dataclass(frozen=True, slots=True)
class Container:
    """What `docker run` and its like are told about the container.  `service`: the compose service that is run instead."""

    runtime: str
    service: Text | None = None
    name: Text | None = None
    gpus: Text | None = None
    shm_size: Text | None = None
    ipc: Text | None = None
    memory: Text | None = None
    network: Text | None = None
    oci_runtime: Text | None = None
    ports: tuple[Text, ...] = ()
    devices: tuple[Text, ...] = ()
    volumes: tuple[Text, ...] = ()
    env_files: tuple[Text, ...] = ()


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """`uncertain`: why the program may be another: an option that is not known, an interpolation in front."""

    line: CommandLine
    container: Container | None = None
    uncertain: Opening | None = None


def unwrap(words: Sequence[Text], env: Mapping[str, Text] = _NO_ENV, *, shell: bool = False) -> Unwrapped:
    """The program that runs in the end.  `env`: what is set around these words.

    A shell that is started with `-c` is such a program: `nested` reads its script.  `open` of the line counts each argument
    that may come apart into several, or none; whoever knows that an option takes exactly one value may close it.
    """
    passing = _Passing(list(words), dict(env))
    for _ in range(MOST_WRAPPERS):
        if not passing.step():
            break
    program = None if passing.inside or not passing.words else passing.words[0]
    args = tuple(passing.words if passing.inside else passing.words[1:])
    line = CommandLine(
        program=program,
        args=args,
        env=passing.env,
        open=tuple(openings(args)),
        env_open=tuple(passing.env_open),
        image=passing.image,
        wrappers=tuple(passing.wrappers),
        pins=tuple(passing.pins),
        shell=shell,
    )
    return Unwrapped(line, passing.container, passing.uncertain)


def nested(words: Sequence[Text], env: Mapping[str, Text] = _NO_ENV) -> Script | None:
    """The script of `sh -c STRING`, with `$0` and the arguments bound; None for other words."""
    shell = invocation(words)
    if shell is None or shell.string is None:
        beside = _side_by_side(words)
        return commands(beside, env) if beside is not None else None
    name = shell.name if shell.name is not None else words[0]
    return commands(shell.string, env, positional=(name, *shell.arguments))


def _side_by_side(words: Sequence[Text]) -> Text | None:
    """`concurrently "one command" "another"`, each in a shell of its own; words without a blank are names and colours."""
    if len(words) < 2 or program_name(words[0]) not in _SIDE_BY_SIDE:
        return None
    parts = [part for word in words[1:] if " " in word.value.strip() for part in (Text("("), word, Text("\n)\n"))]
    return Text.join(parts) if parts else None


def installs(words: Sequence[Text]) -> tuple[Pin, ...]:
    """The versions that `pip install` fixes for what runs after it; nothing for other words."""
    line = unwrap(words).line
    name = program_name(line.program) if line.program is not None else None
    args = line.args[1:] if name == "uv" and line.args and line.args[0].value == "pip" else line.args
    if (name not in _INSTALLERS and args is line.args) or not args or args[0].value != "install":
        return ()
    return tuple(pin for word in args[1:] for pin in _pin(word))


def openings(args: Sequence[Text]) -> list[Opening]:
    """Where unseen words may be spliced in: arguments that are nothing but an unquoted interpolation."""
    found = []
    for index, word in enumerate(args):
        if word.holes and _is_splice(word):
            hole = next(hole for hole in word.holes if hole.splice)
            found.append(Opening(index, hole.span, hole.reason, hole.supply))
    return found


def _is_splice(word: Text) -> bool:
    return not word.value.strip(HOLE) and any(hole.splice for hole in word.holes)


@dataclass(slots=True)
class _Passing:
    words: list[Text]
    env: dict[str, Text]
    env_open: list[Opening] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    image: Text | None = None
    container: Container | None = None
    uncertain: Opening | None = None
    inside: bool = False  # an image's own entrypoint runs
    last: bool = False  # what stands first is the program, whatever its name

    def step(self) -> bool:
        """Pass one wrapper; False where none is left."""
        if self.inside or self.last or not self.words:
            return False
        if not self.words[0].value.strip(HOLE):
            return self.behind_a_hole()
        about, at = self.named()
        if about is None:
            return False
        found = scan(self.words, at, about)
        if found.uncertain is not None:
            self.uncertain = found.uncertain
            return False
        if found.stopped or (about.says("loose") and not found.begun and not self.has_string(found, about)):
            return False
        return self.enter(about, found)

    def behind_a_hole(self) -> bool:
        """`$SUDO docker run …`, `"$PYTHON" -m vllm…`: the program is what follows, unless the interpolation says otherwise."""
        hole = self.words[0].holes[0] if self.words[0].holes else None
        following = self.words[1].value if len(self.words) > 1 else ""
        if hole is None or not following:
            return False
        is_module = following == "-m" and len(self.words) > 2 and _MODULE.fullmatch(self.words[2].value)
        if not is_module and (following.startswith("-") or not _is_splice(self.words[0])):
            return False
        self.uncertain = Opening(0, hole.span, "what stands before the program is not known", hole.supply)
        if is_module:
            self.passed("python -m", 2)
            self.last = True
        else:
            self.env_open.append(self.uncertain)
            del self.words[0]
        return True

    def named(self) -> tuple[Table | None, int]:
        """The table for the program at the front, and where its options start; subcommands followed."""
        name = program_name(self.words[0]) or ""
        about = table("python" if _PYTHON.fullmatch(name) else name)
        at = 1
        while about is not None and about.kind == "group":
            found = scan(self.words, at, about)
            if found.uncertain is not None or found.at >= len(self.words):
                return None, at
            self.env_files(found, about)
            about = table(f"{about.name} {self.words[found.at].value}")
            at = found.at + 1
        return about, at

    def has_string(self, found: Scan, about: Table) -> bool:
        return bool(found.values(about, "strings"))

    def enter(self, about: Table, found: Scan) -> bool:
        at = found.at
        env, at = self.environment(about, found, at)
        self.surroundings(about, found)
        string = next(iter(found.values(about, "strings")), None)
        splits = found.values(about, "splits")
        if string is not None:
            return self.into_shell(about, string, len(self.words), env)
        if splits:
            self.words[at:at] = split(splits[0])
            env, at = self.assigned(env, at) if about.says("assigns") else (env, at)
        at += about.operands
        if at < len(self.words) and about.has("begins_string", self.words[at].value) and at + 1 < len(self.words):
            return self.into_shell(about, self.words[at + 1], at + 2, env)
        if at >= len(self.words):
            return False
        self.env = env
        return self.arrive(about, found, at)

    def surroundings(self, about: Table, found: Scan) -> None:
        """Versions, images and unseen variables that the options bring."""
        self.pins += [pin for value in found.values(about, "pins") for pin in _pin(value)]
        self.image = next((_image(value) for value in found.values(about, "images")), self.image)
        self.env_files(found, about)
        if about.says("env_open"):
            supply = f"what {about.name} sets"
            self.env_open.append(
                Opening(0, where(self.words[0]), f"{about.name} sets variables that are not in view", supply)
            )
        self.env_open += openings(found.splices)

    def environment(self, about: Table, found: Scan, at: int) -> tuple[dict[str, Text], int]:
        """The variables behind the wrapper, and where its `NAME=value` words end."""
        names = {option.name for option in found.options}
        kept = any(about.has("keeps", name) for name in names)
        cleared = about.says("clears") or any(about.has("clears", name) for name in names)
        env = {} if cleared and not kept else dict(self.env)
        for value in found.values(about, "unsets"):
            env.pop(value.value, None)
        for value in found.values(about, "sets"):
            self.set(env, value)
        return self.assigned(env, at) if about.says("assigns") else (env, at)

    def set(self, env: dict[str, Text], value: Text) -> None:
        name, equals, _ = value.value.partition("=")
        if equals:
            env[name] = value.slice(len(name) + 1)
        elif name in self.env:
            env[name] = self.env[name].seen_from(where(value))
        elif name:
            env[name] = Text.unknown(where(value), f"{name} is passed on from outside", f"the value of {name}")

    def assigned(self, env: dict[str, Text], at: int) -> tuple[dict[str, Text], int]:
        while at < len(self.words):
            word = self.words[at]
            found = _ASSIGN.match(word.value)
            if found:
                env[found.group(1)] = word.slice(found.end())
            elif _is_splice(word) and at + 1 < len(self.words):
                self.env_open += openings([word])
            else:
                break
            at += 1
        return env, at

    def env_files(self, found: Scan, about: Table) -> None:
        for value in found.values(about, "env_files"):
            name = value.value.replace(HOLE, "…")
            self.env_open.append(Opening(0, where(value), f"{name} may set variables", name))

    def into_shell(self, about: Table, string: Text, end: int, env: dict[str, Text]) -> bool:
        """Go on as `sh -c STRING`: the wrapper gives the string to a shell."""
        place = where(self.words[0])
        self.passed(about.name, end)
        self.env = env
        self.words = [Text.at("sh", place), Text.at("-c", place), string]
        self.last = True
        return True

    def arrive(self, about: Table, found: Scan, at: int) -> bool:
        """The command starts at `at`; by kind, its first word has still to be read."""
        if about.kind in ("container", "service"):
            return self.into_container(about, found, at)
        rest = self.words[at:]
        if about.kind == "keys" or (about.kind == "terminal" and len(rest) == 1):
            return self.into_shell(about, rest[0], len(self.words), self.env)
        if found.module or about.kind == "python":
            return self.into_python(about, found, at)
        self.passed(about.name, at)
        if about.kind == "tool":
            self.tool()
        elif about.kind == "installable":
            self.installable()
        elif about.kind == "environment" and (prefix := _HATCH.match(self.words[0].value)):
            self.words[0] = self.words[0].slice(prefix.end())
        return True

    def into_python(self, about: Table, found: Scan, at: int) -> bool:
        if not found.module:
            self.passed("python", at)
        else:
            if about.kind != "python":
                self.wrappers.append(Wrapper(about.name, _span(self.words[:at])))
            self.passed("python -m", at)
            self.words[0] = self.words[0].slice(found.module_at) if found.module_at else self.words[0]
        self.last = True
        return True

    def into_container(self, about: Table, found: Scan, at: int) -> bool:
        if _is_splice(self.words[at]) and at + 1 < len(self.words) and not self.words[at + 1].value.startswith("-"):
            self.uncertain = openings([self.words[at]])[0]
            return False
        self.container = _container(about, found, self.words[at] if about.kind == "service" else None)
        if about.kind == "container":
            self.image = _image(self.words[at])
        entrypoint = next((o.value for o in reversed(found.options) if o.name == "--entrypoint"), None)
        self.passed(about.name, at)
        rest = self.words[1:]
        if entrypoint is not None and entrypoint.value:
            self.words = [entrypoint, *rest]
        else:
            self.words = rest
            self.inside = entrypoint is None and about.plain.get("entrypoint") is not False
        return True

    def tool(self) -> None:
        """`uvx vllm@0.11.0`: the command's name is the distribution's, with a version."""
        found = _TOOL.fullmatch(self.words[0].value)
        if found is None:
            return
        name, version = found.groups()
        if version and version != "latest" and HOLE not in version:
            self.pins.append(Pin(name, self.words[0].slice(found.start(2))))
        self.words[0] = self.words[0].slice(0, len(name))

    def installable(self) -> None:
        """`nix run nixpkgs#vllm -- serve`: the program is named by the package, as near as the words say."""
        value = self.words[0].value
        name = value.rpartition("#")[2].rpartition(".")[2]
        self.words[0] = self.words[0].slice(len(value) - len(name))
        if len(self.words) > 1 and self.words[1].value == "--":
            del self.words[1]

    def passed(self, name: str, at: int) -> None:
        self.wrappers.append(Wrapper(name, _span(self.words[:at])))
        del self.words[:at]


def _span(words: Sequence[Text]) -> Span:
    """The words of a wrapper, as far as they stand in the file of the first."""
    return where(Text.join(words))


def _image(word: Text) -> Text:
    """An image without the transport that some runtimes name it by."""
    transport = _TRANSPORT.match(word.value)
    return word.slice(transport.end()) if transport else word


def _pin(requirement: Text) -> list[Pin]:
    found = _PINNED.fullmatch(requirement.value)
    if found is None or HOLE in found.group(2):
        return []
    return [Pin(found.group(1), requirement.slice(*found.span(2)))]


def _container(about: Table, found: Scan, service: Text | None) -> Container:
    given: dict[str, list[Text]] = {}
    for option in found.options:
        if option.value is not None:
            given.setdefault(_CONTAINER_OPTIONS.get(option.name, ""), []).append(option.value)

    def last(key: str) -> Text | None:
        return given[key][-1] if key in given else None

    return Container(
        runtime=about.name.partition(" ")[0],
        service=service,
        name=last("name"),
        gpus=last("gpus"),
        shm_size=last("shm_size"),
        ipc=last("ipc"),
        memory=last("memory"),
        network=last("network"),
        oci_runtime=last("runtime"),
        ports=tuple(given.get("ports", ())),
        devices=tuple(given.get("devices", ())),
        volumes=tuple(given.get("volumes", ())),
        env_files=tuple(found.values(about, "env_files")),
    )


_CONTAINER_OPTIONS = {
    "--name": "name",
    "--gpus": "gpus",
    "--shm-size": "shm_size",
    "--ipc": "ipc",
    "-m": "memory",
    "--memory": "memory",
    "--net": "network",
    "--network": "network",
    "--runtime": "runtime",
    "-p": "ports",
    "--publish": "ports",
    "--device": "devices",
    "-v": "volumes",
    "--volume": "volumes",
    "-B": "volumes",
    "--bind": "volumes",
    "--mount": "volumes",
}
