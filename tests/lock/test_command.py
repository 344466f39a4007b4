"""`kvlint lock` writes what is known of the models in use, and `check` holds the project to it."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import DENSE, FIRST, SECOND

SERVE = "#!/bin/sh\nexec uvx --from vllm==0.13.0 vllm serve acme/dense --max-model-len 16384\n"


def test_a_model_of_the_hub(folder: Any) -> None:
    folder.write({"serve.sh": SERVE})
    assert "catalogue" in str(folder.server()["unknown"])
    folder.hub.add("acme/dense", total=8_190_735_360, config__json=DENSE)
    done = folder.kvlint("lock")
    assert (done.status, done.out, done.err) == (0, f"added acme/dense at {FIRST}\n", "")
    text = (folder.root / "kvlint.lock").read_text()
    assert text.startswith('{\n  "//": "written by kvlint lock')
    (row,) = folder.lock["models"]
    assert (row["id"], row["revision"], row["dtype"], row["parameters"]) == (
        "acme/dense",
        FIRST,
        "bfloat16",
        8_190_735_360,
    )
    assert row["config"] == {key: value for key, value in DENSE.items() if key != "bos_token_id"}

    server = folder.server()
    assert server["sizing"]["kv_bytes_per_token"]["value"] == 36 * 8 * 128 * 2 * 2
    assert server["sizing"]["weights_bytes"]["value"] == 8_190_735_360 * 2
    assert folder.drift() == []
    assert folder.kvlint("show").out.count("kvlint.lock, acme/dense")


def test_a_locked_model_is_not_asked_for_again(folder: Any) -> None:
    folder.write({"serve.sh": SERVE})
    folder.hub.add("acme/dense", config__json=DENSE)
    folder.kvlint("lock")
    before = (folder.root / "kvlint.lock").read_bytes()
    folder.hub.asked.clear()
    folder.hub.add("acme/dense", SECOND, config__json={**DENSE, "num_hidden_layers": 40})
    assert folder.kvlint("lock").out == "kvlint.lock is up to date\n"
    assert folder.hub.asked == []
    assert (folder.root / "kvlint.lock").read_bytes() == before
    checked = folder.kvlint("lock", "--check")
    assert checked.status == 1
    assert checked.out == f"serve.sh:2: acme/dense is at {SECOND} now, and is locked at {FIRST}\n"
    assert folder.kvlint("lock", "--refresh").out == f"changed acme/dense at {SECOND}\n"
    assert folder.kvlint("lock", "--check").status == 0
    assert folder.server()["sizing"]["kv_bytes_per_token"]["value"] == 40 * 8 * 128 * 2 * 2


def test_the_lock_beats_the_catalogue(folder: Any) -> None:
    folder.write({"serve.sh": SERVE.replace("acme/dense", "Qwen/Qwen3-8B")})
    assert folder.server()["sizing"]["kv_bytes_per_token"]["value"] == 147_456
    folder.hub.add("Qwen/Qwen3-8B", config__json={**DENSE, "num_hidden_layers": 18})
    folder.kvlint("lock")
    assert folder.server()["sizing"]["kv_bytes_per_token"]["value"] == 147_456 // 2


def test_a_count_that_the_hub_does_not_give_is_the_catalogues(folder: Any) -> None:
    folder.write({"serve.sh": SERVE.replace("acme/dense", "Qwen/Qwen3-8B")})
    known = folder.server()["sizing"]["weights_bytes"]["value"]
    folder.hub.add("Qwen/Qwen3-8B", config__json=DENSE)
    folder.kvlint("lock")
    assert folder.server()["sizing"]["weights_bytes"]["value"] == known
    folder.hub.add("Qwen/Qwen3-8B", config__json={**DENSE, "num_hidden_layers": 18})
    folder.kvlint("lock", "--refresh")
    assert "weights_bytes" not in folder.server()["sizing"]


def test_a_pinned_revision_is_not_looked_up(folder: Any) -> None:
    folder.write({"serve.sh": SERVE.replace("dense", f"dense --revision {FIRST}")})
    folder.hub.add("acme/dense", config__json=DENSE)
    folder.kvlint("lock")
    assert folder.lock["models"][0]["asked"] == FIRST
    folder.hub.error = OSError("no route")
    assert folder.kvlint("lock", "--check").status == 0
    folder.write({"serve.sh": SERVE.replace("dense", f"dense --revision {SECOND}")})
    assert (
        folder.kvlint("lock", "--check").out == f"serve.sh:2: acme/dense is not in kvlint.lock at revision {SECOND}\n"
    )
    assert [severity for severity, *_ in folder.drift()] == ["error"]


def test_models_that_go_and_come(folder: Any) -> None:
    folder.write({"serve.sh": SERVE})
    folder.hub.add("acme/dense", config__json=DENSE)
    folder.hub.add("acme/other", SECOND, config__json=DENSE)
    folder.kvlint("lock")
    folder.write({"serve.sh": SERVE.replace("dense", "other")})
    message = "acme/other is not in kvlint.lock; run `kvlint lock`"
    assert folder.drift() == [("error", "serve.sh", 2, message)]
    assert folder.kvlint("lock", "--check").status == 1
    assert folder.kvlint("lock").out == f"added acme/other at {SECOND}\nremoved acme/dense\n"
    assert folder.drift() == []


def test_only_paths_are_locked_and_the_rest_is_kept(folder: Any) -> None:
    folder.write({"a/serve.sh": SERVE, "b/serve.sh": SERVE.replace("dense", "other")})
    folder.hub.add("acme/dense", config__json=DENSE)
    folder.hub.add("acme/other", config__json=DENSE)
    assert folder.kvlint("lock", "a").out == f"added acme/dense at {FIRST}\n"
    assert folder.kvlint("lock", "--check", "a").status == 0
    assert folder.kvlint("lock", "--check").status == 1
    assert folder.kvlint("lock", "b").out == f"added acme/other at {FIRST}\n"
    assert [row["id"] for row in folder.lock["models"]] == ["acme/dense", "acme/other"]


def test_a_local_directory(folder: Any) -> None:
    folder.write({"models/own/config.json": DENSE, "serve.sh": SERVE.replace("acme/dense", "./models/own")})
    assert folder.kvlint("lock").out == "added ./models/own (models/own/config.json)\n"
    assert folder.hub.asked == []
    (row,) = folder.lock["models"]
    assert set(row) == {"id", "path", "sha256"}
    assert folder.drift() == []
    text = (folder.root / "models/own/config.json").read_bytes()
    (folder.root / "models/own/config.json").write_bytes(text + b"\r\n")
    assert folder.drift(), "the text differs"
    (folder.root / "models/own/config.json").write_bytes(text)
    folder.write({"models/own/config.json": {**DENSE, "num_hidden_layers": 40}})
    (finding,) = folder.drift()
    assert finding[0] == "error"
    assert "was locked from models/own/config.json, which has changed since" in finding[3]
    assert folder.kvlint("lock", "--check").status == 1
    assert folder.kvlint("lock").out == "changed ./models/own (models/own/config.json)\n"
    assert folder.kvlint("lock", "--check").status == 0


def test_a_configuration_that_is_given(folder: Any) -> None:
    folder.write(
        {
            "serve.sh": SERVE,
            "facts/dense.json": DENSE,
            "kvlint.toml": '[[model]]\nid = "acme/dense"\nconfig = "facts/dense.json"\n',
        }
    )
    assert folder.kvlint("lock").status == 0
    assert folder.lock["models"][0]["path"] == "facts/dense.json"
    assert folder.hub.asked == []
    folder.write({"facts/dense.json": {**DENSE, "head_dim": 64}})
    assert folder.kvlint("lock", "--check").status == 1


def test_a_directory_outside_the_project(folder: Any) -> None:
    outside = folder.root.parent / "store"
    folder.write({"serve.sh": SERVE.replace("acme/dense", str(outside))})
    assert folder.kvlint("lock").err == f"kvlint: {outside} is not on this machine, and is not locked\n"
    folder.write({str(outside / "config.json"): DENSE})
    assert folder.kvlint("lock").status == 0
    assert folder.server()["sizing"]["kv_bytes_per_token"]["value"] == 147_456
    folder.write({str(outside / "config.json"): {**DENSE, "head_dim": 64}})
    assert folder.drift() == [], "the rule stays inside the project"
    assert folder.kvlint("lock", "--check").status == 1


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (
            "uvx --from mlx-lm==0.32.2 mlx_lm.server --model acme/dense --draft-model acme/draft",
            ["acme/dense", "acme/draft"],
        ),
        ("llama-server -hf acme/dense:Q4_K_M", ["acme/dense"]),
        ("llama-server -m models/dense.gguf", []),
        ("llama-server -m /models/dense.gguf", []),
    ],
)
def test_what_is_a_repository(folder: Any, line: str, asked: list[str]) -> None:
    folder.write({"serve.sh": f"#!/bin/sh\nexec {line}\n"})
    folder.hub.add("acme/dense", config__json=DENSE)
    folder.hub.add("acme/draft")
    assert folder.kvlint("lock").status == 0
    assert sorted(set(folder.hub.asked)) == asked


def test_unreachable_is_5_in_one_line_and_writes_nothing(folder: Any) -> None:
    folder.write({"serve.sh": SERVE})
    done = folder.kvlint("lock")
    assert (done.status, done.out) == (5, "")
    assert done.err.startswith("kvlint: acme/dense: the hub has no such repository")
    assert done.err.count("\n") == 1
    folder.hub.error = ConnectionError("[Errno -3] Temporary failure in name resolution\nand more")
    done = folder.kvlint("lock")
    assert (done.status, done.err) == (5, "kvlint: acme/dense: the hub cannot be reached (ConnectionError)\n")
    assert not (folder.root / "kvlint.lock").exists()


def test_offline_by_choice(folder: Any) -> None:
    from huggingface_hub.errors import OfflineModeIsEnabled

    folder.write({"serve.sh": SERVE})
    folder.hub.add("acme/dense", config__json=DENSE)
    folder.kvlint("lock")
    folder.hub.error = OfflineModeIsEnabled("off")
    done = folder.kvlint("lock", "--check")
    assert (done.status, done.err) == (
        0,
        "kvlint: acme/dense: HF_HUB_OFFLINE is set: whether it moved is not known\n",
    )
    assert folder.kvlint("lock", "--refresh").status == 5


def test_usage(folder: Any) -> None:
    folder.write({"serve.sh": SERVE})
    assert folder.kvlint("lock", "--check", "--refresh").status == 2
    assert folder.kvlint("lock", "--server", "serve").status == 2
    assert folder.kvlint("lock", "nowhere").status == 2
    assert folder.kvlint("lock", "--from-log", "missing.log").status == 2
    assert folder.kvlint("lock", "--check").status == 1
    folder.write({"kvlint.lock": "{"})
    assert folder.kvlint("lock").status == 2
    assert folder.kvlint("lock", "--check").status == 2
    ((severity, path, line, message),) = folder.drift()
    assert (severity, path, line) == ("error", "kvlint.lock", 1)
    assert message.startswith("kvlint.lock cannot be read: ")


def test_nothing_to_lock(folder: Any) -> None:
    folder.write({"web.sh": "#!/bin/sh\nexec nginx\n"})
    assert folder.kvlint("lock").out == "no model in use was found that can be locked\n"
    assert not (folder.root / "kvlint.lock").exists()
