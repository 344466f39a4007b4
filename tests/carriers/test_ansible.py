"""Ansible: tasks that run a command or a container, and files and objects that a task writes."""

from __future__ import annotations

import time

from found import argument, env, findings, line, lines, only, processes

from kvlint.pipeline import check_files

PLAY = """\
- name: Serve
  hosts: gpu
  environment: {HF_HOME: /hf}
  vars:
    model: org/m
    port: 8001
  tasks:
    - name: Start it
      ansible.builtin.shell: |
        nohup vllm serve {{ model }} --port {{ port }} --seed {{ seed | default(7) }} {{ extra }} > log 2>&1 &
      environment:
        CUDA_VISIBLE_DEVICES: "0"
      args: {chdir: /srv}
    - block:
        - command:
            argv: [llama-server, -m, a.gguf, -c, "4096"]
      when: llama
  handlers:
    - name: again
      command: vllm serve "{{ model }}" --max-model-len=4096
"""


def test_commands_of_a_play() -> None:
    found = processes({"site.yml": PLAY})
    assert {identity: line(process) for identity, process in found.items()} == {
        "site.yml#site": "vllm serve org/m --port 8001 --seed 7 ?",
        "site.yml#site~2": "llama-server -m a.gguf -c 4096",
        "site.yml#site~3": "vllm serve org/m --max-model-len=4096",
    }
    first = found["site.yml#site"]
    assert env(first) == {"HF_HOME": "/hf", "CUDA_VISIBLE_DEVICES": "0"}
    port = argument(first, "--port")
    assert (port.span.text, port.span.line, [use.text for use in port.via]) == ("8001", 6, ["{{ port }}"])
    assert [opening.span.text for opening in first.line.open] == ["{{ extra }}"]
    assert [each.name for each in first.line.assumed] == ["seed"]


TASKS = """\
- name: vLLM
  community.docker.docker_container:
    name: qwen
    image: "{{ vllm_image }}:{{ vllm_version }}"
    command:
      - --model={{ vllm_model }}
      - --max-model-len={{ vllm_window }}
      - --port={{ item.port }}
    env:
      HF_HOME: /hf
      N: "{{ n }}"
    published_ports: ["9000:8000"]
    shm_size: 8g
    ipc_mode: host
    device_requests:
      - driver: nvidia
        device_ids: ["0", "1"]
        capabilities: [[gpu]]
- containers.podman.podman_container:
    name: other
    image: vllm/vllm-openai:v0.11.0
    command: --model m --seed 1
    state: absent
- docker_container:
    image: vllm/vllm-openai:v0.11.0
    command: --model m --seed 2
"""
DEFAULTS = "vllm_image: vllm/vllm-openai\nvllm_version: v0.11.0\nvllm_model: Qwen/Qwen3-8B\nvllm_window: 65536\n"


def test_containers_of_a_role() -> None:
    files = {"roles/vllm/tasks/main.yml": TASKS, "roles/vllm/defaults/main.yml": DEFAULTS}
    found = processes(files)
    assert {identity: line(process) for identity, process in found.items()} == {
        "roles/vllm/tasks/main.yml#qwen": (
            "[vllm/vllm-openai:v0.11.0] --model=Qwen/Qwen3-8B --max-model-len=65536 --port=?"
        ),
        "roles/vllm/tasks/main.yml#vllm": "[vllm/vllm-openai:v0.11.0] --model m --seed 2",
    }
    first = found["roles/vllm/tasks/main.yml#qwen"]
    window = next(word for word in first.line.args if word.value.startswith("--max-model-len")).slice(16)
    assert (window.span.path, window.span.text) == ("roles/vllm/defaults/main.yml", "65536")
    assert env(first) == {"HF_HOME": "/hf", "N": "?"}
    assert [each.value for each in first.site.device_ids] == ["0", "1"]
    assert first.site.host_ipc
    assert first.site.published[9000].value == 8000
    # A default of a role is there to be replaced: 65,536 against the model's 40,960 positions is at most a warning.
    rules = {each.rule: each.severity for each in check_files(files).findings}
    assert rules["window-beyond-model"] == "warning"


def test_files_and_objects_that_a_task_writes() -> None:
    text = """\
- copy:
    dest: /etc/systemd/system/vllm.service
    content: |
      [Service]
      ExecStart=/usr/bin/vllm serve org/m --port 8001
- kubernetes.core.k8s:
    state: present
    definition:
      apiVersion: v1
      kind: Pod
      metadata: {name: qwen}
      spec:
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.11.0
            args: [--model=org/m]
"""
    found = processes({"roles/llm/tasks/main.yml": text})
    assert {identity: line(process) for identity, process in found.items()} == {
        "roles/llm/tasks/main.yml#vllm": "/usr/bin/vllm serve org/m --port 8001",
        "roles/llm/tasks/main.yml#qwen/vllm": "[vllm/vllm-openai:v0.11.0] --model=org/m",
    }
    assert argument(found["roles/llm/tasks/main.yml#vllm"], "--port").span.line == 5


def test_what_is_no_task() -> None:
    assert lines({"a.yml": "- name: x\n  command: vllm serve m\n  image: y\n"}) == {}
    assert lines({"a.yml": "- run: vllm serve m\n- [vllm]\n- vllm\n"}) == {}
    assert lines({"a.yml": "- hosts: all\n  tasks:\n    - name: x\n      apt: {name: vllm}\n"}) == {}


def test_a_script_of_the_repository() -> None:
    files = {
        "run.sh": '#!/bin/sh\nexec vllm serve "$1"\n',
        "p.yml": "- hosts: a\n  tasks:\n    - shell: ./run.sh m # vllm\n",
    }
    assert only(files)[0] == "p.yml#p"


def test_hostile() -> None:
    start = time.process_time()
    nested = "- hosts: a # vllm\n  tasks:\n" + "".join(f"{'  ' * n}- block:\n" for n in range(2, 90))
    grown = "".join(f"    a{n}: '{' '.join(['{{ a' + str(n - 1) + ' }}'] * 20)}'\n" for n in range(1, 30))
    for text in (
        nested + "  " * 91 + "- shell: vllm serve m\n",
        "- hosts: a\n  vars:\n    a0: vllm\n" + grown + "  tasks:\n    - shell: 'vllm serve {{ a29 }}'\n",
        "- hosts: a\n  vars: &v\n    a: vllm\n  tasks: &t\n    - shell: vllm\n    - block: *t\n",
        "- hosts: a\n  vars: 3\n  environment: vllm\n  tasks: {}\n- hosts: b\n  tasks: [[vllm]]\n",
        "- docker_container: [vllm]\n- docker_container: {image: 3, command: {vllm: 1}, env: [], device_requests: 4}\n",
    ):
        findings({"site.yml": text})
    assert time.process_time() - start < 20
