"""The choice of an engine, and its commands to run something in an image, with stand-ins on PATH."""

import subprocess

import pytest

from pipelines.errors import BadInputError
from pipelines.kubeflow.local_execution.container_engine import find_engine, image_container


@pytest.fixture
def engines(tmp_path, monkeypatch):
    """Puts a program of the name on PATH, which holds nothing else; it writes down its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("IMAGE_ENGINE", raising=False)
    monkeypatch.delenv("BUILDAH_ISOLATION", raising=False)

    def put(name, body):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/calls"\n{body}\n')
        program.chmod(0o755)

    put.calls = lambda: (tmp_path / "calls").read_text().splitlines()
    return put


def test_a_docker_client_without_an_engine_does_not_count(engines):
    engines("docker", 'echo "Cannot connect to the Docker daemon" >&2; exit 1')
    engines("buildah", "exit 0")
    assert find_engine() == "buildah"
    assert engines.calls() == ["docker info", "buildah info"]


@pytest.mark.parametrize(
    ("codes", "named", "engine"),
    [
        ({"buildah": 0, "podman": 0, "docker": 0}, None, "docker"),
        ({"buildah": 0, "podman": 0, "docker": 1}, None, "podman"),
        ({"podman": 0, "docker": 0}, "podman", "podman"),
    ],
)
def test_docker_comes_before_podman_unless_an_engine_is_named(engines, monkeypatch, codes, named, engine):
    for name, code in codes.items():
        engines(name, f"exit {code}")
    if named:
        monkeypatch.setenv("IMAGE_ENGINE", named)
    assert find_engine() == engine


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("podman", r"`podman info` fails. Received: IMAGE_ENGINE=podman"),
        ("podmen", r"Available: podman, .* Received: IMAGE_ENGINE=podmen"),
    ],
)
def test_a_named_engine_must_work(engines, monkeypatch, named, message):
    engines("docker", "exit 0")
    engines("podman", "exit 125")
    monkeypatch.setenv("IMAGE_ENGINE", named)
    with pytest.raises(BadInputError, match=message):
        find_engine()


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_the_command_replaces_the_entry_point(engines, name):
    engines(name, "exit 0")
    with image_container("registry.local/image:7") as container:
        command = container.command(
            ["python", "-m", "pipelines", "--help"],
            {"TF_CONFIG": '{"task": 1}', "B": "2"},
            {"/data": "/in", "/out": "/out"},
            "1234:77",
        )
    assert command == [
        *(name, "run", "--rm", '--env=TF_CONFIG={"task": 1}', "--env=B=2"),
        *("--volume=/data:/in", "--volume=/out:/out", "--user=1234:77"),
        *("--entrypoint=python", "registry.local/image:7", "-m", "pipelines", "--help"),
    ]


def test_buildah_runs_all_commands_in_one_working_container_and_removes_it(engines):
    engines("buildah", 'if [ "$1" = from ]; then echo image-working-container-3; fi')
    with image_container("localhost/image") as container:
        command = container.command(["id", "-u"], {"A": "1"}, {"/data": "/in"})
        as_another = container.command(["id", "-g"], user="7:8")
    assert command == [
        *("buildah", "run", "--isolation=chroot", "--env=A=1", "--volume=/data:/in"),
        *("image-working-container-3", "--", "id", "-u"),
    ]
    assert as_another[3:] == ["--user=7:8", "image-working-container-3", "--", "id", "-g"]
    assert engines.calls() == [
        "buildah info",
        "buildah from --pull-never localhost/image",
        "buildah rm image-working-container-3",
    ]


def test_the_working_container_goes_when_a_command_fails(engines):
    engines("buildah", 'if [ "$1" = from ]; then echo working; fi; if [ "$1" = run ]; then exit 9; fi')
    with pytest.raises(subprocess.CalledProcessError), image_container("localhost/image") as container:
        subprocess.run(container.command(["false"]), check=True)
    assert engines.calls()[-1] == "buildah rm working"


@pytest.mark.parametrize("said", ["image not known", "image not known."])
def test_an_image_that_is_not_there(engines, said):
    engines("buildah", f'[ "$1" = info ] || {{ echo "{said}" >&2; exit 125; }}')
    message = r": image not known\. Build it with `make image`\. Received: image=localhost/none"
    with pytest.raises(BadInputError, match=message), image_container("localhost/none"):
        pass


@pytest.mark.parametrize(
    ("line", "is_of_buildah"),
    [
        ("subprocess exited with status 2", True),
        ("subprocess exited on killed", True),
        ("Error: exit status 2", True),
        ("Error: while running runtime: exit status 1", True),
        ("Plan: data.label: the process returned exit status 2", False),
        ("Error: no such container", False),
    ],
)
def test_what_buildah_prints_when_a_command_failed_is_known(engines, line, is_of_buildah):
    engines("buildah", '[ "$1" = from ] && echo working; exit 0')
    with image_container("image") as container:
        assert bool(container.added_lines.fullmatch(line)) is is_of_buildah
