"""`# kvlint:` comments in every format: where they count, what they cover, and where they are lost."""

from __future__ import annotations

from typing import Any

import pytest

pipeline = pytest.importorskip("kvlint.pipeline")

# `malformed-value`: vLLM takes an integer for --max-model-len.
IGNORE = "kvlint: ignore[malformed-value]"

PLIST = """<plist version="1.0"><dict>
  <key>Label</key><string>a</string>
  <key>ProgramArguments</key>
  <array>
    <string>/opt/vllm</string>
    <string>serve</string>
    <string>m</string>
    <string>--max-model-len</string>
    {above}<string>abc</string>{end}
  </array>
</dict></plist>
"""
YAML = """apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
    - name: c
      image: vllm/vllm-openai:v0.11.0
      args:
        - --model=m
        {above}- --max-model-len=abc{end}
"""
YAML_SCRIPT = """apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
    - name: c
      image: vllm/vllm-openai:v0.11.0
      command: [sh, -c]
      args:
        {above}- |
          set -e
          {inside}exec vllm serve m \\
            --port 8000 \\
            --max-model-len abc{end}
"""
NIX = """{{ pkgs, ... }}:
{{
  systemd.services.a.serviceConfig = {{
    {above}ExecStart = ''
      ${{pkgs.vllm}}/bin/vllm serve m \\
        --max-model-len abc
    '';{end}
  }};
}}
"""
NIX_LIST = """{{
  launchd.user.agents.a.serviceConfig.ProgramArguments = [
    "/opt/vllm" "serve" "m"
    {above}"--max-model-len=abc"{end}
  ];
}}
"""
NIX_SCRIPT = """{{ pkgs, ... }}:
pkgs.writeShellScriptBin "a" ''
  {inside}exec vllm serve m \\
    --port 8000 \\
    --max-model-len abc{end}
''
"""
SHELL = """#!/bin/sh
{above}exec vllm serve m \\
  --port 8000 \\
  --max-model-len abc{end}
"""
UNIT = """[Service]
{above}ExecStart=/opt/vllm serve m \\
  --port 8000 \\
  --max-model-len abc
"""
UNIT_FROM_FILE = "[Service]\nEnvironmentFile=/etc/vllm.env\nExecStart=/opt/vllm serve m --max-model-len ${{WINDOW}}\n"
ENV = "{above}WINDOW=abc{end}\n"
COMPOSE = """services:
  a:
    image: vllm/vllm-openai:v0.11.0
    {above}command: >
      --model m
      --max-model-len abc
"""
HEREDOC = """#!/bin/sh
cat > /etc/systemd/system/a.service <<'EOF'
[Service]
{inside}ExecStart=/opt/vllm serve m \\
  --max-model-len abc
EOF
"""
DOCKERFILE = """FROM vllm/vllm-openai:v0.11.0
{above}CMD ["--model", "m", \\
     "--max-model-len", "abc"]
"""
MAKEFILE = """serve:
\t{inside}vllm serve m \\
\t  --max-model-len abc{end}
"""

