"""From words to the engine's command line: through shells, scripts and wrappers, never running anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Union

from kvlint import engines
from kvlint.command import CommandLine, Opening, Pin, Wrapper
from kvlint.formats.shell.text import where
from kvlint.patterns import regex
from kvlint.records import dataclass, field, replace
from kvlint.source import Span, Text

if TYPE_CHECKING:
    from kvlint.formats.shell import Script, Sources

MAX_NESTING = 4
MAX_OWN_WORDS = 4  # what a launcher may be given before the command that it runs
# Programs and functions that print, look for, install or end what they are given.
_TELLS = regex(
    r"(?:echo|print|log|info|warn|err|die|fail|say|msg|usage|help|note|debug|ok|check|require|need|ensure|stop|kill|pkill|pgrep"
    r"|grep|e?grep|which|type|command|wait|install|pip|uv|apt|brew|add|test|skip|cat|tee|set|unset|ssh|scp|cmake|make)",
    re.IGNORECASE,
)
_PROGRAM = regex(r"(?:.*/)?(?:python[0-9.]*|vllm|sglang|llama-server|mlx_lm\.server|lmdeploy|trtllm-serve)")
_SOURCES = regex(r"(?:^|[\s;&|])(?:source|\.)\s", re.MULTILINE)
_MODEL = frozenset({"-m", "--model", "--model-path", "-hf", "--hf-repo"})
SCRIPT_ENDINGS = (".sh", ".bash", ".zsh", ".command")
_TEMPLATED = regex(r"\{\{|\{%|@\w+@|__[A-Z]|\{[A-Za-z_]")
RAY_SCRIPT = "multi-node-serving.sh"  # of vLLM's own image: starts Ray, as the leader or as a worker
# The text of the script that a word names, given the words that it is run with; None where that starts no engine in view.
Scripts = Callable[[Text, Iterable[Text]], Union[Text, None]]


def no_scripts(word: Text, given: Iterable[Text] = ()) -> Text | None:
    return None


@dataclass(frozen=True, slots=True)
class Launch:
    """Words as a carrier found them.

    `entrypoint`: the words are arguments to the image's own entrypoint.  `open`: where unseen words may be spliced in.
    `wrappers`, `container`: what was passed through already.  `following`: the scripts that led here.  `engine`: what kvlint.toml
    says that the image runs.
    """

    words: tuple[Text, ...]
    place: Span
    env: Mapping[str, Text]
    env_open: tuple[Opening, ...] = ()
    open: tuple[Opening, ...] = ()
    image: Text | None = None
    entrypoint: bool = False
    shell: bool = False
    assumed: tuple[Any, ...] = ()
    pins: tuple[Pin, ...] = ()
    wrappers: tuple[Wrapper, ...] = ()
    container: Any = None
    scripts: Scripts = field(default=no_scripts, compare=False)
    sources: Sources | None = field(default=None, compare=False)
    following: tuple[Span | None, ...] = ()
    engine: str | None = None


def launches(launch: Launch, depth: int = 0) -> Iterator[CommandLine]:
    """Every command line in `launch` that names an engine, in the order in which they would run."""
    for line in _launches(launch, depth):
        yield _replaced(line) if depth == 0 or launch.shell else line


def _replaced(line: CommandLine) -> CommandLine:
    """The line with holes for what a template puts into its words, and into its variables."""
    if not any(map(_TEMPLATED.search, [text.value for text in (*line.args, *line.env.values())])):
        return line
    from kvlint.formats.shell.filled import replaced

    env = {name: replaced(value) for name, value in line.env.items()}
    return replace(line, args=tuple(replaced(word) for word in line.args), env=env)


def _launches(launch: Launch, depth: int) -> Iterator[CommandLine]:
    if launch.entrypoint and launch.image is not None and engines.of_image(launch.image.value):
        yield _line(launch)
        return
    from kvlint.carriers.wrappers import programs as wrappers

    if launch.entrypoint and (not launch.words or launch.words[0].value.startswith("-")):
        yield from _of_build(_line(launch), launch.engine)
        return
    if launch.entrypoint and depth == 0:
        inside = list(launches(replace(launch, entrypoint=False, engine=None)))
        yield from inside or _of_build(_line(launch), launch.engine)
        return
    if not launch.words:
        return
    script = wrappers.nested(launch.words, launch.env) if depth < MAX_NESTING else None
    if script is not None:
        yield from of_script(script, launch, depth)
        return
    found = wrappers.unwrap(launch.words, launch.env, shell=launch.shell)
    line = replace(
        found.line,
        env_open=(*launch.env_open, *found.line.env_open),
        open=(*_shifted(launch, found.line), *found.line.open),
        image=found.line.image or launch.image,
        wrappers=(*launch.wrappers, *found.line.wrappers),
        pins=(*launch.pins, *found.line.pins),
        shell=launch.shell,
        assumed=launch.assumed,
        container=found.container or launch.container,
    )
    if line.program is None and line.args and line.args[0].value.startswith("-") and not engines.named_by(line):
        yield from _of_build(line, launch.engine)
        return
    if line.program is None and line.args and depth < MAX_NESTING and not engines.named_by(line):
        # The entrypoint of an image that is not known runs what it is given, or there is none, or it is an engine's own.
        inside = list(launches(replace(_inside(launch, line), words=line.args, open=line.open), depth + 1))
        yield from inside or _of_build(line, launch.engine)
        return
    deeper = depth < MAX_NESTING and line.program is not None
    if deeper and wrappers.nested(line.words, line.env) is not None:
        yield from launches(replace(_inside(launch, line), shell=True), depth + 1)
    elif deeper and (called := _called(launch, line)) is not None:
        yield from _followed(launch, line, called, depth)
    elif engines.named_by(line):
        yield _of_variant(line)
    elif line.program is not None and routes(line):
        yield line
    elif deeper:
        yield from _passed_on(launch, line, depth)
    elif line.program is None:
        yield from _of_build(line, launch.engine)


def routes(line: CommandLine) -> bool:
    """Whether a command line starts a router and no engine."""
    if "router" not in "\n".join([word.value for word in line.words]):
        return False
    from kvlint.carriers.proxies import sglang_router

    return sglang_router.starts(line)


def _of_variant(line: CommandLine) -> CommandLine:
    """A build or a wrapper that goes by an engine's name with a word more: before what is written it may put words of its own."""
    program = line.program
    if program is None or not program.pieces or engines.of_variant(program.value) is None:
        return line
    name = engines.basename(program.value)
    unseen = Opening(0, program.span, f"{name} may add arguments", f"what {name} runs")
    return replace(line, open=(unseen, *line.open))


