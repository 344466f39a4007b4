"""As much of GitHub's runner as a composite action needs: its steps in bash, with the environment files of each step.

Expressions are looked up, joined by `||`, and compared with `!=`; what else an action might write is an error here.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


@dataclass
class Result:
    """What a job sees of an action: the log, the summary, the outputs, and the status of the step that failed, or 0."""

    log: str = ""
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    status: int = 0


@dataclass
class Runner:
    """Runs the action at `action` in `workspace`; `event` is the payload, `home` holds what a runner keeps."""

    action: Path
    workspace: Path
    home: Path
    event: dict[str, Any]
    given: dict[str, dict[str, str]] = field(default_factory=dict)  # outputs of steps that need not run again

    def run(self, **inputs: str) -> Result:
        described = yaml.safe_load((self.action / "action.yml").read_text(encoding="utf-8"))
        chosen = {
            name: str(inputs.get(name.replace("-", "_"), each["default"])) for name, each in described["inputs"].items()
        }
        context: dict[str, Any] = {"inputs": chosen, "github": {"event": self.event}, "steps": {}}
        result = Result()
        for number, step in enumerate(described["runs"]["steps"]):
            if result.status or not _applies(step.get("if"), context):
                continue
            outputs = self.given.get(step.get("id", ""))
            if outputs is None:
                outputs = self._step(number, step, context, result)
            context["steps"][step.get("id", str(number))] = {"outputs": outputs}
        for name, each in described["outputs"].items():
            result.outputs[name] = _filled(each["value"], context)
        return result

    def _step(self, number: int, step: dict[str, Any], context: dict[str, Any], result: Result) -> dict[str, str]:
        assert "uses" not in step, "another action cannot be run here"
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "an expression in a script is an injection"
        temp = self.home / "temp"
        temp.mkdir(parents=True, exist_ok=True)
        files = {
            name: temp / f"{name}-{number}"
            for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV", "GITHUB_PATH")
        }
        for file in files.values():
            file.write_text("")
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("KVLINT", "GITHUB_", "PYTEST"))
            },
            **{name: str(file) for name, file in files.items()},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKFLOW": "test",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_ACTION_PATH": str(self.action),
            "RUNNER_TEMP": str(temp),
            **{name: _filled(str(value), context) for name, value in step.get("env", {}).items()},
        }
        script = temp / f"step-{number}.sh"
        script.write_text(step["run"])
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        result.log += done.stdout
        result.summary += files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")
        result.status = done.returncode
        return dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines())


def _applies(condition: str | None, context: dict[str, Any]) -> bool:
    if condition is None:
        return True
    left, right = re.fullmatch(r"(\S+) != '(.*)'", condition).groups()  # type: ignore[union-attr]
    return _look(left, context) != right


def _filled(text: str, context: dict[str, Any]) -> str:
    return EXPRESSION.sub(
        lambda found: next(filter(None, (_look(each, context) for each in found[1].split(" || "))), ""), text
    )


def _look(name: str, context: dict[str, Any]) -> str:
    found: Any = context
    for part in name.split("."):
        assert re.fullmatch(r"[\w-]+", part), f"an expression that is not looked up: {name}"
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return "" if isinstance(found, dict) else str(found)
