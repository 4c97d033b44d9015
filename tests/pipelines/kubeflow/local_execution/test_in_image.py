"""Containers that run in an image, with a stand-in for the engine that writes down its calls."""

import os
import pathlib
import subprocess

import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.local_execution.container_engine import in_image
from pipelines.kubeflow.local_execution.containers import Container

DOCKER = """#!/bin/sh
[ "$1" = info ] && exit 0
printf '%s\\n' "$@"
"""


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """Returns a function that puts an engine on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("IMAGE_ENGINE", raising=False)

    def put(name, program):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(program)
        file.chmod(0o755)

    return put


def run(container):
    with in_image("registry.local/mine:3") as engine:
        process = engine(container)
    settings = {"env": process.environment, "cwd": process.folder, "check": True}
    return subprocess.run(process.arguments, **settings, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture
def container(tmp_path, engine, monkeypatch):
    """A container of a step; Docker is the engine, and root the caller."""
    engine("docker", DOCKER)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    folder = tmp_path / "root/containers/trainer"
    (folder / "kfp/outputs").mkdir(parents=True)
    (folder / "kfp/outputs/rows").write_text("1")
    data = tmp_path / "data"
    data.mkdir()
    for path in (tmp_path / "root", folder, folder / "kfp/outputs/rows"):
        path.chmod(0o700)
    return Container(
        "registry.local/of-the-cluster:1",
        ("python", "-m", "step", "--root", str(tmp_path / "root")),
        {"KFP_RUN_ID": "run-7"},
        folder,
        (tmp_path / "root", data),
    )


def test_the_command_runs_in_the_image_that_was_named_with_its_folders(container, tmp_path):
    assert run(container) == [
        *("run", "--rm", f"--env=TMPDIR={container.folder}/tmp", "--env=KFP_RUN_ID=run-7"),
        # The container's folder lies below the root, which is mounted.
        f"--volume={tmp_path}/data:{tmp_path}/data",
        f"--volume={tmp_path}/root:{tmp_path}/root",
        *("--entrypoint=python", "registry.local/mine:3", "-m", "step", "--root"),
        f"{tmp_path}/root",
    ]
    # A folder that is not below a mount is mounted, too.
    alone = Container("image", ("true",), {}, container.folder, (tmp_path / "data",))
    volumes = [line for line in run(alone) if line.startswith("--volume")]
    assert volumes == [
        f"--volume={tmp_path}/data:{tmp_path}/data",
        f"--volume={container.folder}:{container.folder}",
    ]


def test_a_caller_other_than_root_runs_it_as_itself(container, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1234)
    monkeypatch.setattr(os, "getgid", lambda: 77)
    assert "--user=1234:77" in run(container)
    assert container.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="root's folders must be opened to the image's user")
def test_the_user_of_the_image_may_write_what_root_has_made(container, tmp_path):
    data = tmp_path / "data"
    data.chmod(0o755)
    former = tmp_path / "root/artifacts/Trainer"
    former.mkdir(parents=True)
    run(container)
    written = {path: path.stat().st_mode & 0o777 for path in container.folder.rglob("*")}
    assert {path: mode for path, mode in written.items() if path.is_dir()} == {
        container.folder / "tmp": 0o777,
        container.folder / "kfp": 0o777,
        container.folder / "kfp/outputs": 0o777,
    }
    assert written[container.folder / "kfp/outputs/rows"] == 0o666
    for path in (tmp_path / "root", tmp_path / "root/logs", former.parent, former):
        assert path.stat().st_mode & 0o777 == 0o777
    assert pathlib.Path(data).stat().st_mode & 0o777 == 0o755


def test_without_an_engine_it_says_what_was_tried(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("IMAGE_ENGINE", raising=False)
    with pytest.raises(BadInputError, match="fails for each of docker, podman, buildah"), in_image("image"):
        pass


BUILDAH = """#!/bin/sh
case $1 in from) echo working ;; run) echo "Error: exit status 2" >&2 && exit 2 ;; esac
"""


def test_what_buildah_adds_to_a_log_is_handed_on(container, engine, monkeypatch):
    engine("buildah", BUILDAH)
    monkeypatch.setenv("IMAGE_ENGINE", "buildah")
    with in_image("mine:3") as buildah:
        assert buildah(container).added_lines.fullmatch("Error: exit status 2")
