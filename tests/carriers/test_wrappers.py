from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlint.carriers.wrappers.options import table
from kvlint.carriers.wrappers.programs import Unwrapped, installs, nested, unwrap
from kvlint.command import CommandLine
from kvlint.formats.shell import commands
from kvlint.source import HOLE, Source, Text

ROOT = Path(__file__).resolve().parents[2]


def through(line: str, env: dict[str, Text] | None = None) -> Unwrapped:
    script = commands(Text.of(Source("run.sh", line), 0, len(line)), env or {})
    (found,) = script.commands
    return unwrap(found.words, found.env, shell=True)


def words(line: CommandLine) -> list[str]:
    return [word.value for word in line.words]


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --port 1",
        "exec vllm serve m --port 1",
        "exec -a name nohup vllm serve m --port 1",
        "command vllm serve m --port 1",
        "env vllm serve m --port 1",
        "env -u A -C /srv B=2 vllm serve m --port 1",
        "env --unset=A --chdir /srv -- vllm serve m --port 1",
        'env -S "B=2 vllm serve" m --port 1',
        "/usr/bin/env -i vllm serve m --port 1",
        "nice -n 10 vllm serve m --port 1",
        "nice -10 vllm serve m --port 1",
        "ionice -c2 -n 0 vllm serve m --port 1",
        "stdbuf -oL -e0 vllm serve m --port 1",
        "setsid -w vllm serve m --port 1",
        "timeout -k 5 --signal=INT 1h vllm serve m --port 1",
        "taskset -c 0-7 vllm serve m --port 1",
        "taskset 0xff vllm serve m --port 1",
        "numactl --cpunodebind=0 -m 0 vllm serve m --port 1",
        "caffeinate -ism vllm serve m --port 1",
        "sudo -E -u llm HF_HOME=/x vllm serve m --port 1",
        "sudo --preserve-env=A,B -- vllm serve m --port 1",
        "doas -u llm vllm serve m --port 1",
        'xvfb-run -a --server-args="-screen 0" vllm serve m --port 1',
        "tini -s -g -- vllm serve m --port 1",
        "dumb-init vllm serve m --port 1",
        "gosu llm:llm vllm serve m --port 1",
        "su-exec llm vllm serve m --port 1",
        "runuser -u llm -- vllm serve m --port 1",
        "conda run --no-capture-output -n vllm vllm serve m --port 1",
        "micromamba run -p /opt/env -e A=1 vllm serve m --port 1",
        "poetry run vllm serve m --port 1",
        "poetry -C /srv run vllm serve m --port 1",
        "pdm run -p . vllm serve m --port 1",
        "pixi run -e cuda vllm serve m --port 1",
        "hatch run vllm serve m --port 1",
        "hatch -e x run serve:vllm serve m --port 1",
        "uv run vllm serve m --port 1",
        "uv --quiet run --frozen --extra cuda -p 3.12 -- vllm serve m --port 1",
        "uvx vllm serve m --port 1",
        "uv tool run --python 3.12 vllm serve m --port 1",
        "pipx run --spec vllm vllm serve m --port 1",
        "nix run nixpkgs#vllm -- serve m --port 1",
        "nix run --impure --override-input a b github:o/r#python3Packages.vllm -- serve m --port 1",
        "nix develop .#cuda -c vllm serve m --port 1",
        "nix shell nixpkgs#vllm --command vllm serve m --port 1",
        "direnv exec . vllm serve m --port 1",
        "dotenv -f .env run -- vllm serve m --port 1",
        "op run --env-file=.env -- vllm serve m --port 1",
        "doppler run -p a -c b -- vllm serve m --port 1",
        "srun -N1 --gres=gpu:8 --ntasks-per-node 1 --exclusive vllm serve m --port 1",
        "mpirun -np 2 --allow-run-as-root --mca a b -x A=1 vllm serve m --port 1",
        "systemd-run --user --scope -p MemoryMax=64G vllm serve m --port 1",
        "screen -dmS llm vllm serve m --port 1",
        "tmux new-session -d -s llm vllm serve m --port 1",
        "docker exec -it -e A=1 box vllm serve m --port 1",
        "apptainer exec --nv -B /a:/b vllm.sif vllm serve m --port 1",
        "docker run --rm --entrypoint vllm img serve m --port 1",
        "docker run --entrypoint= img vllm serve m --port 1",
        "exec nohup sudo -E numactl -l uv run -- timeout 5 vllm serve m --port 1",
    ],
)
def test_the_program_behind_wrappers(line: str) -> None:
    found = through(line)
    assert words(found.line) == ["vllm", "serve", "m", "--port", "1"]
    assert found.uncertain is None
    assert found.line.shell
    assert [word.span.text for word in found.line.args] == ["serve", "m", "--port", "1"]


