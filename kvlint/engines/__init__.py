"""The engines by name.  A module is imported when a command line names its program or an image of its own."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from kvlint.command import CommandLine
from kvlint.engines.base import Engine, EngineData
from kvlint.patterns import regex

# Google's own builds of TGI: the release is part of the repository's name.
TGI_CONTAINERS = tuple(
    f"us-docker.pkg.dev/deeplearning-platform-release/gcr.io/huggingface-text-generation-inference-{build}"
    for build in (
        *("cu121.1-4.ubuntu2204.py310", "cu121.2-0.ubuntu2204.py310", "cu121.2-1.ubuntu2204.py310"),
        *("cu121.2-2.ubuntu2204.py310", "cu124.2-3.ubuntu2204.py311", "cu124.2-4.ubuntu2204.py311"),
        *(
            "cu124.3-0.ubuntu2204.py311",
            "cu124.3-1.ubuntu2204.py311",
            "cu124.3-2.ubuntu2204.py311",
            "cu124.3-3.ubuntu2204.py311",
        ),
    )
)
# Beside `llama-server`: the backend, release or fork that somebody's build is named after.  What starts, stops or asks a server
# is named after what it does, and takes arguments of its own.
_BUILDS = (
    r"ik|cuda\d*|cu\d+|vulkan|vk|rocm[\d.]*|hip|metal|sycl|cpu|blas|"
    r"mtp|turbo\w*|beellama|therock|latest|main|master|dev|git|nightly|b\d+"
)
_VARIANT = regex(
    rf"(?:(?:{_BUILDS})[-_])*llama-server(?:[-_.](?:{_BUILDS}|wrapped|wrapper|gfx\w+|real|bin))*(?:\.exe)?"
)
ENGINES: dict[str, EngineData] = {
    data.name: data
    for data in (
        EngineData(
            "vllm",
            "kvlint.engines.vllm",
            programs=("vllm",),
            modules=("vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main", "vllm", "dynamo.vllm"),
            images=("vllm/vllm-openai", "vllm/vllm-openai-rocm", "vllm/vllm-openai-cpu"),
        ),
        EngineData(
            "mlx-lm",
            "kvlint.engines.mlx_lm",
            programs=("mlx_lm.server", "mlx_lm"),
            modules=("mlx_lm.server", "mlx_lm"),
        ),
        EngineData(
            "llama-server",
            "kvlint.engines.llama_server",
            programs=("llama-server", "llama-server.exe"),
            modules=("llama_cpp.server",),
            images=("ghcr.io/ggml-org/llama.cpp", "ghcr.io/ggerganov/llama.cpp"),
        ),
        EngineData("ollama", "kvlint.engines.ollama", programs=("ollama", "ollama.exe"), images=("ollama/ollama",)),
        EngineData(
            "vllm-mlx",
            "kvlint.engines.vllm_mlx",
            programs=("vllm-mlx",),
            modules=("vllm_mlx.cli",),
        ),
        EngineData(
            "sglang",
            "kvlint.engines.sglang",
            programs=("sglang",),
            modules=("sglang.launch_server", "sglang", "dynamo.sglang"),
            images=("lmsysorg/sglang",),
        ),
        EngineData(
            "tgi",
            "kvlint.engines.tgi",
            programs=("text-generation-launcher",),
            images=("ghcr.io/huggingface/text-generation-inference", *TGI_CONTAINERS),
        ),
        EngineData("lmdeploy", "kvlint.engines.lmdeploy", programs=("lmdeploy",), images=("openmmlab/lmdeploy",)),
        EngineData(
            "trtllm",
            "kvlint.engines.trtllm",
            programs=("trtllm-serve",),
            modules=("tensorrt_llm.commands.serve",),
            images=("nvcr.io/nvidia/tensorrt-llm/release",),
        ),
    )
}


@cache
def engine(name: str) -> Engine:
    """The engine's own object; KeyError for a name that is none."""
    return cast(Engine, import_module(ENGINES[name].module).ENGINE)


@cache
def _words() -> dict[str, str]:
    return {word: data.name for data in ENGINES.values() for word in (*data.programs, *data.modules)}


@cache
def _repositories() -> dict[str, str]:
    return {image: data.name for data in ENGINES.values() for image in data.images}


def named_by(line: CommandLine) -> str | None:
    """The engine that a line's program, or its image where no program is given, belongs to."""
    if line.program is not None:
        return _words().get(basename(line.program.value)) or of_variant(line.program.value)
    return of_image(line.image.value) if line.image is not None else None


def of_variant(program: str) -> str | None:
    """The engine of a build, or of a wrapper, that goes by its program's name with a word more: `llama-server-vulkan`."""
    name = basename(program)
    return "llama-server" if "llama" in name and name not in _words() and _VARIANT.fullmatch(name) else None


def embedded(program: str) -> bool:
    """A worker of another server, which takes the engine's options beside its own: Dynamo's."""
    return basename(program).startswith("dynamo.")


def of_image(image: str) -> str | None:
    """The engine whose own repository an image comes from."""
    return _repositories().get(repository(image))


def basename(program: str) -> str:
    return program.rsplit("/", 1)[-1]


def repository(image: str) -> str:
    """`docker.io/vllm/vllm-openai:v0.11.0@sha256:…` → `vllm/vllm-openai`; another registry's copy keeps its host."""
    name = image.split("@", 1)[0]
    head, _, tail = name.rpartition("/")
    name = f"{head}/{tail.split(':', 1)[0]}" if head else tail.split(":", 1)[0]
    for prefix in ("docker.io/", "index.docker.io/", "registry-1.docker.io/", "mirror.gcr.io/"):
        name = name.removeprefix(prefix)
    return name


def tag(image: str) -> str | None:
    name = image.split("@", 1)[0].rpartition("/")[2]
    return name.split(":", 1)[1] if ":" in name else None