HASH = f"# {IGNORE}"
BLOCK = f"/* {IGNORE} */"
XML = f"<!-- {IGNORE} -->"
CASES: list[tuple[str, dict[str, str], str, str]] = [
    ("yaml above", {"p.yaml": YAML}, "above", HASH),
    ("yaml end", {"p.yaml": YAML}, "end", HASH),
    ("yaml above the item of a script", {"p.yaml": YAML_SCRIPT}, "above", HASH),
    ("yaml above a command inside", {"p.yaml": YAML_SCRIPT}, "inside", HASH),
    ("yaml end inside", {"p.yaml": YAML_SCRIPT}, "end", HASH),
    ("compose above a folded scalar", {"compose.yaml": COMPOSE}, "above", HASH),
    ("nix above a binding", {"a.nix": NIX}, "above", HASH),
    ("nix above a binding, block", {"a.nix": NIX}, "above", BLOCK),
    ("nix above an item", {"a.nix": NIX_LIST}, "above", HASH),
    ("nix above an item, block", {"a.nix": NIX_LIST}, "above", BLOCK),
    ("nix end of an item", {"a.nix": NIX_LIST}, "end", HASH),
    ("nix end of an item, block", {"a.nix": NIX_LIST}, "end", BLOCK),
    ("nix above a command in a script", {"a.nix": NIX_SCRIPT}, "inside", HASH),
    ("nix end of a line of a script", {"a.nix": NIX_SCRIPT}, "end", HASH),
    ("shell above", {"a.sh": SHELL}, "above", HASH),
    ("shell end", {"a.sh": SHELL}, "end", HASH),
    ("systemd above", {"a.service": UNIT}, "above", HASH),
    ("systemd above, semicolon", {"a.service": UNIT}, "above", f"; {IGNORE}"),
    ("env above", {"a.service": UNIT_FROM_FILE, "vllm.env": ENV}, "above", HASH),
    ("plist above", {"a.plist": PLIST}, "above", XML),
    ("plist end", {"a.plist": PLIST}, "end", XML),
    ("unit in a heredoc", {"a.sh": HEREDOC}, "inside", HASH),
    ("dockerfile above", {"Dockerfile": DOCKERFILE}, "above", HASH),
    ("makefile in the recipe", {"Makefile": MAKEFILE}, "inside", HASH),
    ("makefile end", {"Makefile": MAKEFILE}, "end", HASH),
]


def filled(files: dict[str, str], place: str = "", comment: str = "") -> dict[str, str]:
    """The files with the comment in one place: on the line above with its indentation, or at the line's end."""
    made = {}
    for path, text in files.items():
        lines = []
        for line in text.split("\n"):
            if place and f"{{{place}}}" in line and place != "end":
                indent = line[: len(line) - len(line.lstrip())]
                line = line.replace(f"{{{place}}}", f"{comment}\n{indent}")
            lines.append(line)
        blank = dict.fromkeys(("above", "inside"), "")
        made[path] = "\n".join(lines).format(**blank, end=f" {comment}" if place == "end" else "")
    return made


def report(files: dict[str, str]) -> Any:
    found = pipeline.check_files(files)
    assert found.internal == []
    return found


def texts(found: Any, rule: str) -> list[str]:
    return [finding.text for finding in found.findings if finding.rule == rule]


