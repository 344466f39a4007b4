"""Task runners: go-task, npm, mise, pixi, and the tables of pyproject.toml."""

from __future__ import annotations

import json
import time

from found import argument, env, findings, line, lines, only, processes

from kvlint.pipeline import check_files

TASKFILE = """\
version: '3'
env:
  HF_HOME: /hf
vars:
  MODEL: org/m
  WINDOW: 4096
  FOLDER: '{{.MODEL}}-x'
  GIT: {sh: git rev-parse HEAD}
tasks:
  serve:
    desc: Serve it
    vars: {SEED: 1}
    env: {CUDA_VISIBLE_DEVICES: "0"}
    cmds:
      - echo vllm
      - cmd: |
          vllm serve {{.MODEL}} \\
            --max-model-len {{ .WINDOW }} --seed {{.SEED}} \\
            --served-model-name {{.FOLDER}} {{.GIT}}
        silent: true
  short: llama-server -m a.gguf -c {{.WINDOW}} {{.CLI_ARGS}}
  list:
    - 'vllm serve {{.NONE}} --port {{if .X}}1{{else}}2{{end}}'
  one: {cmd: 'vllm serve {{.MODEL}}'}
  call:
    - task: one
      vars: {MODEL: org/other}
  default:
    vars:
      PORT: '{{.PORT | default "8001"}}'
    cmds: ['vllm serve m --port {{.PORT}} --seed {{.SEED | default `7`}}']
"""


def test_a_taskfile() -> None:
    found = processes({"Taskfile.yml": TASKFILE})
    assert {identity: line(process) for identity, process in found.items()} == {
        "Taskfile.yml#serve": "vllm serve org/m --max-model-len 4096 --seed 1 --served-model-name org/m-x ?",
        "Taskfile.yml#short": "llama-server -m a.gguf -c 4096 ?",
        "Taskfile.yml#list": "vllm serve ? --port ?",
        "Taskfile.yml#one": "vllm serve ?",
        "Taskfile.yml#default": "vllm serve m --port 8001 --seed 7",
    }
    serve = found["Taskfile.yml#serve"]
    assert env(serve) == {"HF_HOME": "/hf", "CUDA_VISIBLE_DEVICES": "0"}
    window = argument(serve, "--max-model-len")
    assert (window.span.text, window.span.line, [use.text for use in window.via]) == ("4096", 6, ["{{ .WINDOW }}"])
    assert [opening.span.text for opening in serve.line.open] == ["{{.GIT}}"]
    assert [opening.span.text for opening in found["Taskfile.yml#short"].line.open] == ["{{.CLI_ARGS}}"]
    default = found["Taskfile.yml#default"]
    assert [(each.name, each.default.text) for each in default.line.assumed] == [("PORT", "8001"), ("SEED", "7")]


def test_a_taskfile_of_another_name_and_its_variables_file() -> None:
    files = {
        "tasks/llm.yml": "version: '3'\ndotenv: ['../.env']\ntasks:\n  a:\n    cmds: [vllm serve $MODEL --port $PORT]\n",
        ".env": "MODEL=org/m\n",
        "other.yml": "tasks:\n  - shell: x vllm\n",
    }
    name, process = only(files)
    assert (name, line(process)) == ("tasks/llm.yml#a", "vllm serve org/m --port ?")


def test_a_task_that_runs_a_script_of_the_repository() -> None:
    script = {"bin/serve.sh": '#!/bin/sh\nexec vllm serve "$1" --port 1\n'}
    for name, text in {
        "Taskfile.yaml": "version: '3'\ntasks:\n  a: ./bin/serve.sh m\n",
        "package.json": '{"scripts": {"a": "bin/serve.sh m"}}',
        "mise.toml": '[tasks]\na = "./bin/serve.sh m"\n',
    }.items():
        assert lines({**script, name: text}) == {f"{name}#a": "vllm serve m --port 1"}


def test_scripts_of_a_package() -> None:
    scripts = {
        "start": "next start",
        "llm": 'vllm serve org/m --max-model-len "4096" $ARGS',
        "dev": "concurrently -n llm,web \"llama-server -m a.gguf -c 4096\" 'next dev'",
    }
    found = processes({"package.json": json.dumps({"name": "vllm serve x", "scripts": scripts}, indent=2)})
    assert {identity: line(process) for identity, process in found.items()} == {
        "package.json#llm": "vllm serve org/m --max-model-len 4096 ?",
        "package.json#dev": "llama-server -m a.gguf -c 4096",
    }
    assert argument(found["package.json#llm"], "--max-model-len").span.text == "4096"
    assert argument(found["package.json#dev"], "-c").span.line == 6


MISE = """\
[env]
HF_HOME = "/hf"
N = 4
_.file = ".env"
[tasks]
plain = "vllm serve m --port $PORT"
[tasks.serve]
env = { CUDA_VISIBLE_DEVICES = "0" }
run = ["echo vllm", "vllm serve m --max-num-seqs $N --seed {{arg(name='seed')}}"]
[tasks.python]
run = '''
#!/usr/bin/env python
vllm serve m
'''
[tasks.shell]
run = '''
#!/usr/bin/env bash
W=4096
vllm serve m --max-model-len $W
'''
"""


