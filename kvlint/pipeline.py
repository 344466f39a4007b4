"""The pipeline: files → documents → processes and limits → servers → links → rules → report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kvlint.carriers.registry import Findings, find
from kvlint.coefficients import Coefficients
from kvlint.config import Config, load
from kvlint.diagnostics import Diagnostic, Report, Unchecked, rank
from kvlint.evaluation import Evaluation
from kvlint.facts import Fact
from kvlint.files import Memory
from kvlint.links import Chain, admitted_to, connect
from kvlint.models.lookup import Models
from kvlint.project import Project
from kvlint.records import dataclass, replace
from kvlint.servers import Surroundings, build
from kvlint.source import Source
from kvlint.subjects import Process, ServerGroup

if TYPE_CHECKING:
    from kvlint.baseline import Baseline
    from kvlint.ruleset.load import Rule
    from kvlint.since import Past


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to report.

    `since`: only what is new since a revision, or touched by a change.  `deletions`: with `focus_only`, what is new since then is
    in focus too.  `baseline`: findings that are accepted for now.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict_facts: bool = False
    focus_only: bool = False
    since: Past | None = None
    deletions: Past | None = None
    baseline: Baseline | None = None


def check(project: Project, options: Options | None = None) -> Report:
    """Lint a project."""
    return report(evaluate(project), options or Options())


def evaluate(project: Project) -> Evaluation:
    """Every stage before the rules."""
    project.scan()
    found = find(project)
    coefficients = Coefficients(project.config.coefficients)
    models = Models(project)
    groups = list(_built(found, Surroundings(project, models, coefficients)))
    chain = connect(groups, found.admissions)
    found.admissions = [each for each in found.admissions if each.servers or "general" not in each.settings]
    for group in groups:
        _settle(group, chain, coefficients)
    if models.lock is not None:
        from kvlint.lock_uses import drift

        found.problems += drift(models.lock, groups, models, project.files)
    return Evaluation(project, found, groups, chain, coefficients)


def _built(found: Findings, around: Surroundings) -> Iterator[ServerGroup]:
    """Each process's server; a failure of ours in one never loses the others."""
    for identity, process in found.processes:
        try:
            group = _group(process, identity, around)
        except Exception as error:
            found.internal.append(f"{identity}: {type(error).__name__}: {error}")
            continue
        if group is not None:
            yield group


def _group(process: Process, identity: str, around: Surroundings) -> ServerGroup | None:
    """A process's server, with what a log of it says, unless it was started with other settings then."""
    measured = around.models.lock.measured(identity) if around.models.lock is not None else None
    if measured is None:
        return build(process, identity, around)
    group = build(process, identity, around, measured.facts())
    if group is None or not measured.changed(group):
        return group
    return build(process, identity, around)


def _settle(group: ServerGroup, chain: Chain, coefficients: Coefficients) -> None:
    """What only the links say: the window of a server that has none of its own, and how many requests reach it."""
    from kvlint.windows import settle

    links = chain.of(group)
    reaching = admitted_to([link for link in links if not link.supposed])
    for world in group.live:
        settle(world, links, coefficients)
        if reaching is not None:
            world.settings["admitted"] = reaching


def report(evaluation: Evaluation, options: Options) -> Report:
    """Judge the rules and keep what the run is asked for."""
    from kvlint import suppress
    from kvlint.ruleset.diagnose import numbered
    from kvlint.ruleset.run import lint

    project = evaluation.project
    rules = _rated(suppress.selected(project.config, options.select, options.ignore), project.config.severity)
    findings, every = _judged(evaluation, rules)
    names = {rule.name for rule in rules}
    every += (each for each in evaluation.findings.unchecked if each.rule in names)
    unchecked = list(dict.fromkeys((*every, *_unknown_engines(evaluation, rules))))
    if options.strict_facts:
        findings += numbered(_strict(unchecked, evaluation))
    findings, suppressed, known = suppress.apply(evaluation, findings)
    suppress.spare(known, unchecked)
    findings += lint(evaluation, known, rules)
    if options.baseline is not None:
        findings, accepted = options.baseline.apply(findings, names)
        suppressed += accepted
    return Report(
        findings=sorted((each for each in findings if _shown(each, project, options)), key=_place),
        unchecked=[each for each in unchecked if _unchecked_in_focus(project, each, options)],
        not_understood=[each for each in project.not_understood if _within(project, each.path, options)],
        groups=[group for group in evaluation.groups if _group_in_focus(project, group, options)],
        admissions=[each for each in evaluation.findings.admissions if _within(project, each.place.path, options)],
        files_read=project.read,
        files_recognized=sum(_within(project, path, options) for path in evaluation.findings.recognized),
        suppressed=suppressed,
        internal=evaluation.findings.internal,
        prefix=project.prefix,
    )