@pytest.mark.parametrize(("files", "place", "comment"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_same_finding_is_suppressed_in_every_format(files: dict[str, str], place: str, comment: str) -> None:
    bare = report(filled(files))
    assert texts(bare, "malformed-value") == ["abc"]
    hidden = report(filled(files, place, comment))
    assert texts(hidden, "malformed-value") == []
    assert hidden.suppressed == 1
    assert texts(hidden, "misplaced-directive") == []


LOST = [
    (
        "a folded scalar that no shell reads",
        {
            "compose.yaml": "services:\n  a:\n    image: vllm/vllm-openai:v0.11.0\n    command: >\n      --model m\n"
            f"      {HASH}\n      --max-model-len abc\n"
        },
    ),
    (
        "a folded scalar that a shell reads",
        {
            "p.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n    - name: c\n      image: x\n"
            f"      command: [sh, -c]\n      args:\n        - >-\n          vllm serve m --max-model-len abc\n          {HASH}\n"
            "          --port 8000\n"
        },
    ),
    ("the end of a unit's line", {"a.service": f"[Service]\nExecStart=/opt/vllm serve m --max-model-len abc {HASH}\n"}),
    (
        "the middle of a shell's command",
        {"a.sh": f"#!/bin/sh\nvllm serve m --max-model-len abc \\\n  {HASH}\n  --port 8000\n"},
    ),
    (
        "the end of a llama-swap line",
        {"s.yaml": f"models:\n  a:\n    cmd: |\n      vllm serve m --max-model-len abc {HASH}\n"},
    ),
    ("a word of a list", {"a.nix": f'{{ x = [ "vllm" "serve" "m" "--max-model-len" "abc" "{HASH}" ]; }}\n'}),
]


@pytest.mark.parametrize("files", [case[1] for case in LOST], ids=[case[0] for case in LOST])
def test_a_directive_that_became_an_argument_is_itself_a_finding_and_suppresses_nothing(files: dict[str, str]) -> None:
    evaluation = pipeline.evaluate(pipeline.memory_project(files))
    lost = [each for each in evaluation.findings.problems if each.kind == "misplaced-directive"]
    assert [each.span.text for each in lost] == [HASH]
    found = report(files)
    assert texts(found, "malformed-value") == ["abc"]
    assert found.suppressed == 0


def declared(files: dict[str, str]) -> list[tuple[str, int | None]]:
    evaluation = pipeline.evaluate(pipeline.memory_project(files))
    windows = [
        (identity, process.site.data.get("declared", {}).get("window"))
        for identity, process in evaluation.findings.processes
    ]
    return [(identity, window.value if window is not None else None) for identity, window in windows]


def test_a_promise_is_made_by_the_server_that_it_stands_in_or_above() -> None:
    script = (
        "#!/bin/sh\n# kvlint: window=1000\nmlx_lm.server --model a &\n"
        "mlx_lm.server --model b \\\n  --port 81 # kvlint: window=2000\nmlx_lm.server --model c\n"
    )
    assert declared({"s.sh": script}) == [("s.sh#s", 1000), ("s.sh#s~2", 2000), ("s.sh#s~3", None)]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "a.nix",
            '{\n  # kvlint: window=77\n  launchd.agents.a.config.ProgramArguments = [ "mlx_lm.server" "--model" "m" ];\n}\n',
        ),
        ("a.nix", '{\n  /* kvlint: window=77 */\n  services.x.cmd = "mlx_lm.server --model m";\n}\n'),
        ("a.service", "# kvlint: window=77\n[Service]\nExecStart=/opt/mlx_lm.server --model m\n"),
        ("a.plist", PLIST.replace("vllm", "mlx_lm.server").format(above="<!-- kvlint: window=77 -->", end="")),
        ("Procfile", "# kvlint: window=77\na: mlx_lm.server --model m\n"),
        ("a.sh", "# kvlint: window=77\nmlx_lm.server --model m\n"),
        ("a.yaml", "models:\n  a:\n    # kvlint: window=77\n    cmd: mlx_lm.server --model m\n"),
    ],
)
def test_a_promise_is_heard_in_every_format(path: str, text: str) -> None:
    assert [window for _, window in declared({path: text})] == [77]


def test_a_block_comment_before_something_on_its_line_covers_that_line_only() -> None:
    text = '{{\n  a = [ "vllm" "serve" "m" {comment}"--max-model-len=abc"\n    "--max-num-seqs=def" ];\n}}\n'
    assert texts(report({"a.nix": text.format(comment=BLOCK + " ")}), "malformed-value") == ["def"]


def test_a_comment_of_several_lines_covers_what_is_below_its_end() -> None:
    comment = "/* kvlint: ignore[malformed-value]\n       long story */"
    text = f'{{\n  a = [ "vllm" "serve" "m"\n    {comment}\n    "--max-model-len=abc" ];\n}}\n'
    assert texts(report({"a.nix": text}), "malformed-value") == []


@pytest.mark.parametrize(
    "comment",
    [
        "ignore[malformed-value] until=2027-13-01 soon",
        "ignore[malformed-value] until=soon",
        "ignore[] for now",
        "pin until=2027-02-30",
    ],
)
def test_a_comment_that_would_hide_for_ever_or_nothing_is_told(comment: str) -> None:
    """A date that is none never comes, and no rule is none."""
    script = f"#!/bin/sh\nexec uvx --from vllm==0.11.0 vllm serve m --max-model-len abc # kvlint: {comment}\n"
    found = pipeline.check_files({"serve.sh": script})
    rules = [finding.rule for finding in found.findings if finding.rule != "unpinned-revision"]
    assert sorted(rules) == ["malformed-value", "misplaced-directive"]
