"""SGLang's router counts all its requests together, in front of workers that it calls by their addresses."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files
from tests.carriers.found import findings

WORKER = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-running-requests 16"
ROUTER = "python3 -m sglang_router.launch_router"


def limits(files: dict[str, str]) -> list[tuple[str, str, str]]:
    rule = "width-below-admission"
    return [(each.rule, each.severity, each.text) for each in check_files(files).findings if each.rule == rule]


@pytest.mark.parametrize(("limit", "found"), [(32, 0), (33, 1), (-1, 0)])
def test_two_workers_share_a_limit(limit: int, found: int) -> None:
    script = (
        f"#!/bin/bash\n{WORKER} --port 30001 &\n{WORKER} --port 30002 &\n{ROUTER} --host 0.0.0.0 --port 30000 "
        f"--worker-urls http://localhost:30001 http://localhost:30002 --max-concurrent-requests {limit}\n"
    )
    assert limits({"run.sh": script}) == [("width-below-admission", "warning", str(limit))] * 2 * found


COMPOSE = """\
services:
  worker:
    image: lmsysorg/sglang:v0.5.5
    command: WORKER --port 30000
  router:
    image: lmsysorg/sglang:v0.5.5
    command: ROUTER --worker-urls=http://worker:30000 --max-concurrent-requests=64
"""


def test_a_service_of_a_compose_project() -> None:
    text = COMPOSE.replace("WORKER", WORKER).replace("ROUTER", ROUTER)
    assert limits({"compose.yaml": text}) == [("width-below-admission", "warning", "64")]
    (router,) = findings({"compose.yaml": text}).admissions
    assert (router.id, router.per, router.excess) == ("compose.yaml#sglang-router:router", "router", "reject")


def test_only_the_workers_that_decode_set_the_width() -> None:
    text = COMPOSE.replace(
        "--worker-urls=http://worker:30000", "--pd-disaggregation --prefill http://p:30000 --decode http://worker:30000"
    )
    found = findings({"compose.yaml": text.replace("WORKER", WORKER).replace("ROUTER", ROUTER)}).admissions
    assert [each.target.host for each in found] == ["worker"]  # type: ignore[union-attr]