def _judged(evaluation: Evaluation, rules: list[Rule]) -> tuple[list[Diagnostic], list[Unchecked]]:
    """What the rules say; where one fails, by a fault of ours, what the others say."""
    from kvlint.ruleset.run import run

    try:
        return run(evaluation, rules)
    except Exception as error:
        if len(rules) == 1:
            evaluation.findings.internal.append(f"{rules[0].name}: {type(error).__name__}: {error}")
            return [], []
    parts = [_judged(evaluation, [rule]) for rule in rules]
    return [each for found, _ in parts for each in found], [each for _, missing in parts for each in missing]


def _unknown_engines(evaluation: Evaluation, rules: list[Rule]) -> Iterator[Unchecked]:
    """Limits before a process whose program is no engine's that we know: it was read, and nothing can be said of it."""
    if not any(rule.name == "width-below-admission" for rule in rules):
        return
    for each in evaluation.findings.admissions:
        if each.system != "llama-swap" or each.servers:
            continue
        program = each.settings.get("program")
        begun = f"in place of `{program.value}`" if isinstance(program, Fact) else "that is written out"
        supply = f"a command of an engine {begun}"
        name = f"{each.place.path}#{each.name}"
        yield Unchecked("width-below-admission", name, "engine", supply, each.place)


def _rated(rules: Iterable[Rule], severity: Mapping[str, str]) -> list[Rule]:
    """The rules with the project's own severities, of a rule, of its theme or of `all`; caps are still set by doubt.

    A rule that is only a warning where a decisive value is a default or assumed stays so: that is doubt as well.
    """
    from kvlint.ruleset.load import UNDECIDED, Choice

    rated = []
    for rule in rules:
        chosen = severity.get(rule.name, severity.get(rule.theme, severity.get("all")))
        if chosen == "error" and any(choice.what == UNDECIDED for choice in rule.severity):
            chosen = UNDECIDED
        if chosen != "off":
            rated.append(rule if chosen is None else replace(rule, severity=(Choice(chosen),)))
    return rated


def _shown(finding: Diagnostic, project: Project, options: Options) -> bool:
    if options.since is not None and not options.since.shows(finding):
        return False
    if options.deletions is not None and options.deletions.lacks(finding):
        return True
    return any(_within(project, span.path, options) for span in finding.spans())


def _place(finding: Diagnostic) -> tuple[str, int, str, str]:
    return finding.path, finding.span.start, finding.rule, finding.message


def _within(project: Project, path: str, options: Options) -> bool:
    """Whether a path is in focus; with `focus_only`, an empty focus holds nothing."""
    return project.in_focus(path) and bool(project.focus or not options.focus_only)


def _group_in_focus(project: Project, group: ServerGroup, options: Options) -> bool:
    return any(_within(project, path, options) for path in (group.first.program.path, group.id.partition("#")[0]))


def _unchecked_in_focus(project: Project, each: Unchecked, options: Options) -> bool:
    if each.server is None:
        return _within(project, each.span.path if each.span else "", options)
    return _within(project, each.server.partition("#")[0], options)


def _strict(unchecked: Iterable[Unchecked], evaluation: Evaluation) -> Iterator[Diagnostic]:
    """`--strict-facts`: what could not be checked fails the run, at the server's program or where the rule would have pointed."""
    places = {group.id: group.first.program for group in evaluation.groups}
    for each in unchecked:
        span = places.get(each.server or "", each.span)
        if span is not None:
            yield Diagnostic(
                rule=each.rule,
                severity="error",
                certainty="certain",
                message=f"could not be checked: {each.missing} is unknown; {each.supply}",
                span=span,
                server=each.server,
                servers=(each.server,) if each.server else (),
                subject=each.missing,
            )


def check_files(files: Mapping[str, str | bytes], config: str | None = None, options: Options | None = None) -> Report:
    """Lint files held in memory, with the text of a `kvlint.toml`: for tests and for other programs."""
    return check(memory_project(files, config), options)


def memory_project(files: Mapping[str, str | bytes], config: str | None = None) -> Project:
    contents = {path: text if isinstance(text, bytes) else text.encode("utf-8") for path, text in files.items()}
    loaded = load(Source("kvlint.toml", config)) if config else Config()
    return Project(Memory(contents), loaded, name="memory")


def exceeds(found: Report, fail_on: str) -> bool:
    """Whether a finding stands at or above the level that fails the run."""
    worst = found.worst()
    return fail_on != "never" and worst is not None and rank(worst) >= rank(fail_on)
