"""The pipeline: files → documents → processes and limits → servers → links → rules → report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kvlint.carriers.registry import Findings, find
from kvlint.coefficients import Coefficients
from kvlint.config import Config, load
from kvlint.diagnostics import Diagnostic, Report, Unchecked, rank
from kvlint.facts import Unknown
from kvlint.files import Memory
from kvlint.links import Chain, admitted_to, connect
from kvlint.models.lookup import Models
from kvlint.project import Project
from kvlint.servers import Surroundings, build
from kvlint.source import Source
from kvlint.subjects import Server, ServerGroup


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to report."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    strict_facts: bool = False
    focus_only: bool = False


@dataclass(slots=True)
class Evaluation:
    """Everything that the stages before the rules made: what `show`, `explain`, `diff` and `derive` print."""

    project: Project
    findings: Findings
    groups: list[ServerGroup]
    chain: Chain
    coefficients: Coefficients


def check(project: Project, options: Options | None = None) -> Report:
    """Lint a project."""
    return report(evaluate(project), options or Options())


def evaluate(project: Project) -> Evaluation:
    """Every stage before the rules."""
    project.scan()
    found = find(project)
    coefficients = Coefficients(project.config)
    around = Surroundings(project, Models(project), coefficients)
    groups = [group for identity, process in found.processes if (group := build(process, identity, around))]
    chain = connect(groups, found.admissions)
    for group in groups:
        _settle(group, chain, coefficients)
    return Evaluation(project, found, groups, chain, coefficients)


def _settle(group: ServerGroup, chain: Chain, coefficients: Coefficients) -> None:
    """What only the links say: the window of a server that has none of its own, and how many requests reach it."""
    from kvlint.windows import settle

    links = chain.of(group)
    reaching = admitted_to(links)
    for world in group.worlds:
        settle(world, links, coefficients)
        if reaching is not None:
            world.settings["admitted"] = reaching


def report(evaluation: Evaluation, options: Options) -> Report:
    """Judge the rules and keep what the run is asked for."""
    from kvlint import suppress
    from kvlint.ruleset.run import lint, run

    project = evaluation.project
    rules = suppress.selected(project.config, options.select, options.ignore)
    findings, unchecked = run(evaluation, rules)
    findings, suppressed, known = suppress.apply(evaluation, findings)
    findings += lint(evaluation, known, rules)
    result = Report(
        findings=[each for each in findings if _in_focus(project, each)],
        unchecked=list(dict.fromkeys(each for each in unchecked if _unchecked_in_focus(project, each))),
        not_understood=[each for each in project.not_understood if project.in_focus(each.path)],
        groups=[group for group in evaluation.groups if _group_in_focus(project, group)],
        admissions=[each for each in evaluation.findings.admissions if project.in_focus(each.place.path)],
        files_read=project.read,
        files_recognized=len(evaluation.findings.recognized),
        suppressed=suppressed,
        internal=evaluation.findings.internal,
    )
    if options.strict_facts:
        result.findings += _strict(result.unchecked, evaluation)
    return result


def _in_focus(project: Project, finding: Diagnostic) -> bool:
    return any(project.in_focus(span.path) for span in finding.spans())


def _group_in_focus(project: Project, group: ServerGroup) -> bool:
    return project.in_focus(group.first.program.path) or project.in_focus(group.id.partition("#")[0])


def _unchecked_in_focus(project: Project, each: Unchecked) -> bool:
    return each.server is None or project.in_focus(each.server.partition("#")[0])


def _strict(unchecked: Iterable[Unchecked], evaluation: Evaluation) -> Iterator[Diagnostic]:
    """`--strict-facts`: what could not be checked is a warning at the server's program."""
    places = {group.id: group.first.program for group in evaluation.groups}
    for each in unchecked:
        if each.server in places:
            yield Diagnostic(
                rule=each.rule,
                severity="warning",
                certainty="certain",
                message=f"could not be checked: {each.missing} is unknown; {each.supply}",
                span=places[each.server],
                server=each.server,
                servers=(each.server,),
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


def unknown_inputs(server: Server) -> dict[str, str]:
    """What could not be known of a server, and what would supply it: by missing fact."""
    values = (*server.settings.values(), *server.hardware.values(), *server.sizing.derived().values())
    found: dict[str, str] = {}
    for value in values:
        if isinstance(value, Unknown):
            found.setdefault(value.missing, f"{value.reason}; {value.supply}")
    return found


