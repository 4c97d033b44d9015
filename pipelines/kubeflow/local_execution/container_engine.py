"""Runs commands in a container image with docker, podman or buildah: the first that works here.

    with image_container("localhost/estimator-pipelines") as container:
        subprocess.run(container.command(["python", "--version"]), check=True)

Commands run in the image's working directory, instead of its entry point, as Kubernetes does when a container
spec has a `command`.
"""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from components.nearest import nearest_first
from pipelines.errors import BadInputError
from pipelines.kubeflow.local_execution.containers import Container, Engine, Process
from pipelines.root import Root

ENGINE_VARIABLE = "IMAGE_ENGINE"
"""Environment variable that names the engine. Default: the first one that works."""

_ENGINES = ("docker", "podman", "buildah")  # in the order in which they are tried
_PROBE_SECS = 30.0
_LAST_LINES_OF_BUILDAH = re.compile(
    r"subprocess exited (with status \d+|on .+)|Error: (.+: )?exit(ed with)? status \d+"
)


@dataclass(frozen=True)
class ImageContainer:
    """An image that is ready to run any number of commands."""

    start: tuple[str, ...]  # Beginning of the engine's command, which its options follow
    # Function that returns the rest of it, for a program and its arguments.
    end: Callable[[Sequence[str]], Sequence[str]]
    # Pattern of the lines that the engine adds to the output of a command that failed.
    added_lines: re.Pattern[str] | None = None

    def command(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        mounts: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> list[str]:
        """Returns the command of this machine that runs `argv` in the container.

        `user`: user that it runs as, `UID:GID`. Default: the image's.
        """
        return [
            *self.start,
            *(f"--env={name}={value}" for name, value in (env or {}).items()),
            *(f"--volume={source}:{target}" for source, target in (mounts or {}).items()),
            *(() if user is None else (f"--user={user}",)),
            *self.end(argv),
        ]


@contextlib.contextmanager
def image_container(image: str) -> Iterator[ImageContainer]:
    """Yields a container of an image, and removes its resources at the end."""
    engine = find_engine()
    if engine != "buildah":  # each command gets its own container
        yield ImageContainer(
            (engine, "run", "--rm"), lambda argv: (f"--entrypoint={argv[0]}", image, *argv[1:])
        )
        return
    made = subprocess.run(
        ["buildah", "from", "--pull-never", image], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise BadInputError(
            f"buildah has no such image here: {made.stderr.strip().rstrip('.')}. "
            f"Build it with `make image`. Received: image={image}"
        )
    working = made.stdout.strip()
    # chroot needs no user namespaces and no runtime, and works inside a container, too.
    isolation = os.environ.get("BUILDAH_ISOLATION", "chroot")
    try:
        yield ImageContainer(
            ("buildah", "run", f"--isolation={isolation}"),
            lambda argv: (working, "--", *argv),
            _LAST_LINES_OF_BUILDAH,
        )
    finally:
        subprocess.run(["buildah", "rm", working], capture_output=True, check=False)


def find_engine() -> str:
    """Returns the engine that `IMAGE_ENGINE` names, or the first that works here.

    A docker client without an engine does not work: `docker info` fails.
    """
    name = os.environ.get(ENGINE_VARIABLE)
    if name and name not in _ENGINES:
        raise BadInputError(
            f"There is no such container engine. Available: "
            f"{', '.join(nearest_first(name, _ENGINES))}. Received: {ENGINE_VARIABLE}={name}"
        )
    for engine in (name,) if name else _ENGINES:
        if _works(engine):
            return engine
    if name:
        raise BadInputError(f"`{name} info` fails. Received: {ENGINE_VARIABLE}={name}")
    raise BadInputError(
        f"No container engine works here: `info` fails for each of {', '.join(_ENGINES)}. Install and start "
        "one of them."
    )


def _works(name: str) -> bool:
    if shutil.which(name) is None:
        return False
    try:
        probe = subprocess.run([name, "info"], capture_output=True, timeout=_PROBE_SECS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return probe.returncode == 0


@contextlib.contextmanager
def in_image(image: str) -> Iterator[Engine]:
    """Yields an engine that runs containers in an image, with the image's code, and cleans up at the end.

    For a caller other than root, containers run as the caller, who thus owns their files. For root, they
    run as the image's user (uid 1000 in ours), who gets access to the folders of the container and to the
    root of the pipeline.
    """
    is_root = os.getuid() == 0
    user = None if is_root else f"{os.getuid()}:{os.getgid()}"
    with image_container(image) as runner:

        def engine(container: Container) -> Process:
            temporary = container.folder / "tmp"
            temporary.mkdir(parents=True, exist_ok=True)
            if is_root:
                _give_to_everyone(container)
            paths = sorted({container.folder, *container.mounts})
            mounts = {  # without those below others
                str(path): str(path)
                for path in paths
                if not any(path.is_relative_to(other) and path != other for other in paths)
            }
            environment = {"TMPDIR": str(temporary), **container.environment}
            command = runner.command(container.arguments, environment, mounts, user)
            added_lines = runner.added_lines
            return Process(tuple(command), dict(os.environ), Path.cwd(), added_lines)

        yield engine


def _give_to_everyone(container: Container) -> None:
    """Lets the image's user write to the container's folder and to the root of the pipeline."""
    folder_mode, file_mode = 0o777, 0o666
    for path in (container.folder, *container.folder.rglob("*")):
        path.chmod(folder_mode if path.is_dir() else file_mode)
    if "--root" in container.arguments:
        root = Root(Path(container.arguments[container.arguments.index("--root") + 1]))
        # Otherwise this process makes it with the first log, and the steps could not write theirs.
        root.logs.mkdir(parents=True, exist_ok=True)
        # A run without the image may have made the folders of steps before.
        for path in (root.path, *root.path.glob("*"), *root.artifacts.glob("*")):
            if path.is_dir() and path.stat().st_uid == 0:
                path.chmod(folder_mode)