@pytest.mark.parametrize(
    "line",
    [
        "python -m mlx_lm.server --port 1",
        "python3.11 -u -X faulthandler -m mlx_lm.server --port 1",
        '"$VENV/bin/python3" -Om mlx_lm.server --port 1',
        "uv run -m mlx_lm.server --port 1",
        "uv run --with mlx-lm python -m mlx_lm.server --port 1",
        "conda run -n mlx python -mmlx_lm.server --port 1",
    ],
)
def test_modules_of_python(line: str) -> None:
    found = through(line).line
    assert words(found) == ["mlx_lm.server", "--port", "1"]
    assert found.program is not None
    assert found.program.span.text == "mlx_lm.server"
    assert found.wrappers[-1].name == "python -m"


def test_scripts_of_python() -> None:
    assert words(through("python -u server.py --port 1").line) == ["server.py", "--port", "1"]
    assert words(through("uv run server.py --port 1").line) == ["server.py", "--port", "1"]
    assert words(through("python -c 'import vllm'").line) == ["python", "-c", "import vllm"]


def test_wrappers_are_kept_with_their_words() -> None:
    found = through("exec nohup numactl -m 0 vllm serve").line
    assert [(w.name, w.span.text) for w in found.wrappers][:2] == [("exec", "exec"), ("nohup", "nohup")]
    last = found.wrappers[-1].span
    assert (last.column, last.end_column) == (12, 24)


@pytest.mark.parametrize(
    ("line", "pins"),
    [
        ("uvx --from vllm==0.11.0 vllm serve", [("vllm", "0.11.0")]),
        ("uvx --from 'mlx-lm[x]==0.31.3' mlx_lm.server", [("mlx-lm", "0.31.3")]),
        ("uvx vllm@0.11.2 serve", [("vllm", "0.11.2")]),
        ("uvx vllm@latest serve", []),
        ("uv run --with vllm==0.11.0 --with=mlx-lm==0.30.6 vllm serve", [("vllm", "0.11.0"), ("mlx-lm", "0.30.6")]),
        ("uv run --with 'vllm>=0.11' vllm serve", []),
        ("uv run --with vllm==0.11.* vllm serve", []),
        ("pipx run --spec vllm==0.9.2 vllm serve", [("vllm", "0.9.2")]),
        ('uvx --from "vllm==$V" vllm serve', []),
    ],
)
def test_versions_that_the_line_fixes(line: str, pins: list[tuple[str, str]]) -> None:
    found = through(line).line
    assert [(pin.distribution, pin.version.value) for pin in found.pins] == pins
    assert all(pin.version.span.text == pin.version.value for pin in found.pins)


@pytest.mark.parametrize(
    ("line", "versions"),
    [
        ("pip install -U vllm==0.11.0 torch", ["0.11.0"]),
        ("python3 -m pip install --no-cache-dir 'vllm[audio]==0.10.2'", ["0.10.2"]),
        ("uv pip install --system mlx-lm==0.31.3", ["0.31.3"]),
        ("pip install vllm", []),
        ("pip freeze vllm==1", []),
        ("vllm install vllm==1", []),
    ],
)
def test_versions_that_an_installation_fixes(line: str, versions: list[str]) -> None:
    script = commands(Text.of(Source("x", line), 0, len(line)))
    assert [pin.version.value for pin in installs(script.commands[0].words)] == versions


class TestEnvironment:
    @pytest.mark.parametrize(
        ("line", "env"),
        [
            ("env A=1 B='x y' vllm", {"OUTER": "1", "A": "1", "B": "x y"}),
            ("env -i A=1 vllm", {"A": "1"}),
            ("env -u OUTER vllm", {}),
            ("sudo vllm", {}),
            ("sudo -E A=2 vllm", {"OUTER": "1", "A": "2"}),
            ("docker run -e A=1 -eB=2 --env C=3 img", {"A": "1", "B": "2", "C": "3"}),
            ("docker run -e OUTER img", {"OUTER": "1"}),
            ("mpirun -x A=1 -x OUTER vllm", {"OUTER": "1", "A": "1"}),
            ("A=0 env A=1 vllm", {"OUTER": "1", "A": "1"}),
        ],
    )
    def test_variables(self, line: str, env: dict[str, str]) -> None:
        found = through(line, {"OUTER": Text("1")}).line
        assert {name: value.value for name, value in found.env.items()} == env

    def test_places(self) -> None:
        found = through("env CUDA_VISIBLE_DEVICES=0,1 vllm").line
        span = found.env["CUDA_VISIBLE_DEVICES"].span
        assert (span.text, span.column) == ("0,1", 26)

    def test_a_variable_that_is_passed_on_unseen(self) -> None:
        (hole,) = through("docker run -e HF_TOKEN img").line.env["HF_TOKEN"].holes
        assert hole.supply == "the value of HF_TOKEN"

    @pytest.mark.parametrize(
        ("line", "supply"),
        [
            ("docker run --env-file vllm.env img", "vllm.env"),
            ("op run --env-file=.env -- vllm", ".env"),
            ("uv run --env-file .env vllm", ".env"),
            ("env $VARS vllm", "the value of VARS"),
            ("direnv exec . vllm", "what direnv exec sets"),
        ],
    )
    def test_what_may_set_more(self, line: str, supply: str) -> None:
        assert through(line).line.env_open[0].supply == supply


