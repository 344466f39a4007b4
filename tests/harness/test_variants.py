"""The variants themselves: what they write, and what they leave alone."""

from __future__ import annotations

import variants
import yaml

from kvlint.ruleset.load import Example, Find
from kvlint.source import Source

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: qwen
spec:
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          command: [vllm, serve, Qwen/Qwen3-8B]
          args:
            - --max-model-len=65536
            - --served-model-name
            - a name
"""
COMPOSE = """\
services:
  vllm:
    image: vllm/vllm-openai:v0.11.0
    command: ["--model", "Qwen/Qwen3-8B"]
"""
SCRIPT = "#!/bin/sh\nexec vllm serve Qwen/Qwen3-8B \\\n  --max-model-len 65536\n"
BUDGET = '[[hardware]]\nmatch = "**"\nbudget = "48GiB"\n'


def example(config: str | None = None, **files: str) -> Example:
    return Example({name.replace("_", "."): text for name, text in files.items()}, (Find("65536"),), config)


def test_a_manifest_has_every_variant_and_a_script_has_few() -> None:
    names = [variant.name for variant in variants.of(example(deploy_yaml=MANIFEST))]
    assert names == ["plain", "block_scalar", "crlf", "templated"]
    assert [variant.name for variant in variants.of(example(run_sh=SCRIPT))] == ["plain", "crlf"]


def test_what_an_example_excludes_is_left_out() -> None:
    excluding = Example({"deploy.yaml": MANIFEST}, (), None, "", ("crlf", "joined"))
    assert [variant.name for variant in variants.of(excluding)] == ["plain", "block_scalar", "templated"]
    assert not list(variants.joined(excluding, excluding))


def test_a_container_command_becomes_a_script_in_a_block() -> None:
    text = variants.block_scalar("deploy.yaml", MANIFEST)
    assert text is not None
    container = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["/bin/sh", "-c"]
    assert container["args"] == [
        "exec vllm \\\n  serve \\\n  Qwen/Qwen3-8B \\\n  --max-model-len=65536 \\\n  --served-model-name \\\n  'a name'\n"
    ]
    assert "- |" in text


def test_a_compose_command_becomes_a_folded_string() -> None:
    text = variants.block_scalar("compose.yaml", COMPOSE)
    assert text is not None
    assert ">-" in text
    assert yaml.safe_load(text)["services"]["vllm"]["command"].split() == ["--model", "Qwen/Qwen3-8B"]


def test_what_a_shell_would_read_otherwise_is_left_alone() -> None:
    assert variants.block_scalar("deploy.yaml", MANIFEST.replace("65536", "$(WINDOW)")) is None
    assert variants.block_scalar("deploy.yaml", MANIFEST + "# kvlint: window=1\n") is None
    assert variants.block_scalar("run.sh", SCRIPT) is None


def test_a_label_is_templated() -> None:
    text = variants.templated("deploy.yaml", MANIFEST)
    assert text is not None
    assert "metadata:\n  labels:\n    example.com/release: {{ .Release.Name }}\n  name: qwen\n" in text
    labelled = MANIFEST.replace("  name: qwen\n", "  name: qwen\n  labels:\n    app: qwen\n")
    text = variants.templated("deploy.yaml", labelled)
    assert text is not None
    assert "  labels:\n    example.com/release: {{ .Release.Name }}\n    app: qwen\n" in text
    assert variants.templated("compose.yaml", COMPOSE) is None


def test_examples_are_joined_both_ways_round() -> None:
    bad, good = example(deploy_yaml=MANIFEST), example(deploy_yaml=MANIFEST.replace("65536", "32768"))
    made = {variant.name: variant for variant in variants.joined(bad, good)}
    assert list(made) == [
        "joined (bad, good) in a file",
        "joined (bad, good) in directories",
        "joined (good, bad) in a file",
        "joined (good, bad) in directories",
    ]
    text = made["joined (good, bad) in a file"].files["deploy.yaml"]
    assert text.index("32768") < text.index("\n---\n") < text.index("65536")
    assert list(made["joined (bad, good) in directories"].files) == ["a/deploy.yaml", "b/deploy.yaml"]
    assert all(variant.finds == bad.finds for variant in made.values())


def test_each_configuration_keeps_to_its_directory() -> None:
    bad, good = example(BUDGET, run_sh=SCRIPT), example(BUDGET, run_sh=SCRIPT)
    made = list(variants.joined(bad, good))
    assert [variant.name for variant in made] == [
        "joined (bad, good) in directories",
        "joined (good, bad) in directories",
    ]
    assert made[0].config is not None
    assert 'match = "a/**"' in made[0].config
    assert 'match = "b/**"' in made[0].config
    once = example("[coefficients]\nholdback = 0.2\n", run_sh=SCRIPT)
    assert list(variants.joined(once, once)) == []
    assert len(list(variants.joined(once, example(run_sh=SCRIPT)))) == 2


def suppress(path: str, text: str, at: str) -> str | None:
    start = text.index(at)
    made = variants.suppressed({path: text}, "a-rule", [Source(path, text).span(start, start + len(at))])
    return made[path] if made else None


def test_a_comment_stands_where_the_contract_wants_it() -> None:
    comment = "# kvlint: ignore[a-rule] an example\n"
    assert f"            {comment}            - --max-model-len=65536\n" in (
        suppress("deploy.yaml", MANIFEST, "65536") or ""
    )
    assert f"    {comment}    command: [" in (suppress("compose.yaml", COMPOSE, "Qwen") or "")
    assert f"#!/bin/sh\n{comment}exec vllm" in (suppress("run.sh", SCRIPT, "65536") or "")
    block = "a:\n  run: |\n    one\n    two three\n"
    assert f"a:\n  {comment}  run: |\n" in (suppress("a.yaml", block, "three") or "")
    nix = "{\n  x = {\n    script = ''\n      run \\\n        --flag\n    '';\n  };\n}\n"
    assert f"    {comment}    script = ''\n" in (suppress("a.nix", nix, "--flag") or "")
    plist = "<dict>\n  <string>--flag</string>\n</dict>\n"
    assert "<dict>\n  <!-- kvlint: ignore[a-rule] an example -->\n  <string>" in (
        suppress("a.plist", plist, "--flag") or ""
    )
    assert suppress("a.json", '{"a": "--flag"}', "--flag") is None
