"""Kustomize: a base is judged as its overlays render it."""

from __future__ import annotations

import pytest
from carried import found, process, processes, value, words

from kvlint.facts import Unknown

BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model, Qwen/Qwen3-8B, --max-model-len=$(MAX_MODEL_LEN)]
          envFrom: [{configMapRef: {name: runtime}}]
        - name: sidecar
          image: busybox
"""
TREE = {
    "base/deployment.yaml": BASE,
    "base/kustomization.yaml": "resources: [deployment.yaml]\n",
}


def overlay(text: str, **files: str) -> dict[str, str]:
    made = {"overlays/prod/kustomization.yaml": "resources: [../../base]\n" + text}
    return {**TREE, **made, **{f"overlays/prod/{name.replace('_', '.')}": body for name, body in files.items()}}


def test_the_base_is_read_only_through_its_overlay() -> None:
    files = overlay(
        "namespace: ai\nconfigMapGenerator: [{name: runtime, envs: [runtime.env]}]\nimages:\n"
        "  - {name: vllm/vllm-openai, newTag: v0.12.0}\npatches:\n  - path: gpus.yaml\n",
        runtime_env="MAX_MODEL_LEN=32768\n",
        gpus_yaml="""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
      containers:
        - name: vllm
          resources: {limits: {nvidia.com/gpu: "4"}}
""",
    )
    read = processes(files)
    assert list(read) == ["base/deployment.yaml@overlays/prod#llm/vllm"]
    (only,) = read.values()
    window = only.line.args[2]
    assert window.value == "--max-model-len=32768"
    assert {piece.span.path for piece in window.pieces} == {"base/deployment.yaml", "overlays/prod/runtime.env"}
    assert only.line.image is not None
    assert only.line.image.value == "vllm/vllm-openai:v0.12.0"
    assert value(only.site.gpus) == 4
    assert only.site.unit == "namespace ai"
    assert [each.text.value for each in only.site.product] == ["nvidia-h100-80gb"]


def test_two_overlays_are_two_servers() -> None:
    files = overlay("namespace: a\n") | {"overlays/test/kustomization.yaml": "resources: [../../base]\nnamespace: b\n"}
    assert set(processes(files)) == {
        "base/deployment.yaml@overlays/prod#llm/vllm",
        "base/deployment.yaml@overlays/test#llm/vllm",
    }


def test_json_patches_of_arguments_in_place() -> None:
    files = overlay(
        """\
patches:
  - target: {kind: Deployment, name: ll.}
    patch: |-
      - op: add
        path: /spec/template/spec/containers/0/args/-
        value: --max-num-seqs=8
      - {op: replace, path: /spec/template/spec/containers/0/args/1, value: Qwen/Qwen3-32B}
"""
    )
    (only,) = processes(files).values()
    assert words(only)[0] == "--model"
    assert words(only)[1] == "Qwen/Qwen3-32B"
    added = only.line.args[-1]
    assert added.value == "--max-num-seqs=8"
    assert added.span.text == "--max-num-seqs=8"
    assert added.span.path == "overlays/prod/kustomization.yaml"


@pytest.mark.parametrize(
    "patch",
    [
        "  - target: {kind: Deployment}\n    patch: '[{op: add, path: /spec/nowhere/args/-, value: x}]'\n",
        "  - target: {kind: Deployment}\n    patch: '[{op: copy, from: /a, path: /spec/template/spec/containers/0/args/1}]'\n",
    ],
)
def test_a_patch_that_is_not_followed_leaves_the_arguments_open(patch: str) -> None:
    (only,) = processes(overlay("patches:\n" + patch)).values()
    assert only.line.open


def test_replacements_leave_the_arguments_open() -> None:
    (only,) = processes(overlay("replacements: [{path: r.yaml}]\n")).values()
    assert only.line.open


def test_a_strategic_patch_deletes_and_replaces() -> None:
    files = overlay(
        "patchesStrategicMerge:\n  - |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: llm}\n"
        "    spec: {template: {spec: {containers: [{name: sidecar, $patch: delete},"
        " {name: vllm, args: [--model, other], envFrom: null}]}}}\n"
    )
    (only,) = processes(files).values()
    assert words(only) == ["--model", "other"]


def test_a_component_changes_what_its_parent_collects() -> None:
    files = overlay("components: [../../parts]\n") | {
        "parts/kustomization.yaml": "kind: Component\nreplicas: [{name: llm, count: 3}]\n"
        "images: [{name: vllm/vllm-openai, newName: mirror.example/vllm-openai}]\n"
    }
    (only,) = processes(files).values()
    assert only.line.image is not None
    assert only.line.image.value == "mirror.example/vllm-openai:v0.11.0"


def test_a_kustomization_that_only_collects_changes_nothing() -> None:
    files = {"a/deployment.yaml": BASE, "a/kustomization.yaml": "resources: [deployment.yaml]\n"}
    assert list(processes(files)) == ["a/deployment.yaml#llm/vllm"]


def test_a_change_in_the_same_directory_keeps_the_name() -> None:
    files = {"a/deployment.yaml": BASE, "a/kustomization.yaml": "resources: [deployment.yaml]\nnamespace: ai\n"}
    read = processes(files)
    assert list(read) == ["a/deployment.yaml#llm/vllm"]
    assert next(iter(read.values())).site.unit == "namespace ai"


def test_hostile_trees_end() -> None:
    files = {
        "a/kustomization.yaml": "resources: [../b, ../../../etc]\nnamespace: x\n",
        "b/kustomization.yaml": "resources: [../a, d.yaml, 'https://example.org/x']\npatches: [{path: ../../../x}]\n",
        "b/d.yaml": BASE,
        "c/kustomization.yaml": "resources: [../b]\npatches: [{target: {name: '(a+)+$'}, patch: '['}]\n",
    }
    assert processes(files)


def test_a_limit_beside_two_overlays_is_one() -> None:
    limit = "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata: {name: m}\nspec: {inFlightReq: {amount: 4}}\n"
    files = overlay("namespace: a\n") | {
        "overlays/test/kustomization.yaml": "resources: [../../base]\nnamespace: b\n",
        "mesh/limit.yaml": limit,
    }
    read = found(files)
    assert [each.id for each in read.admissions] == ["mesh/limit.yaml#traefik:m"]
    assert len(read.processes) == 2


PATCH = """apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      containers:
        - {name: m, image: vllm/vllm-openai:v0.11.0, args: [--model=a/b, --tensor-parallel-size=2]}
