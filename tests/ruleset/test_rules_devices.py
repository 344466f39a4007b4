"""Servers on one device: who provably runs together, and what they take."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files


def said(rule: str, files: dict[str, str], config: str | None = None) -> list[str]:
    report = check_files(files, config)
    assert report.internal == []
    return [each.severity for each in report.findings if each.rule == rule]


def service(name: str, args: str, device: str = 'device_ids: ["0"]', extra: str = "") -> str:
    return (
        f"  {name}:\n    image: vllm/vllm-openai:v0.22.1\n    command: Qwen/Qwen3-8B {args}\n{extra}"
        f"    deploy: {{resources: {{reservations: {{devices: [{{{device}, capabilities: [gpu]}}]}}}}}}\n"
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (service("a", ""), service("b", ""), ["error"]),  # twice the default of 0.92
        (service("a", "--gpu-memory-utilization 0.5"), service("b", "--gpu-memory-utilization 0.5"), []),
        (service("a", ""), service("b", "", 'device_ids: ["1"]'), []),
        (service("a", ""), service("b", "", "count: 1"), []),
        (service("a", ""), service("b", "", 'device_ids: ["$DEVICE"]'), []),
        (service("a", ""), service("b", "", extra="    profiles: [extra]\n"), ["warning"]),
        (service("a", ""), service("b", "--kv-cache-memory-bytes 1G"), []),
        (service("a", ""), service("b", "--enable-sleep-mode"), []),
    ],
)
def test_shares_on_one_device_add_up(one: str, other: str, expected: list[str]) -> None:
    assert said("shared-device-overcommit", {"compose.yaml": "services:\n" + one + other}) == expected


SWAP = """\
models:
  a: {{cmd: "vllm serve Qwen/Qwen3-8B --port ${{PORT}}", env: [CUDA_VISIBLE_DEVICES={one}]}}
  b: {{cmd: "vllm serve Qwen/Qwen3-4B --port ${{PORT}}", env: [CUDA_VISIBLE_DEVICES={other}]}}
groups:
  all: {{swap: {swap}, members: [a, b]}}
"""


@pytest.mark.parametrize(
    ("one", "other", "swap", "expected"),
    [("0", "0", "false", ["error"]), ("0", "1", "false", []), ("0", "0", "true", []), ("0,1", "1", "false", [])],
)
def test_a_group_without_swapping_stays_resident(one: str, other: str, swap: str, expected: list[str]) -> None:
    """`0,1` at tensor parallelism 1 uses the first alone."""
    assert said("shared-device-overcommit", {"swap.yaml": SWAP.format(one=one, other=other, swap=swap)}) == expected


def test_pods_are_placed_by_a_scheduler() -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {0}}}\nspec:\n  containers:\n    - name: vllm\n"
        "      image: vllm/vllm-openai:v0.22.1\n      args: [Qwen/Qwen3-8B]\n"
        "      env: [{{name: NVIDIA_VISIBLE_DEVICES, value: '0'}}]\n"
    )
    assert said("shared-device-overcommit", {"pods.yaml": pod.format("a") + "---\n" + pod.format("b")}) == []


# Two roles of one custom resource: their pods go by one name, and the scheduler gives each its devices.
ROLES = "apiVersion: example.com/v1\nkind: Roles\nmetadata: {name: pair}\nspec:\n  roles:\n" + "".join(
    f"    {role}:\n      resources: {{limits: {{gpu: '1'}}}}\n      podSpec:\n        mainContainer:\n"
    "          image: vllm/vllm-openai:v0.22.1\n          args: [--model=Qwen/Qwen3-8B]\n"
    "          env: [{name: CUDA_VISIBLE_DEVICES, value: '0'}]\n"
    for role in ("reader", "writer")
)
SPACES = "---\n".join(
    f"apiVersion: v1\nkind: Pod\nmetadata: {{name: qwen, namespace: {space}}}\nspec:\n  containers:\n    - name: vllm\n"
    "      image: vllm/vllm-openai:v0.22.1\n      args: [--model=Qwen/Qwen3-8B]\n"
    "      env: [{name: CUDA_VISIBLE_DEVICES, value: '0'}]\n"
    for space in ("one", "two")
)


@pytest.mark.parametrize("text", [ROLES, SPACES])
def test_pods_of_one_name_are_not_one_pod(text: str) -> None:
    for rule in ("shared-device-overcommit", "duplicate-weights"):
        assert said(rule, {"pods.yaml": text}) == []


def test_the_containers_of_one_pod_are_on_its_node() -> None:
    one = (
        "    - name: {0}\n      image: vllm/vllm-openai:v0.22.1\n      args: [--model=Qwen/Qwen3-8B, --port={1}]\n"
        "      env: [{{name: CUDA_VISIBLE_DEVICES, value: '0'}}]\n"
    )
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: pair}\nspec:\n  containers:\n"
    text = pod + one.format("a", 8000) + one.format("b", 8001)
    assert said("shared-device-overcommit", {"pods.yaml": text}) == ["error"]


def replica(name: str, args: str, tag: str = "v0.22.1") -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: qwen}}}}\nspec:\n  containers:\n"
        f"    - name: vllm\n      image: vllm/vllm-openai:{tag}\n      args: [--model=Qwen/Qwen3-8B{args}]\n---\n"
    )


SERVICE = (
    "apiVersion: v1\nkind: Service\nmetadata: {name: qwen}\nspec: {selector: {app: qwen}, ports: [{port: 8000}]}\n"
)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (replica("a", ""), replica("b", ""), []),
        (replica("a", ""), replica("b", ", --kv-cache-dtype=fp8"), ["warning"]),
        (replica("a", ""), replica("b", ", --kv-cache-dtype=auto"), []),
        (replica("a", ", --revision=abc"), replica("b", ", --revision=abd"), ["warning"]),
        (replica("a", ""), replica("b", "", "v0.24.0"), ["warning"]),
        (replica("a", ""), replica("b", "", "latest"), []),
        (replica("a", ", --max-num-seqs=4"), replica("b", ", --max-num-seqs=8"), []),
    ],
)
def test_servers_behind_a_service_are_the_same(one: str, other: str, expected: list[str]) -> None:
    assert said("replica-identity", {"pods.yaml": one + other + SERVICE}) == expected


def test_files_that_hold_one_object_are_alternatives() -> None:
    """Two files with a Deployment of one name: whichever is applied last is the one that runs.  Overlays of one base likewise."""
    one, other = replica("a", ""), replica("a", ", --kv-cache-dtype=fp8")
    assert said("replica-identity", {"a.yaml": one + SERVICE, "b.yaml": other + SERVICE}) == []
    compose = "services:\n  chat:\n    image: vllm/vllm-openai:v0.22.1\n    command: [a/b, --kv-cache-dtype, {}]\n"
    assert said("replica-identity", {f"compose-{kv}.yaml": compose.format(kv) for kv in ("auto", "fp8")}) == []
    overlays = {"base/d.yaml": one + SERVICE, "base/kustomization.yaml": "resources: [d.yaml]\n"}
    for name, kv in (("dev", "auto"), ("prod", "fp8")):
        patch = f"[{{op: add, path: /spec/containers/0/args/-, value: --kv-cache-dtype={kv}}}]"
        overlays[f"{name}/kustomization.yaml"] = (
            f"resources: [../base]\npatches: [{{target: {{kind: Pod}}, patch: '{patch}'}}]\n"
        )
    assert said("replica-identity", overlays) == []