def _of_build(line: CommandLine, named: str | None) -> Iterator[CommandLine]:
    """An image outside the engines' own repositories, where kvlint.toml, its name or its arguments say plainly whose it is."""
    from kvlint.carriers.arguments import another, build_of, continued, started, whose

    image = line.image.value if line.image is not None else ""
    engine = named or build_of(image) or (None if another(image) else whose(line.args, image, line.env))
    place = line.image.span if line.image is not None else line.args[0].span if line.args else None
    words: Sequence[Text] = started(engine, place) if engine is not None and place is not None else ()
    if engine is not None and named is None and line.args and not line.args[0].value.startswith("-"):
        words = continued(engine, words, line.args)
    if words:
        before = len(words) - 1
        moved = tuple(replace(opening, index=opening.index + before) for opening in line.open)
        yield replace(line, program=words[0], args=(*words[1:], *line.args), open=moved)


def of_script(script: Script, launch: Launch, depth: int = 0) -> Iterator[CommandLine]:
    """The engines that a script starts; what it installs before pins their versions."""
    from kvlint.carriers.wrappers import programs as wrappers

    pins = launch.pins
    launch = replace(launch, wrappers=(*launch.wrappers, *_ray(script)))
    for command in script.commands:
        if not command.words or command.nested:
            continue
        pins = (*pins, *wrappers.installs(command.words))
        inner = replace(
            launch,
            words=command.words,
            env={**launch.env, **command.env},
            env_open=(*launch.env_open, *command.env_open),
            entrypoint=False,
            open=(),
            shell=True,
            assumed=(*launch.assumed, *script.assumed),
            pins=pins,
        )
        yield from launches(inner, depth + 1)
    yield from _told_to_launchd(script, launch)


def _told_to_launchd(script: Script, launch: Launch) -> Iterator[CommandLine]:
    """`launchctl setenv OLLAMA_… value`: what Ollama's app reads when it is started next.

    ollama/ollama@fb3076099:docs/faq.mdx#L79-89
    """
    env: dict[str, Text] = {}
    for command in script.commands:
        words = [word.value for word in command.words]
        if words[:2] == ["launchctl", "setenv"] and len(words) == 4 and words[2].startswith("OLLAMA_"):
            env[words[2]] = command.words[3]
            place = command.words[0].span
    if env:
        unseen = Opening(0, place, "the app may be given more variables", "launchctl setenv for each")
        line = Text.at("ollama", place), (Text.at("serve", place),)
        yield CommandLine(*line, env=env, env_open=(unseen,), wrappers=(*launch.wrappers, Wrapper("launchctl", place)))


def _ray(script: Script) -> Iterator[Wrapper]:
    """Ray, where a script starts it: what it serves may run on other nodes too."""
    for command in script.commands:
        words = [engines.basename(word.value) for word in command.words[:3]]
        if words[:2] in (["ray", "start"], ["ray", "symmetric-run"]) or RAY_SCRIPT in words:
            yield Wrapper("ray", command.words[0].span)
            return


def _called(launch: Launch, line: CommandLine) -> tuple[Text, Text] | None:
    """The word that names a script in view, itself the program or given to a shell; and the script's text."""
    from kvlint.formats.shell import invocation

    shell = invocation(line.words)
    name = shell.file if shell is not None else line.program
    text = launch.scripts(name, chain(line.args, line.env.values())) if name is not None else None
    return (name, text) if name is not None and text is not None and text.home not in launch.following else None


