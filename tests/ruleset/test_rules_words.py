"""What the rules say of words and names, whatever the engine: variables, repeated flags, tags, packages."""

from __future__ import annotations

import pytest

from kvlint.pipeline import check_files

POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: qwen}}
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: {image}
          args: [{args}]
          env:
            - name: {name}
              value: "1"
"""


def found(rule: str, files: dict[str, str]) -> list[tuple[str, str]]:
    report = check_files(files)
    assert report.internal == []
    return [(each.severity, each.span.text) for each in report.findings if each.rule == rule]


def pod(
    tag: str, name: str = "HF_HOME", image: str = "vllm/vllm-openai", args: str = "--model=Qwen/Qwen3-8B"
) -> dict[str, str]:
    return {"pod.yaml": POD.format(image=f"{image}:{tag}" if tag else image, args=args, name=name)}


@pytest.mark.parametrize(
    ("tag", "name", "expected"),
    [
        ("v0.8.5", "VLLM_ENABLE_CUDA_COMPATIBILITY", "warning"),  # there since 0.19
        ("v0.8.5", "VLLM_PORT", None),  # the table of 0.8.5 is incomplete, and 0.12 has it
        ("v0.18.1", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", None),  # the table is that of 0.16
        ("v0.16.0", "VLLM_USE_V1", "warning"),  # gone
        ("v0.11.0", "VLLM_USE_V1", None),
        ("v0.22.1", "VLLM_LOGING_LEVEL", "warning"),
        ("v0.22.1", "VLLM_ARGS", None),  # names of wrappers
        ("v0.22.1", "VLLM_MODEL", None),
        ("v0.22.1", "VLLM_HOST", None),
    ],
)
def test_names_that_the_release_does_not_read(tag: str, name: str, expected: str | None) -> None:
    assert found("unknown-environment", pod(tag, name)) == ([(expected, name)] if expected else [])


def test_only_the_engines_own_image_is_asked() -> None:
    assert found("unknown-environment", pod("v0.22.1", "VLLM_LOGING_LEVEL", "registry.example.com/vllm")) == []
    assert found("unknown-environment", pod("v0.22.1", "VLLM_LOGING_LEVEL", "vllm/vllm-openai-rocm")) == []


@pytest.mark.parametrize(
    ("image", "tag", "floats"),
    [
        ("vllm/vllm-openai", "latest", True),
        ("vllm/vllm-openai", "", True),
        ("vllm/vllm-openai", "latest-cu129", True),
        ("vllm/vllm-openai", "v0.22.1", False),
        ("ghcr.io/ggml-org/llama.cpp", "server-cuda", True),
        ("ghcr.io/ggml-org/llama.cpp", "server-cuda-b11434", False),
    ],
)
def test_tags_that_move(image: str, tag: str, floats: bool) -> None:
    assert bool(found("unpinned-engine", pod(tag, image=image))) == floats


@pytest.mark.parametrize(
    ("tag", "args", "expected"),
    [
        ("latest", "--model=Qwen/Qwen3-8B, --swap-space=4", [("warning", "--swap-space=4")]),
        ("latest", "--model=Qwen/Qwen3-8B, --max-model-len=8192", []),
        ("v0.11.0", "--model=Qwen/Qwen3-8B, --swap-space=4", []),
        ("latest", "--model=Qwen/Qwen3-8B, --no-such-flag", []),  # no release ever took it
    ],
)
def test_what_the_next_start_refuses(tag: str, args: str, expected: list[tuple[str, str]]) -> None:
    assert found("breaks-when-updated", pod(tag, args=args)) == expected


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("swap.yaml", "models:\n  a:\n    cmd: mlx_lm.server --model $HOME/m --port ${PORT}\n", [("error", "$HOME")]),
        (
            "m.service",
            '[Service]\nEnvironment="HF_HOME=$HOME/hf"\nExecStart=/opt/vllm serve Qwen/Qwen3-8B\n',
            [("error", "$HOME")],
        ),
        ("m.service", "[Service]\nExecStart=/opt/vllm serve Qwen/Qwen3-8B --port ${PORT}\n", []),
        ("m.sh", "vllm serve Qwen/Qwen3-8B --port $PORT\n", []),
        (
            "compose.yaml",
            "services:\n  a:\n    image: vllm/vllm-openai:v0.22.1\n    command: [Qwen/Qwen3-8B, --api-key, $$KEY]\n",
            [("warning", "$$KEY")],
        ),
    ],
)
def test_variables_that_stay_text(path: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert [severity for severity, _ in found("unexpanded-variable", {path: text})] == [
        severity for severity, _ in expected
    ]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("--port 1 --port 2", [("warning", "1")]),
        ("--port 1 --port=1", []),
        ("--enable-prefix-caching --no-enable-prefix-caching", [("warning", "--enable-prefix-caching")]),
        ("-tp 2 --tensor-parallel-size 4", [("warning", "2")]),
        ("--served-model-name a --served-model-name b", []),
        ("-cc.cudagraph_mode=NONE -cc.mode=0", []),
    ],
)
def test_the_last_of_two_values_wins(args: str, expected: list[tuple[str, str]]) -> None:
    assert found("overridden-flag", {"a.sh": f"uvx --from vllm==0.22.1 vllm serve Qwen/Qwen3-8B {args}\n"}) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.sh": "uvx --from mlx-lm==0.31.2 --with mlx==0.31.2 mlx_lm.server --model a/b\n"}, 1),
        ({"a.sh": "uvx --from mlx-lm==0.31.2 --with mlx==0.31.1 mlx_lm.server --model a/b\n"}, 0),
        ({"a.sh": "uvx --from mlx-lm==0.31.3 --with mlx==0.32.4 mlx_lm.server --model a/b\n"}, 0),
        ({"a.sh": "mlx_lm.server --model a/b\n", "requirements.txt": "mlx==0.32.4\nmlx-lm==0.30.2\n"}, 1),
        ({"a.sh": "mlx_lm.server --model a/b\n", "requirements.txt": "mlx<0.31.2\nmlx-lm==0.30.2\n"}, 0),
        ({"a.sh": "uvx --from vllm-mlx==0.6.0 --with mlx-lm==0.32.0 vllm-mlx serve a/b\n"}, 1),
    ],
)
def test_packages_that_do_not_work_together(files: dict[str, str], expected: int) -> None:
    assert len(found("dependency-conflict", files)) == expected