"""
BARE = """apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  template:
    spec:
      containers:
        - {name: m, image: set-by-overlay, volumeMounts: [{name: s, mountPath: /dev/shm}]}
      volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 8Gi}}]
"""


def test_a_patch_of_what_is_not_in_view_says_a_part_only() -> None:
    """The object stands in another repository: what it mounts and what it sets besides is not known."""
    remote = "resources: [https://example.org/base]\npatches: [{path: patch.yaml}]\n"
    only = process({"o/kustomization.yaml": remote, "o/patch.yaml": PATCH})
    assert isinstance(only.site.shared_memory, Unknown)
    assert only.line.env_open
    plain = process({"o/patch.yaml": PATCH})
    assert (plain.site.shared_memory, plain.line.env_open) == (None, ())


def test_a_patch_of_an_object_that_names_no_engine() -> None:
    files = {"base/d.yaml": BARE, "base/kustomization.yaml": "resources: [d.yaml]\n"}
    for name in ("one", "two"):
        files[f"{name}/kustomization.yaml"] = "resources: [../base]\npatches: [{path: patch.yaml}]\n"
        files[f"{name}/patch.yaml"] = PATCH.replace("a/b", f"a/{name}")
    found = processes(files)
    assert sorted(found) == ["base/d.yaml@one#llm/m", "base/d.yaml@two#llm/m"]
    assert [value(each.site.shared_memory) for each in found.values()] == [8 * 2**30] * 2


DELETE = "$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: llm}\n"


def test_a_patch_deletes_an_object() -> None:
    inline = "patches:\n  - patch: |-\n" + "".join(f"      {line}\n" for line in DELETE.splitlines())
    assert processes(overlay(inline)) == {}
    assert processes(overlay("patches: [{path: gone.yaml}]\n", gone_yaml=DELETE)) == {}
    assert len(processes(overlay("patches: [{path: gone.yaml}]\n", gone_yaml=DELETE.replace("llm", "other")))) == 1


def test_a_patch_deletes_a_map_inside() -> None:
    patch = BASE.partition("    spec:")[0] + "    spec:\n      nodeSelector: {$patch: delete}\n"
    base = BASE.replace(
        "      containers:", "      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}\n      containers:"
    )
    files = overlay("patches: [{path: patch.yaml}]\n", patch_yaml=patch)
    (made,) = processes({**files, "base/deployment.yaml": base}).values()
    assert made.site.product == ()


SWAP = "models:\n  code: {concurrencyLimit: 4, cmd: 'llama-server --port ${PORT} -m /m/a.gguf -np 4'}\n"
GENERATED = {
    "base/kustomization.yaml": "resources: [pod.yaml]\nconfigMapGenerator: [{name: swap, files: [config.yaml]}]\n",
    "base/config.yaml": SWAP,
    "base/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: swap}\nspec:\n  containers: [{name: a, image: llama-swap}]\n"
    "  volumes: [{name: c, configMap: {name: swap}}]\n",
}


def test_a_generated_file_keeps_its_name() -> None:
    read = found(GENERATED)
    assert [name for name, _ in read.processes] == ["base/config.yaml#code"]
    assert [each.id for each in read.admissions] == ["base/config.yaml#llama-swap:code"]


def test_a_generated_file_is_one_of_each_overlay() -> None:
    overlays = {f"{name}/kustomization.yaml": f"resources: [../base]\nnamespace: {name}\n" for name in ("one", "two")}
    read = found({**GENERATED, **overlays})
    assert [name for name, _ in read.processes] == ["base/config.yaml@one#code", "base/config.yaml@two#code"]
    assert [each.id for each in read.admissions] == [
        "base/config.yaml@one#llama-swap:code",
        "base/config.yaml@two#llama-swap:code",
    ]
    assert [each.unit for each in read.admissions] == ["namespace one", "namespace two"]
