"""Files and scripts are read in time that grows with their length."""

from __future__ import annotations

import time

from kvlint.formats import yaml
from kvlint.pipeline import check_files, evaluate, memory_project
from kvlint.source import Source

COMMENTS = "".join(f"# line {number} # with marks # {'#' * (number % 7)} in it\n" for number in range(400))


def test_a_long_comment_with_marks_in_it() -> None:
    text = COMMENTS + "services:\n  a: {image: vllm/vllm-openai}\n"
    start = time.process_time()
    documents = list(yaml.documents(Source("compose.yaml", text), templated=False))
    assert time.process_time() - start < 1
    assert [document.problem for document in documents] == [None]


def test_a_stream_of_nothing_but_comments_is_empty() -> None:
    assert check_files({"a.yaml": "---\n" + COMMENTS + "# vllm"}).not_understood == []
    assert check_files({"a.yaml": "# vllm # x\n...\n"}).not_understood == []


def servers(files: dict[str, str]) -> set[object]:
    return {getattr(group.first.settings["model"], "value", None) for group in evaluate(memory_project(files)).groups}


def test_scripts_that_call_each_other_and_start_nothing_are_not_walked() -> None:
    body = "".join(f"./s{number}.sh $1 {number}\n" for number in range(30)) + "echo done\n" * 300
    files = {f"s{number}.sh": "#!/bin/sh\n" + body for number in range(30)}
    start = time.process_time()
    assert servers({**files, "run.sh": "#!/bin/sh\n./s0.sh\nvllm serve org/model\n"}) == {"org/model"}
    assert time.process_time() - start < 5  # each of 30 calls of each of 30 scripts, four deep, would be 810,000 walks


def test_the_caller_may_bring_the_engine() -> None:
    assert servers({"wrap.sh": '#!/bin/sh\nexec "$@"\n', "run.sh": "#!/bin/sh\n./wrap.sh vllm serve org/model\n"}) == {
        "org/model"
    }


def test_the_way_to_the_engine_may_be_long_and_lead_in_circles() -> None:
    files = {
        "a.sh": "#!/bin/sh\n./b.sh org/model\n",
        "b.sh": '#!/bin/sh\n[ -z "$1" ] && ./a.sh\n./c.sh "$1"\n',
        "c.sh": '#!/bin/sh\nvllm serve "$1"\n',
    }
    assert "org/model" in servers(files)


def test_a_mode_among_several_starts_the_engine() -> None:
    cases = 'case "$1" in\n  build) make;;\n  test) make check;;\n  serve) exec vllm serve "$2";;\nesac\n'
    calls = "".join(f"./do.sh {mode} org/model\n" for mode in ("build", "test", "lint", "pack", "serve"))
    assert "org/model" in servers({"do.sh": "#!/bin/sh\n" + cases, "all.sh": "#!/bin/sh\n" + calls})


def test_a_script_that_is_called_beyond_measure_is_said_so() -> None:
    long = '#!/bin/sh\nvllm serve "$1"\n' + "# padding\n" * 20_000
    calls = "".join(f"./serve.sh org/model-{number}\n" for number in range(40))
    report = check_files({"serve.sh": long, "all.sh": "#!/bin/sh\n" + calls})
    assert [each.path for each in report.not_understood] == ["serve.sh"]


def test_a_script_with_many_callers_still_starts_its_engine_for_each() -> None:
    files = {f"models/m{number}.sh": f"#!/bin/sh\n../serve.sh org/model-{number}\n" for number in range(20)}
    files["serve.sh"] = '#!/bin/sh\nexec vllm serve "$1" --max-model-len 4096\n'
    assert servers(files) == {f"org/model-{number}" for number in range(20)}


SCHEMA = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servers.example.org}
spec:
  versions:
    - schema:
        openAPIV3Schema:
          properties:
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: b, image: 'vllm/vllm-openai:v0.11.0', args: [--model, org/model]}]}
"""


def test_the_schema_of_a_resource_configures_nothing() -> None:
    field = "            field{0}: {{type: string, description: 'vllm serve --max-model-len {0}'}}\n"
    schema = SCHEMA + "".join(field.format(number) for number in range(20_000))
    start = time.process_time()
    assert servers({"crds.yaml": schema + POD}) == {"org/model"}
    assert time.process_time() - start < 1  # reading its 80,000 values takes several
