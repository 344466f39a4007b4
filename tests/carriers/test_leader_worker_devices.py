"""The devices of a whole leader-worker group against tensor × pipeline parallelism."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

SET = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llama}
spec:
  leaderWorkerTemplate:
    size: SIZE
    leaderTemplate:
      spec:
        containers:
          - name: leader
            image: vllm/vllm-openai:v0.19.1
            env: [{name: ENV, value: "x"}]
            command: [sh, -c, "bash /vllm-workspace/multi-node-serving.sh leader --ray_cluster_size=$(LWS_GROUP_SIZE);
              python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B ARGUMENTS"]
            resources: {limits: {nvidia.com/gpu: "LEADER"}}
    workerTemplate:
      spec:
        containers:
          - name: worker
            image: vllm/vllm-openai:v0.19.1
            command: [sh, -c, "bash /vllm-workspace/multi-node-serving.sh worker --ray_address=$(LWS_LEADER_ADDRESS)"]
            resources: {limits: {nvidia.com/gpu: "WORKER"}}
"""


def told(arguments: str, size: str = "2", leader: str = "8", worker: str = "8", env: str = "HF_HOME") -> list[str]:
    text = SET.replace("size: SIZE", f"size: {size}").replace("ARGUMENTS", arguments).replace("ENV", env)
    text = text.replace('"LEADER"', f'"{leader}"').replace('"WORKER"', f'"{worker}"')
    report = check_files({"lws.yaml": text})
    assert report.internal == []
    return [f"{each.severity}: {each.message}" for each in report.findings if each.rule == "devices-unlike-parallelism"]


@pytest.mark.parametrize(
    ("arguments", "size", "leader", "worker", "needs", "has"),
    [
        ("--tensor-parallel-size 8 --pipeline-parallel-size 4", "2", "8", "8", 32, 16),
        ("--tensor-parallel-size 8 --pipeline-parallel-size $(LWS_GROUP_SIZE)", "2", "4", "8", 16, 12),
        ("--tensor-parallel-size 16", "3", "4", "4", 16, 12),
        ("--tensor-parallel-size 16 --distributed-executor-backend ray", "1", "8", "8", 16, 8),
        ("--tensor-parallel-size 32 --nnodes 2 --data-parallel-size 4 --data-parallel-rank 1", "2", "8", "8", 32, 16),
    ],
)
def test_more_than_the_whole_group_has(
    arguments: str, size: str, leader: str, worker: str, needs: int, has: int
) -> None:
    (message,) = told(arguments, size, leader, worker)
    assert message.startswith(f"error: tensor × pipeline parallelism needs {needs} devices, but the ")
    assert message.endswith(f" of a group have {has} together")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ("--tensor-parallel-size 8 --pipeline-parallel-size 2", {}),
        ("--tensor-parallel-size 8", {}),  # a second model may use the rest
        ("--tensor-parallel-size 8 --data-parallel-size 8", {}),  # ranks may live in other groups
        ("--tensor-parallel-size 32", {"size": '"{{ .Values.size }}"'}),
        ("--tensor-parallel-size 32", {"env": "RAY_ADDRESS"}),  # a cluster outside
        ("--tensor-parallel-size 32 --nnodes 4", {}),  # more nodes than the group has pods
        ("--tensor-parallel-size $TP", {}),
    ],
)
def test_what_may_be_enough_is_left_alone(arguments: str, options: dict[str, str]) -> None:
    assert told(arguments, **options) == []
