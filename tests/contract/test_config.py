"""kvlint.toml: where it is found, what each table says, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
from contract_inputs import CHAT, MAC, MLX_MODEL, chat, deployment

COLD = {"chat.sh": chat("window=40000 streams=2")}
H100 = '[[hardware]]\nmatch = "**"\ndevice = "h100"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('selct = ["x"]\n', "kvlint.toml:1:1: unknown key 'selct'; did you mean 'select'?"),
        (
            '[[hardware]]\nmatch = "**"\nmemry = "1GiB"\n',
            "kvlint.toml:3:1: unknown key 'memry'; did you mean 'memory'?",
        ),
        ('[coefficients]\nholdbck = {value = 1, reason = "x"}\n', "kvlint.toml:2:1: unknown coefficient 'holdbck'"),
        ("[coefficients]\nholdback = {value = 1}\n", "kvlint.toml:2:1: coefficient holdback needs a reason"),
        ('[severity]\nunpinned-engin = "note"\n', "kvlint.toml:2:1: unknown rule 'unpinned-engin'; did you mean"),
        ('select = ["cold-prompt-cach"]\n', "kvlint.toml:1:11: unknown rule 'cold-prompt-cach'; did you mean"),
        ('[[per_file_ignore]]\nmatch = "**"\nrules = ["nope"]\n', "kvlint.toml:1:1: unknown rule 'nope'"),
        ('[[hardware]]\nmatch = "**"\ndevice = "h1000"\n', "kvlint.toml:3:10: unknown device 'h1000'; did you mean"),
        ('[[hardware]]\nmatch = "**"\ndevice = "a100"\n', "'a100' may be A100 40GB or A100 80GB"),
        ('[[model]]\nid = "a/b"\nconfig = "no.json"\n', "kvlint.toml:3:10: there is no file no.json"),
        ('[[engine]]\nmatch = "**"\nname = "vlm"\n', "'vlm' is none of mlx-lm, vllm-mlx, vllm"),
        ('[hardware]\nmatch = "**"\n', "write [[hardware]]"),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(project: Any, text: str, told: str) -> None:
    for command in ("check", "show"):
        result = project.write({**COLD, "kvlint.toml": text}).run(command, *(["--format", "json"]))
        if command == "show" and "rule" in told:
            continue
        assert (result.status, result.out) == (2, "")
        assert told in result.err


def rules(found: Any) -> set[str]:
    return {each["rule"] for each in found["findings"]}


def test_the_nearest_file_is_the_configuration_and_the_root(project: Any) -> None:
    project.write({"kvlint.toml": MAC, "a/b/chat.sh": COLD["chat.sh"], "a/kvlint.toml": MAC.replace('"**"', '"b/**"')})
    assert project.check()["findings"][0]["path"] == "a/b/chat.sh"
    for arguments, at in ((("a/b",), "."), ((), "a/b"), (("chat.sh",), "a/b")):
        found = project.check(*arguments, at=at)
        assert found["findings"][0]["path"] == "b/chat.sh"
        assert "cold-prompt-cache" in rules(found)
    assert rules(project.check("--isolated", "a/b")) == set()


def test_a_table_of_pyproject(project: Any) -> None:
    tables = MAC.replace("[[", "[[tool.kvlint.")
    project.write({**COLD, "pyproject.toml": f'[project]\nname = "x"\n\n{tables}'})
    assert "cold-prompt-cache" in rules(project.check())


def test_what_lies_above_the_repository_says_nothing(project: Any) -> None:
    project.write({"kvlint.toml": MAC, "inner/.git/HEAD": "", "inner/chat.sh": COLD["chat.sh"]})
    assert rules(project.check(at="inner")) == set()


def test_patterns_are_relative_to_the_file(project: Any) -> None:
    project.write({"mac/chat.sh": COLD["chat.sh"], "ci/kvlint.toml": MAC.replace('"**"', '"../mac/**"')})
    assert "cold-prompt-cache" in rules(project.check("--config", "ci/kvlint.toml", "mac"))
    project.write({"ci/kvlint.toml": MAC.replace('"**"', '"mac/**"')})
    assert "cold-prompt-cache" not in rules(project.check("--config", "ci/kvlint.toml", "mac"))


@pytest.mark.parametrize(
    ("match", "covered"),
    [
        *(("**", True), ("k8s/**", True), ("k8s/q.yaml", True), ("k8s", True), ("*/q.yaml", True), ("**/q.yaml", True)),
        *(
            ("k8s/**#qwen/vllm", True),
            ("k8s/**#vllm", True),
            ("k8s/**#qwen", True),
            ("#qwen/*", True),
            ("*.yaml", False),
        ),
        *(("k8s/**#chat", False), ("other/**", False), ("**#qwe", False)),
    ],
)
def test_what_a_match_covers(project: Any, match: str, covered: bool) -> None:
    table = f'[[hardware]]\nmatch = "{match}"\nmemory = "80GiB"\n'
    project.write({"k8s/q.yaml": deployment(), "kvlint.toml": table})
    assert ("budget_bytes" in project.server()["sizing"]) is covered


def test_later_tables_win_key_by_key(project: Any) -> None:
    later = '[[hardware]]\nmatch = "**#vllm"\nmemory = "40GiB"\n[[hardware]]\nmatch = "nowhere"\nmemory = "1GiB"\n'
    project.write({"q.yaml": deployment(), "kvlint.toml": H100 + later})
    sizing = project.server()["sizing"]
    assert sizing["budget_bytes"]["value"] == 40 * 2**30
    assert sizing["budget_bytes"]["origin"]["line"] == 6


def test_what_it_says_goes_before_a_label(project: Any) -> None:
    table = '[[hardware]]\nmatch = "**"\ndevice = "l4"\n'
    project.write({"q.yaml": deployment(device="NVIDIA-A100-SXM4-80GB"), "kvlint.toml": table})
    assert project.server()["sizing"]["budget_bytes"]["origin"]["name"] == "L4"
    assert project.findings("contradicted-declaration") == []


def test_what_is_written_otherwise_is_a_note(project: Any) -> None:
    """Pins, requested devices, and limits below a promise; an image's tag is an inference."""
    table = '[[engine]]\nmatch = "**"\nversion = "0.10.2"\n[[workload]]\nmatch = "**"\nwindow = 65536\n'
    served = "uvx --from vllm==0.11.0 vllm serve Qwen/Qwen3-32B --max-model-len 32768\n"
    project.write({"serve.sh": served, "kvlint.toml": table})
    found = project.findings("contradicted-declaration")
    assert [(each["severity"], each["path"], each["line"]) for each in found] == [
        *(("note", "kvlint.toml", 3), ("note", "kvlint.toml", 6)),
    ]
    assert [each["related"][0]["path"] for each in found] == ["serve.sh", "serve.sh"]
    assert project.server()["engine_versions"] == ["0.10.2"]
    count = '[[hardware]]\nmatch = "**"\ncount = 4\n'
    project.write({"serve.sh": "", "q.yaml": deployment(), "kvlint.toml": table.replace("65536", "16384") + count})
    (found,) = project.findings("contradicted-declaration")
    assert (found["line"], found["related"][0]["path"]) == (9, "q.yaml")