class TestContainers:
    LINE = (
        "docker --context gpu run -d --rm -it --name llm --gpus '\"device=0,1\"' --shm-size=16g --ipc host -m 64g "
        "--runtime nvidia --network host -p 8000:8000 -p9000:9000 -v ~/.cache:/root/.cache --device /dev/dri "
        "--ulimit memlock=-1 --env-file a.env vllm/vllm-openai:v0.11.0 --model m --port 8000"
    )

    def test_options_image_and_arguments(self) -> None:
        found = through(self.LINE)
        assert found.line.program is None
        assert found.line.image is not None
        assert found.line.image.span.text == "vllm/vllm-openai:v0.11.0"
        assert words(found.line) == ["--model", "m", "--port", "8000"]
        container = found.container
        assert container is not None
        single = (container.name, container.gpus, container.shm_size, container.ipc, container.memory)
        assert [text and text.value for text in single] == ["llm", '"device=0,1"', "16g", "host", "64g"]
        assert container.shm_size is not None
        assert container.shm_size.span.text == "16g"
        assert [port.value for port in container.ports] == ["8000:8000", "9000:9000"]
        assert [text.value for text in (*container.devices, *container.volumes)] == [
            "/dev/dri",
            "~/.cache:/root/.cache",
        ]

    def test_an_entrypoint_that_is_a_shell(self) -> None:
        found = through("docker run --entrypoint /bin/bash img -c 'vllm serve m'").line
        script = nested(found.words)
        assert script is not None
        assert [word.value for word in script.commands[0].words] == ["vllm", "serve", "m"]

    def test_relatives(self) -> None:
        for line in (
            "podman run --device nvidia.com/gpu=all --replace img:1 --model m",
            "nerdctl run --gpus all img:1 --model m",
            "docker container run img:1 --model m",
            "sudo docker run img:1 --model m",
            "singularity run --nv docker://img:1 --model m",
        ):
            found = through(line).line
            assert (found.image and found.image.value, words(found)) == ("img:1", ["--model", "m"])

    def test_a_service_of_compose(self) -> None:
        for program in ("docker compose", "docker-compose"):
            found = through(f"{program} -f a.yml --profile gpu run --rm -e A=1 llm --model m")
            assert found.container is not None
            assert found.container.service is not None
            assert found.container.service.value == "llm"
            assert (found.line.program, words(found.line)) == (None, ["--model", "m"])
        assert words(through("docker compose up -d").line) == ["docker", "compose", "up", "-d"]

    def test_an_image_for_a_slurm_step(self) -> None:
        found = through("srun --container-image=docker://vllm/vllm-openai:v0.11.0 vllm serve").line
        assert found.image is not None
        assert found.image.value == "vllm/vllm-openai:v0.11.0"

    def test_interpolations_among_options(self) -> None:
        found = through("docker run $OPTS --gpus all img:1 --model m")
        assert found.line.image is not None
        assert (found.line.image.value, found.line.env_open[0].supply) == ("img:1", "the value of OPTS")
        found = through('docker run --gpus all "$IMAGE" --model m')
        assert found.line.image is not None
        assert found.line.image.value == HOLE
        assert through("docker run $WHAT img:1 --model m").uncertain is not None


