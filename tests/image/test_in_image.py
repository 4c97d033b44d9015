"""Runs the image that `make test-image` has built; the variable IMAGE names it.

Each test is a command that runs in the image, as its own user.
"""

import json
import os
import pathlib
import subprocess

import pytest

from pipelines.kubeflow.local_execution.container_engine import image_container

IMAGE = os.environ.get("IMAGE")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IMAGE, reason="IMAGE names no image; `make test-image` builds one"),
]

ROWS = 4000
SECRET_VARIABLES = ("PIP_INDEX_URL", "PIP_CERT", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_CONFIG_FILE")


@pytest.fixture(scope="module")
def container():
    with image_container(IMAGE) as container:
        yield container


@pytest.fixture
def run(container):
    def run(*argv, mounts=None, timeout=240, check=True):
        outcome = subprocess.run(
            container.command(argv, mounts=mounts),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        print(outcome.stdout, outcome.stderr)
        if check:
            assert outcome.returncode == 0, outcome.stderr
        return outcome

    return run


@pytest.fixture
def shared(tmp_path):
    """A folder of this machine that the image's user may write to."""
    tmp_path.chmod(0o777)
    return tmp_path


def test_it_runs_as_uid_1000_in_a_folder_of_its_own(run):
    assert run("id", "-u").stdout.strip() == "1000"
    assert run("pwd").stdout.strip() == "/home/pipelines/work"
    run("touch", "/home/pipelines/work/mine")
    assert run("touch", "/opt/venv/theirs", check=False).returncode != 0


def test_the_command_prints_its_help(run):
    assert "Usage: python -m pipelines" in run("python", "-m", "pipelines", "--help").stdout
    assert "Usage: estimator-pipelines" in run("estimator-pipelines", "--help").stdout


def test_our_code_is_that_of_the_image(run):
    program = "import estimator_core, components, pipelines; print(pipelines.__file__)"
    assert run("python", "-c", program).stdout.startswith("/opt/venv/lib/python3")


def test_there_is_no_compiler(run):
    for compiler in ("gcc", "g++", "cc", "c++", "clang"):
        assert run("which", compiler, check=False).returncode != 0


def test_nothing_of_the_builders_indexes_stayed(run):
    environment = run("env").stdout
    assert not [name for name in SECRET_VARIABLES if f"{name}=" in environment]
    assert run("sh", "-c", "ls /run/secrets/* /etc/uv/uv.toml", check=False).returncode != 0


@pytest.mark.timeout(1800)
def test_the_demo_pushes_a_model(run, shared):
    mounts = {str(shared): "/data"}
    run(
        *("python", "-m", "pipelines.examples.taxi.generate", f"--rows={ROWS}", "--seed=1"),
        *("--out", "/data/taxi.csv"),
        mounts=mounts,
    )
    config = run(
        "python",
        "-c",
        "import pipelines, pathlib;"
        "print(pathlib.Path(pipelines.__file__).parent / 'examples/taxi/taxi.toml')",
    ).stdout.strip()
    outcome = run(
        *("python", "-m", "pipelines", "run", "--config", config),
        *("--set", "data.path=/data/taxi.csv", "--set", "trainer.train_steps=400"),
        *("--root", "/data/root"),
        mounts=mounts,
        timeout=1500,
    )
    result = json.loads(outcome.stdout.splitlines()[-1])
    assert result["status"] == "pushed"
    model = shared / "root/serving" / str(result["version"]) / "saved_model.pb"
    assert model.stat().st_uid == 1000
    assert 0.6 < result["metrics"]["auc"] < 1
    assert pathlib.Path(shared / "taxi.csv").read_text().count("\n") == ROWS + 1
