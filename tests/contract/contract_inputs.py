"""Small configurations.

The MLX model has 48 layers of 4 KV heads of 128: 48 × 2 × 4 × 128 × 2 B = 98,304 B a token in 16 bit.
Qwen3-32B has 64 layers of 8 KV heads of 128: 64 × 2 × 8 × 128 × 2 B = 262,144 B a token, and 40,960 positions.
"""

from __future__ import annotations

MLX_MODEL = "mlx-community/Qwen3-30B-A3B-4bit"
CHAT = f"#!/bin/sh\nexec mlx_lm.server --model {MLX_MODEL} --port 8080\n"
MAC = f"""\
[[hardware]]
match = "**"
budget = "24GiB"

[[engine]]
match = "**"
name = "mlx-lm"
version = "0.31.3"

[[model]]
id = "{MLX_MODEL}"
weights = "16GiB"
"""


def chat(comment: str = "", arguments: str = "") -> str:
    """A script that starts mlx_lm.server, with a comment for kvlint above it."""
    above = f"# kvlint: {comment}\n" if comment else ""
    return f"#!/bin/sh\n{above}exec mlx_lm.server --model {MLX_MODEL} --port 8080{arguments}\n"


def deployment(
    name: str = "qwen",
    image: str = "vllm/vllm-openai:v0.11.0",
    args: str = "[--model=Qwen/Qwen3-32B, --max-model-len=32768]",
    device: str = "",
    container: str = "",
) -> str:
    """A Kubernetes Deployment with one container of vLLM."""
    selector = f"      nodeSelector: {{nvidia.com/gpu.product: {device}}}\n" if device else ""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
{selector}      containers:
        - name: vllm
          image: {image}
          args: {args}
{container}          resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""