def test_a_budget_a_ceiling_and_a_measured_pool(project: Any) -> None:
    project.write({"q.yaml": deployment(), "kvlint.toml": '[[hardware]]\nmatch = "**"\navailable_kv = "8GiB"\n'})
    sizing = project.server()["sizing"]
    assert (sizing["pool_bytes"]["value"], sizing["max_concurrency"]["value"]) == (8 * 2**30, 1)
    ceiling = MAC.replace('budget = "24GiB"', 'budget = "24GiB"\nceiling = "40GiB"')
    project.write({"q.yaml": "", "chat.sh": chat("window=20000"), "kvlint.toml": ceiling})
    assert project.server()["sizing"]["budget_bytes"]["value"] == 24 * 2**30
    found = project.write({"kvlint.toml": ceiling.replace("40GiB", "20GiB")}).findings("ceiling-exceeded")
    assert [each["rule"] for each in found] == ["ceiling-exceeded"]


def test_an_engine_by_name(project: Any) -> None:
    """A container of nobody's image is the engine that it is said to be; every other program stays what it is."""
    table = '[[engine]]\nmatch = "{}"\nname = "{}"\nversion = "0.11.0"\n'
    own = deployment(image="acme/llm:3", args="[--model=Qwen/Qwen3-32B, --enforce-eager]")
    project.write({"k8s/q.yaml": own, "kvlint.toml": table.format("k8s/**", "vllm")})
    assert [project.server()[key] for key in ("engine", "engine_versions")] == ["vllm", ["0.11.0"]]
    project.write({"kvlint.toml": table.format("k8s/q.yaml#qwen", "vllm")})
    assert project.server()["engine"] == "vllm"
    project.write({"kvlint.toml": table.format("**", "sglang")})
    assert project.show()["servers"] == []
    compose = (
        "services:\n  db: {image: postgres:16, command: [-c, max_connections=9]}\n  chat: {image: ollama/ollama}\n"
    )
    project.write({"k8s/q.yaml": "", "compose.yaml": compose, "kvlint.toml": table.format("**", "vllm")})
    assert (project.server()["engine"], "0.11.0" in project.server()["engine_versions"]) == ("ollama", False)


