"""Write a tree of Kubernetes manifests to measure on: mostly ordinary services, and some that serve a model.

    python benchmarks/tree.py DIRECTORY [--files 2000] [--serving 0.05]

The same arguments write the same bytes.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

ORDINARY = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  namespace: {team}
  labels: {{app: {name}, tier: "{tier}"}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      containers:
        - name: main
          image: registry.example/{team}/{name}:{replicas}.{port}
          args: ["--listen=:{port}", "--level", "info"]
          ports: [{{name: http, containerPort: {port}}}]
          env:
{variables}
          readinessProbe: {{httpGet: {{path: /ready, port: http}}, periodSeconds: 10}}
          resources:
            requests: {{cpu: 250m, memory: 256Mi}}
            limits: {{cpu: "1", memory: 512Mi}}
---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {team}}}
spec:
  selector: {{app: {name}}}
  ports: [{{name: http, port: 80, targetPort: http}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}-settings, namespace: {team}}}
data:
  settings.ini: |
    [service]
    port = {port}
{settings}
"""
SERVING = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {team}}}
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {name}}}
  template:
    metadata:
      labels: {{app: {name}}}
    spec:
      nodeSelector: {{nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
      containers:
        - name: engine
          image: {image}
{command}
          ports: [{{containerPort: 8000}}]
          resources:
            limits: {{nvidia.com/gpu: "1"}}
"""
MODELS = ("Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "google/gemma-2-9b-it", "Qwen/Qwen3-30B-A3B")
ENGINES = (
    ("vllm/vllm-openai:v0.11.0", "vllm serve {model} --max-model-len {window} --max-num-seqs {width}"),
    (
        "lmsysorg/sglang:v0.5.5",
        "python3 -m sglang.launch_server --model-path {model} --context-length {window} --max-running-requests {width}",
    ),
    ("ghcr.io/ggml-org/llama.cpp:server-cuda-b6800", "llama-server -m /models/chat.gguf -c {window} -np {width}"),
)


def ordinary(name: str, team: str, draw: random.Random) -> str:
    names = draw.sample(["REGION", "STORE", "LOG_FORMAT", "TIMEOUT", "QUEUE", "ZONE"], 4)
    return ORDINARY.format(
        name=name,
        team=team,
        tier=draw.choice(["front", "middle", "back"]),
        replicas=draw.randint(1, 9),
        port=draw.choice([8080, 9000, 3000]),
        variables="\n".join(f'            - {{name: {each}, value: "{draw.randint(1, 999)}"}}' for each in names),
        settings="\n".join(f"    option.{number} = {draw.randint(1, 9999)}" for number in range(draw.randint(8, 24))),
    )


def serving(name: str, team: str, draw: random.Random) -> str:
    image, line = draw.choice(ENGINES)
    words = line.format(
        model=draw.choice(MODELS), window=draw.choice([4096, 8192, 16384, 32768]), width=draw.choice([2, 4, 8, 16])
    )
    if draw.random() < 0.5:
        written = "          command:\n" + "\n".join(f'            - "{word}"' for word in words.split())
    else:
        written = f"          command: [/bin/sh, -c]\n          args:\n            - |\n              exec {words}"
    return SERVING.format(name=name, team=team, image=image, command=written, replicas=draw.randint(1, 3))


def write(directory: Path, files: int = 2000, share: float = 0.05) -> None:
    """`share` of the files serve a model."""
    draw = random.Random(20261129)
    models = set(draw.sample(range(files), round(files * share)))
    for number in range(files):
        team = f"team-{draw.randint(1, 12)}"
        name = f"{draw.choice(['orders', 'mail', 'search', 'ledger', 'media'])}-{number:04d}"
        path = directory / team / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((serving if number in models else ordinary)(name, team, draw), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--serving", type=float, default=0.05, help="the share of files that serve a model")
    given = parser.parse_args()
    write(given.directory, given.files, given.serving)


if __name__ == "__main__":
    main()