class TestDoubt:
    @pytest.mark.parametrize(
        ("line", "word"),
        [
            ("docker run --not-an-option img vllm", "--not-an-option"),
            ("timeout --not-an-option 5 vllm", "--not-an-option"),
            ("sudo -Ez vllm", "-Ez"),
            ("docker run --$X img", "--$X"),
        ],
    )
    def test_an_unknown_option_stops_the_passage(self, line: str, word: str) -> None:
        found = through(line)
        assert found.line.program is not None
        assert found.line.program.value == line.split()[0]
        assert found.uncertain is not None
        assert found.uncertain.span.text == word

    def test_an_interpolation_before_the_program(self) -> None:
        found = through("$SUDO vllm serve m")
        assert words(found.line) == ["vllm", "serve", "m"]
        assert found.uncertain is not None
        assert found.uncertain.supply == "the value of SUDO"
        found = through('"$PYTHON" -m mlx_lm.server --port 1')
        assert words(found.line) == ["mlx_lm.server", "--port", "1"]
        assert found.uncertain is not None
        assert words(through('"$SERVER" -m model.gguf').line) == [HOLE, "-m", "model.gguf"]

    def test_arguments_that_come_apart(self) -> None:
        found = through('vllm serve m $EXTRA --port "$PORT" "$@"').line
        assert [(opening.index, opening.supply) for opening in found.open] == [
            (2, "the value of EXTRA"),
            (5, "the arguments of the script"),
        ]

    @pytest.mark.parametrize(
        "line", ["env", "sudo -i", "command -v vllm", "nix-shell -p vllm", "su - llm", "torchrun -n 1 x"]
    )
    def test_what_starts_nothing_stays(self, line: str) -> None:
        assert words(through(line).line) == line.split()


class TestShells:
    @pytest.mark.parametrize(
        "line",
        [
            "sh -c 'vllm serve \"$1\"' x m",
            "/bin/bash -euxo pipefail -c 'exec -a x vllm serve \"$1\"' x m",
            "bash -lc -- 'vllm serve \"$@\"' -- m",
            "bash --norc -o pipefail -lc 'vllm serve \"$1\"' x m",
        ],
    )
    def test_the_script_of_a_shell(self, line: str) -> None:
        from kvlint.formats.shell import split

        script = nested(split(Text.of(Source("x", line), 0, len(line))))
        assert script is not None
        assert [word.value for word in script.commands[0].words][-3:] == ["vllm", "serve", "m"]

    def test_words_of_a_manifest(self) -> None:
        source = Source("d.yaml", "[/bin/bash, -lc, --, exec vllm serve $MODEL --port $0]")
        places = [(1, 10), (12, 15), (17, 19), (21, 53)]
        script = nested([Text.of(source, a, b) for a, b in places], {"MODEL": Text.of(source, 1, 4)})
        assert script is not None
        assert [word.value for word in script.commands[0].words] == [
            "exec",
            "vllm",
            "serve",
            "/bi",
            "--port",
            "/bin/bash",
        ]
        assert script.commands[0].words[1].span.column == 27

    def test_other_words_have_none(self) -> None:
        assert nested([Text("vllm"), Text("-c"), Text("x")]) is None
        assert nested([Text("bash"), Text("run.sh")]) is None
        assert nested([]) is None

    @pytest.mark.parametrize(
        "line",
        [
            "su - llm -c 'vllm serve m'",
            "flock -n /tmp/l -c 'vllm serve m'",
            "nix-shell -p vllm python3 --run 'vllm serve m'",
            "tmux new -d -s llm 'vllm serve m'",
            "tmux send-keys -t llm 'vllm serve m' C-m",
            "doppler run --command 'vllm serve m'",
            "srun -n1 bash -c 'vllm serve m'",
        ],
    )
    def test_wrappers_that_give_a_string_to_a_shell(self, line: str) -> None:
        script = nested(through(line).line.words)
        assert script is not None
        (found,) = script.commands
        assert [word.span.text for word in found.words] == ["vllm", "serve", "m"]


def test_the_compiled_tables_are_current() -> None:
    done = subprocess.run([sys.executable, "scripts/build_wrappers.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_tables_follow_each_other() -> None:
    podman, docker = table("podman run"), table("docker run")
    assert podman is not None
    assert docker is not None
    assert podman.lists["values"] > docker.lists["values"]


NAMES = ["env", "sudo", "docker", "run", "uv", "tool", "uvx", "nix", "python", "exec", "timeout", "flock", "tmux", "su"]
OPTIONS = ["-c", "-m", "--", "-", "-it", "-e", "A=1", "-S", "--x=y", "--entrypoint"]
WORDS = st.sampled_from([*NAMES, *OPTIONS, "", HOLE, "new", "vllm", "a b"])


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=12))
def test_whatever_the_words_the_passage_ends(values: list[str]) -> None:
    source = Source("x", " ".join(values))
    found = []
    at = 0
    for value in values:
        span = source.span(at, at + len(value))
        found.append(Text.unknown(span, "?", splice=True) if value == HOLE else Text.at(value, span))
        at += len(value) + 1
    line = unwrap(found).line
    assert len(line.words) <= 3 * len(values) + 3
    nested(line.words)
    installs(found)