@pytest.mark.parametrize(
    ("version", "releases"),
    [
        *(("0.11.0", ["0.11.0"]), ("v0.11.0", ["0.11.0"]), ("0.18.0rc1", ["0.17.1", "0.18.0"]), ("0.99", ["0.33.0"])),
        *((">=0.10,<0.11", ["0.10.0", "0.10.1", "0.10.1.1", "0.10.2"]), ("0.5.0", ["0.6.0"])),
    ],
)
def test_a_version_as_the_engine_prints_it(project: Any, version: str, releases: list[str]) -> None:
    table = f'[[engine]]\nmatch = "**"\nversion = "{version}"\n'
    project.write({"q.yaml": deployment(image="vllm/vllm-openai"), "kvlint.toml": table})
    assert project.server()["engine_versions"] == releases


def test_a_model_by_hand(project: Any) -> None:
    """4 layers of 2 KV heads of 64: 4 × 2 × 2 × 64 × 2 B = 2,048 B a token."""
    shape = """\
{"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
 "head_dim": 64, "vocab_size": 1000, "intermediate_size": 512, "torch_dtype": "bfloat16", "max_position_embeddings": 4096}
"""
    table = '[[model]]\nid = "{}"\nconfig = "shapes/own.json"\nweights = "1GB"\n'
    served = "uvx --from mlx-lm==0.31.3 mlx_lm.server --model acme/own-4bit\n"
    for name in ("acme/own-4bit", "own-4bit"):
        project.write({"chat.sh": served, "shapes/own.json": shape, "kvlint.toml": table.format(name)})
        sizing = project.server()["sizing"]
        assert (sizing["kv_bytes_per_token"]["value"], sizing["weights_bytes"]["value"]) == (2048, 10**9)
        assert project.server()["settings"]["model_window"]["value"] == 4096


def test_rules_paths_and_levels(project: Any) -> None:
    project.write(COLD)
    for text, kept in (
        ('select = ["cold-prompt-cache"]\n', {"cold-prompt-cache"}),
        ('ignore = ["cold-prompt-cache"]\n', {"unbounded-prompt-cache"}),
        ('ignore = ["prompt-cache"]\n', set()),
        ('exclude = ["*.sh"]\n', set()),
    ):
        assert rules(project.write({"kvlint.toml": text + MAC}).check()) == kept
    assert project.write({"kvlint.toml": 'fail_on = "never"\n' + MAC}).run("check").status == 0
    assert project.run("check", "--fail-on", "error").status == 1
    project.write({"kvlint.toml": MAC + '[severity]\ncold-prompt-cache = "note"\n'})
    assert {each["severity"] for each in project.findings("cold-prompt-cache")} == {"note"}
    assert project.run("check").status == 0


@pytest.mark.parametrize(
    ("table", "left"),
    [
        ('[[ignore]]\nrule = "cold-prompt-cache"\nat = "chat.sh"\nreason = "x"\n', {"unbounded-prompt-cache"}),
        (
            '[[ignore]]\nrule = "cold-prompt-cache"\nat = "chat.sh#chat"\nuntil = 2999-01-31\n',
            {"unbounded-prompt-cache"},
        ),
        (
            '[[ignore]]\nrule = "cold-prompt-cache"\nat = "chat.sh"\nuntil = 2020-01-31\n',
            {"cold-prompt-cache", "unbounded-prompt-cache", "expired-suppression"},
        ),
        (
            '[[ignore]]\nrule = "cold-prompt-cache"\nat = "other.sh"\n',
            {"cold-prompt-cache", "unbounded-prompt-cache", "unused-suppression"},
        ),
        ('[[per_file_ignore]]\nmatch = "*.sh"\nrules = ["cold-prompt-cache"]\n', {"unbounded-prompt-cache"}),
    ],
)
def test_what_is_ignored(project: Any, table: str, left: set[str]) -> None:
    found = project.write({**COLD, "kvlint.toml": MAC + table}).check()
    assert rules(found) == left
    assert found["summary"]["suppressed"] == (0 if "cold-prompt-cache" in left else 1)


COUNTER = """\
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
  <key>Label</key><string>chat</string>
  <key>ProgramArguments</key><array>
    <string>/opt/vllm/bin/vllm</string><string>serve</string><string>Qwen/Qwen3-8B</string>
    <string>--max-model-len</string><string>65536</string>
  </array>
</dict></plist>
"""