def _followed(launch: Launch, line: CommandLine, called: tuple[Text, Text], depth: int) -> Iterator[CommandLine]:
    """The engines of a script that the line runs, with the line's arguments bound."""
    name, text = called
    given = (name, *_spliced(line, line.words.index(name)))
    reads = launch.sources if _SOURCES.search(text.value) else None
    script = _walked(text, tuple(line.env.items()), given, reads)
    inner = _inside(launch, line)
    passed = (*inner.wrappers, Wrapper(engines.basename(name.value), where(name)))
    inner = replace(inner, wrappers=passed, following=(*launch.following, text.home))
    yield from of_script(script, inner, depth + 1)


@lru_cache(maxsize=256)
def _walked(
    text: Text, env: tuple[tuple[str, Text], ...], positional: tuple[Text, ...], sources: Sources | None
) -> Script:
    """A script's commands; one that is run with the same words in the same surroundings, by whatever way, is walked once."""
    from kvlint.formats.shell import commands

    return commands(text, dict(env), positional=positional, sources=sources)


def forget() -> None:
    """Let go of the scripts of a run that is over, and of the project behind them."""
    _walked.cache_clear()


def _passed_on(launch: Launch, line: CommandLine, depth: int) -> Iterator[CommandLine]:
    """`entrypoint.sh vllm serve …`: what is not in view and is given a command runs it, it is supposed.

    A script is given the command alone; a function of another file, or a supervisor, may want words of its own before it.
    """
    from kvlint.formats.shell import program_name

    assert line.program is not None
    name = program_name(line.program) or ""
    script = name.endswith(SCRIPT_ENDINGS)
    own = next((at for at, word in enumerate(line.args) if word.value.startswith("-")), len(line.args))
    within = range(1 if script else min(own + 1, MAX_OWN_WORDS))
    at = next((at for at in within if _starts(line.args[at:], script)), None)
    if at is None or (not script and _TELLS.match(name)):
        return
    unseen = Opening(0, line.program.span, f"{name} may set variables", f"what {name} does")
    known = _inside(launch, line)
    moved = tuple(replace(opening, index=opening.index - at - 1) for opening in line.open if opening.index > at)
    wrapper = Wrapper(name, line.program.span)
    passed = replace(
        known,
        words=line.args[at:],
        open=moved,
        env_open=(*known.env_open, unseen),
        wrappers=(*known.wrappers, wrapper),
    )
    yield from launches(passed, depth + 1)


def _starts(words: tuple[Text, ...], script: bool) -> bool:
    """Whether words are plainly a command that starts an engine; a script's own arguments may be a shell's too."""
    from kvlint.formats.shell import invocation

    if len(words) < 2 or not (words[0].known or words[1].value == "-m"):
        return False
    if script and invocation(words) is not None:
        return True
    from kvlint.carriers.wrappers import programs as wrappers

    inner = CommandLine(words[0], words[1:])
    if script:
        return bool(engines.named_by(inner))
    program = words[0].known and _PROGRAM.fullmatch(words[0].value)
    if not (program or words[1].value == "-m") or engines.named_by(wrappers.unwrap(words).line) is None:
        return False
    given = [word.value for word in words[1:]]
    return given[0] == "serve" or any(
        word in _MODEL or word.startswith(("--model=", "--model-path=")) for word in given
    )


def _inside(launch: Launch, line: CommandLine) -> Launch:
    """The launch of what runs inside a line: all that was learned on the way is kept."""
    return replace(
        launch,
        words=line.words,
        env=line.env,
        env_open=line.env_open,
        open=(),
        image=line.image,
        entrypoint=False,
        pins=line.pins,
        wrappers=line.wrappers,
        container=line.container,
    )


def _spliced(line: CommandLine, at: int) -> Iterator[Text]:
    """The arguments behind the word at `at`, with a hole wherever unseen words may be spliced in."""
    words = line.words
    unseen = {opening.index: opening for opening in line.open if not _stands_in(line, opening)}
    for index in range(at, len(words)):
        if index in unseen:
            opening = unseen[index]
            yield Text.unknown(opening.span, opening.reason, opening.supply, splice=True)
        if index + 1 < len(words):
            yield words[index + 1]


def _stands_in(line: CommandLine, opening: Opening) -> bool:
    """An opening that is an argument itself, a hole already."""
    return opening.index < len(line.args) and any(hole.splice for hole in line.args[opening.index].holes)


def _line(launch: Launch) -> CommandLine:
    return CommandLine(
        program=None,
        args=launch.words,
        env=launch.env,
        open=launch.open,
        env_open=launch.env_open,
        image=launch.image,
        wrappers=launch.wrappers,
        pins=launch.pins,
        shell=launch.shell,
        assumed=launch.assumed,
        container=launch.container,
    )


def _shifted(launch: Launch, line: CommandLine) -> Iterator[Opening]:
    """Openings counted in the whole words, recounted in the arguments of the program that was found."""
    before = len(launch.words) - len(line.args)
    for opening in launch.open:
        yield replace(opening, index=max(0, opening.index - before))
