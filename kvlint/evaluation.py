"""Everything that the stages before the rules made: what `show`, `explain`, `diff` and `derive` print."""

from __future__ import annotations

from kvlint.carriers.registry import Findings
from kvlint.coefficients import Coefficients
from kvlint.facts import Fact, Unknown
from kvlint.links import Chain
from kvlint.project import Project
from kvlint.records import dataclass
from kvlint.subjects import Server, ServerGroup


@dataclass(slots=True)
class Evaluation:
    """One run: its project, what the carriers found in it, the servers, who stands before them, the coefficients."""

    project: Project
    findings: Findings
    groups: list[ServerGroup]
    chain: Chain
    coefficients: Coefficients


def unknown_inputs(server: Server) -> dict[str, str]:
    """What could not be known of a server, and what would supply it: by missing fact."""
    derived = server.sizing.derived()
    bounded = isinstance(derived.get("budget_bytes"), Fact)
    values = (*server.settings.values(), *(() if bounded else server.hardware.values()), *derived.values())
    found: dict[str, str] = {}
    for value in values:
        if isinstance(value, Unknown):
            found.setdefault(value.missing, f"{value.reason}; {value.supply}")
    return found