def test_tasks_of_mise() -> None:
    for path in ("mise.toml", ".mise.toml", ".config/mise/config.toml", "mise.local.toml"):
        found = processes({path: MISE})
        assert {identity.partition("#")[2]: line(process) for identity, process in found.items()} == {
            "plain": "vllm serve m --port ?",
            "serve": "vllm serve m --max-num-seqs 4 --seed ?",
            "shell": "vllm serve m --max-model-len 4096",
        }
        assert env(found[f"{path}#serve"]) == {"HF_HOME": "/hf", "N": "4", "CUDA_VISIBLE_DEVICES": "0"}
        assert found[f"{path}#serve"].line.env_open


PIXI = """\
[tasks]
a = "vllm serve m --port 1"
b = { cmd = ["vllm", "serve", "m", "--port", "2"], env = { CUDA_VISIBLE_DEVICES = "0" } }
c = { cmd = "vllm serve {{ model }} --port 3", args = ["model"] }
d = { depends-on = ["a"] }
e = [{ task = "a" }]
[feature.gpu.tasks]
f = "vllm serve m --port 4"
[target.linux-64.tasks]
g = "vllm serve m --port 5"
"""


def test_tasks_of_pixi() -> None:
    wanted = {
        "a": "vllm serve m --port 1",
        "b": "vllm serve m --port 2",
        "c": "vllm serve ? --port 3",
        "f": "vllm serve m --port 4",
        "g": "vllm serve m --port 5",
    }
    assert lines({"pixi.toml": PIXI}) == {f"pixi.toml#{name}": text for name, text in wanted.items()}
    inner = PIXI.replace("[tasks]", "[tool.pixi.tasks]").replace("[f", "[tool.pixi.f").replace("[tar", "[tool.pixi.tar")
    assert lines({"pyproject.toml": inner}) == {f"pyproject.toml#{name}": text for name, text in wanted.items()}
    assert lines({"other.toml": PIXI}) == {}


PYPROJECT = """\
[tool.poe]
env = { HF_HOME = "/hf" }
[tool.poe.tasks]
a = "vllm serve m --port 1"
b = { cmd = \"\"\"
vllm serve m
  --port 2 # the line goes on
\"\"\", env = { N.default = "1", M = "2" } }
c = { shell = "cd x && vllm serve m --port 3" }
d = { script = "vllm.serve:main" }
e = ["a", "vllm"]
f.sequence = [{ cmd = "vllm serve m --port 4" }, "a"]
[tool.pdm.scripts]
g = "vllm serve m {args}"
h = { shell = "vllm serve m --port 5" }
i = { cmd = ["vllm", "serve", "m", "--port", "6"] }
[tool.hatch.envs.llm.scripts]
j = ["echo vllm", "vllm serve {args:m} --port 7 --hf-overrides '{\\"a\\": 1}'"]
[tool.taskipy.tasks]
k = { cmd = "vllm serve m --port 8" }
"""


def test_tasks_of_a_project() -> None:
    found = processes({"pyproject.toml": PYPROJECT})
    assert {identity.partition("#")[2]: line(process) for identity, process in found.items()} == {
        "a": "vllm serve m --port 1",
        "b": "vllm serve m --port 2",
        "c": "vllm serve m --port 3",
        "f": "vllm serve m --port 4",
        "g": "vllm serve m ?",
        "h": "vllm serve m --port 5",
        "i": "vllm serve m --port 6",
        "j": 'vllm serve ? --port 7 --hf-overrides {"a": 1}',
        "k": "vllm serve m --port 8",
    }
    assert env(found["pyproject.toml#b"]) == {"HF_HOME": "/hf", "N": "?", "M": "2"}


def test_a_comment_covers_the_command_below() -> None:
    text = (
        "version: '3'\ntasks:\n  a:\n    cmds:\n      # kvlint: ignore[window-beyond-model] so\n"
        "      - vllm serve Qwen/Qwen3-8B --max-model-len 65536\n"
    )
    assert "window-beyond-model" not in [each.rule for each in check_files({"Taskfile.yml": text}).findings]
    rules = [each.rule for each in check_files({"Taskfile.yml": text.replace("kvlint", "")}).findings]
    assert "window-beyond-model" in rules  # 65,536 against the model's 40,960 positions


def test_hostile() -> None:
    start = time.process_time()
    grown = "version: '3'\nvars:\n  A0: vllm\n" + "".join(
        f"  A{n}: '{' '.join(['{{.A' + str(n - 1) + '}}'] * 20)}'\n" for n in range(1, 40)
    )
    for name, text in {
        "Taskfile.yml": grown + "tasks:\n  a: '" + "{{.A39}} " * 2_000 + "vllm serve {{.A39}}'\n",
        "taskfile.yaml": "version: '3'\ntasks: &a\n  vllm: *a\n  b: {cmds: *a}\n",
        "Taskfile.dist.yml": "version: '3'\ntasks: [vllm]\nvars: vllm\nenv: 3\ndotenv: vllm\n",
        "package.json": '{"scripts": ["vllm"], "a": ' + "[" * 5_000 + "]" * 5_000 + "}",
        "mise.toml": "tasks = 3\nvllm = 1\nenv = []\n",
        ".mise.toml": "[tasks]\na = '" + "{{" * 100_000 + "vllm serve'\n",
        "pixi.toml": "[tasks]\n" + "".join(f"t{n} = 'vllm serve m {{{{ x }}}}'\n" for n in range(3_000)),
        "pyproject.toml": "[tool.poe.tasks]\na = { sequence = [" + "{ sequence = [" * 80 + "]}" * 80 + "] } # vllm\n",
    }.items():
        findings({name: text})
    assert time.process_time() - start < 20