@pytest.mark.parametrize(
    ("at", "hidden"),
    [
        ("deploy/a.plist#ProgramArguments[4]", True),
        ("deploy/a.plist#chat:window", True),
        ("deploy/a.plist#chat:--max-model-len", True),
        ("deploy/a.plist#ProgramArguments[2]", True),  # the model that the window is beyond
        ("deploy/a.plist#ProgramArguments[3]", False),
        ("deploy/a.plist#chat:port", False),
        ("deploy/a.plist#nothing[4]", False),
    ],
)
@pytest.mark.parametrize("directory", ["", "deploy/"])
def test_a_place_without_comments_is_addressed(project: Any, at: str, hidden: bool, directory: str) -> None:
    address = at.removeprefix(directory)
    table = f'[[ignore]]\nrule = "window-beyond-model"\nat = "{address}"\n'
    project.write({"deploy/a.plist": COUNTER, f"{directory}kvlint.toml": table})
    found = project.check("--config", f"{directory}kvlint.toml", "--select", "window-beyond-model,lint")
    assert ("window-beyond-model" in rules(found)) is not hidden
    assert ("unused-suppression" in rules(found)) is not hidden


def test_a_comment_counts_at_a_cause_in_the_configuration(project: Any) -> None:
    comment = "# kvlint: ignore[cold-prompt-cache] small prompts\nbudget"
    found = project.write({**COLD, "kvlint.toml": MAC.replace("budget", comment, 1)}).check()
    assert (rules(found), found["summary"]["suppressed"]) == ({"unbounded-prompt-cache"}, 1)


@pytest.mark.parametrize("table", ['[[ignore]]\nat = "chat.sh"\n', '[[per_file_ignore]]\nmatch = "*.sh"\n'])
def test_what_names_no_rule_means_each(project: Any, table: str) -> None:
    """Every key but `match`, `id` and `at` is optional."""
    found = project.write({**COLD, "kvlint.toml": MAC + table}).check()
    assert (found["findings"], found["summary"]["suppressed"]) == ([], 2)


def test_an_ignore_of_no_rule_that_hides_nothing_is_told(project: Any) -> None:
    found = project.write({**COLD, "kvlint.toml": MAC + '[[ignore]]\nat = "other.sh"\n'}).findings()
    told = [each["message"] for each in found if each["rule"] == "unused-suppression"]
    assert told == ["no rule finds anything here"]


@pytest.mark.parametrize("needed", ['[[ignore]]\nrule = "cold-prompt-cache"\n', '[[derived]]\nis = "x of y"\n'])
def test_an_address_is_needed(project: Any, needed: str) -> None:
    result = project.write({**COLD, "kvlint.toml": needed}).run("check")
    assert (result.status, "needs at" in result.err) == (2, True)


@pytest.mark.parametrize("table", ['[[parity]]\nname = "x"\n', '[[parity]]\nequal = ["chat.sh#chat:window"]\n'])
def test_a_set_that_compares_nothing_is_told(project: Any, table: str) -> None:
    found = project.write({**COLD, "kvlint.toml": table}).findings("misplaced-directive")
    assert [(each["path"], "two addresses" in each["message"]) for each in found] == [("kvlint.toml", True)]


def test_whether_a_suppression_hides_what_could_not_be_checked_is_not_known(project: Any) -> None:
    served = chat("window=40000 streams=2").replace(MLX_MODEL, "acme/private-7b")
    comment = "# kvlint: ignore[cold-prompt-cache] small prompts\n"
    project.write({"chat.sh": served.replace("# kvlint", comment + "# kvlint", 1), "kvlint.toml": MAC})
    assert project.findings("unused-suppression") == []
    assert any(each["rule"] == "cold-prompt-cache" for each in project.check()["unchecked"])
    strict = project.check("--strict-facts", "--select", "cold-prompt-cache,lint")
    assert (strict["findings"], strict["summary"]["suppressed"]) == ([], 1)


def test_a_floor_is_kept_for_diff_alone(project: Any) -> None:
    floor = '[[floor]]\nmatch = "**"\nmin_warm_slots = 2\nmin_concurrency = 4\n'
    assert rules(project.write({"chat.sh": CHAT, "kvlint.toml": MAC + floor}).check()) >= {"window-unbounded"}


def test_the_model_of_these_tests_is_in_the_catalogue(project: Any) -> None:
    assert project.write({"chat.sh": CHAT}).server()["model"] == MLX_MODEL
