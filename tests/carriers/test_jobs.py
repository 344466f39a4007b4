"""dstack and SkyPilot jobs."""

from __future__ import annotations

from carried import process, value, words

DSTACK = """\
type: service
name: llm
env: [HF_TOKEN, MODEL=openai/gpt-oss-120b]
image: rocm/vllm-dev:1
commands:
  - export X=1
  - |
    vllm serve $MODEL \\
      --tensor-parallel-size $DSTACK_GPUS_NUM
resources: {gpu: "MI300X:8", shm_size: 32GB}
"""
SKY = """\
name: llm
resources: {accelerators: {H100: 2}}
envs: {MODEL: Qwen/Qwen3-8B}
setup: pip install vllm==0.11.0
run: |
  vllm serve $MODEL --tensor-parallel-size $SKYPILOT_NUM_GPUS_PER_NODE
service: {replicas: 2}
"""


def test_dstack() -> None:
    only = process({"llm.dstack.yml": DSTACK})
    assert words(only) == ["vllm", "serve", "openai/gpt-oss-120b", "--tensor-parallel-size", "8"]
    assert (value(only.site.gpus), value(only.site.shared_memory)) == (8, 32 * 10**9)
    assert [each.text.value for each in only.site.product] == ["MI300X"]


def test_skypilot() -> None:
    only = process({"llm.sky.yaml": SKY})
    assert words(only) == ["vllm", "serve", "Qwen/Qwen3-8B", "--tensor-parallel-size", "2"]
    assert [(pin.distribution, pin.version.value) for pin in only.line.pins] == [("vllm", "0.11.0")]
    assert (value(only.site.replicas), value(only.site.gpus)) == (2, 2)


def test_spellings_of_devices() -> None:
    for written, count, name in (("A100:80GB:4", 4, "A100"), ("L4", 1, "L4"), ("[H100:8]", 8, "H100")):
        only = process({"a.yml": DSTACK.replace('"MI300X:8"', written)})
        assert (value(only.site.gpus), only.site.product[0].text.value) == (count, name)
    assert process({"a.yml": DSTACK.replace('"MI300X:8"', "80GB..")}).site.gpus is None
