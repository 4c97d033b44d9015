"""scripts/image/engine.sh, with stand-ins for the engines on PATH."""

import os
import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts/image/engine.sh"


@pytest.fixture
def run(tmp_path):
    """Runs the script with programs of these names and exit codes of `info`, and no others."""

    def run(engine=None, **exit_codes):
        folder = tmp_path / "bin"
        folder.mkdir()
        for name, code in exit_codes.items():
            program = folder / name
            program.write_text(f'#!/bin/sh\n[ "$1" = info ] || exit 99\nexit {code}\n')
            program.chmod(0o755)
        env = {"PATH": str(folder)} | ({"IMAGE_ENGINE": engine} if engine else {})
        return subprocess.run(["/bin/sh", str(SCRIPT)], env=env, capture_output=True, text=True, check=False)

    return run


def test_a_docker_client_without_an_engine_is_passed_over(run):
    assert run(docker=1, buildah=0).stdout == "buildah\n"


def test_docker_is_preferred(run):
    assert run(docker=0, podman=0, buildah=0).stdout == "docker\n"


def test_one_can_be_named(run):
    assert run(engine="podman", docker=0, podman=0).stdout == "podman\n"


def test_a_named_one_must_work(run):
    outcome = run(engine="podman", docker=0, podman=125)
    assert outcome.returncode == 1
    assert "'podman info' fails" in outcome.stderr
    assert "Received: IMAGE_ENGINE=podman" in outcome.stderr


def test_other_names_are_refused(run):
    outcome = run(engine="kaniko", docker=0)
    assert outcome.returncode == 1
    assert "must be docker, podman or buildah. Received: IMAGE_ENGINE=kaniko" in outcome.stderr


def test_without_any_it_says_what_was_tried_and_what_to_install(run):
    outcome = run(docker=1)
    assert outcome.returncode == 1
    assert not outcome.stdout
    assert "docker ('docker info' fails)" in outcome.stderr
    assert "podman (not installed), buildah (not installed)." in outcome.stderr
    assert "apt-get install --no-install-recommends buildah" in outcome.stderr


def test_it_can_be_executed():
    assert os.access(SCRIPT, os.X_OK)
