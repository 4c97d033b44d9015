"""Runs commands in a container image with docker, podman or buildah, whichever works here.

A container is made once and runs any number of commands:

    with find_engine().container("localhost/estimator-pipelines") as container:
        subprocess.run(container.command(["python", "--version"]), check=True)

Commands run as the image's user (uid 1000 in ours) and in its working directory; the image's
entry point is replaced by the command, as Kubernetes does when a container spec has a `command`.
"""

import contextlib
import dataclasses
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from components.nearest import nearest_first
from pipelines.errors import BadInputError

ENGINE_VARIABLE = "IMAGE_ENGINE"
"""Environment variable that names the engine. Default: the first one that works."""

_PROBE_SECS = 30.0
_LAST_LINES_OF_BUILDAH = re.compile(
    r"subprocess exited (with status \d+|on .+)|Error: (.+: )?exit(ed with)? status \d+"
)


@dataclasses.dataclass(frozen=True)
class Mount:
    """A folder or file of this machine that the command sees.

    Attributes:
      source: Absolute path on this machine; it must exist.
      target: Absolute path inside the container.
      read_only: Keeps the command from writing to it.
    """

    source: str
    target: str
    read_only: bool = False

    def volume(self) -> str:
        """Returns the value of the option `--volume`, the same for all engines."""
        return f"{self.source}:{self.target}" + (":ro" if self.read_only else "")


class Container(Protocol):
    """An image that is ready to run commands."""

    @property
    def added_lines(self) -> re.Pattern[str] | None:
        """Pattern of the lines that the engine adds to the output of a command that failed."""

    def command(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        user: str | None = None,
    ) -> list[str]:
        """Returns the command of this machine that runs `argv` in the container.

        Args:
          argv: Program and arguments inside the container.
          env: Environment variables, in addition to the image's.
          mounts: Folders and files of this machine that the command sees.
          user: User that it runs as, `UID:GID`. Default: the image's.
        """


class Engine(Protocol):
    """A way to run images."""

    @property
    def name(self) -> str:
        """Name of the program to call."""

    def container(self, image: str) -> contextlib.AbstractContextManager[Container]:
        """Yields a container of the image, and removes its resources at the end."""


@dataclasses.dataclass(frozen=True)
class _OneCommandContainer:
    program: str
    image: str
    added_lines: re.Pattern[str] | None = None

    def command(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        user: str | None = None,
    ) -> list[str]:
        return [
            *(self.program, "run", "--rm"),
            *(f"--env={name}={value}" for name, value in (env or {}).items()),
            *(f"--volume={mount.volume()}" for mount in mounts),
            *_user_option(user),
            *(f"--entrypoint={argv[0]}", self.image),
            *argv[1:],
        ]


@dataclasses.dataclass(frozen=True)
class RunEngine:
    """Engine for docker and podman: each command gets a container of its own."""

    name: str

    @contextlib.contextmanager
    def container(self, image: str) -> Iterator[Container]:
        """Yields a container of the image; there is nothing to remove."""
        yield _OneCommandContainer(self.name, image)


@dataclasses.dataclass(frozen=True)
class _WorkingContainer:
    name: str
    added_lines: re.Pattern[str] | None = _LAST_LINES_OF_BUILDAH

    def command(
        self,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        mounts: Sequence[Mount] = (),
        user: str | None = None,
    ) -> list[str]:
        return [
            # chroot needs no user namespaces and no runtime, and works inside a container, too.
            *("buildah", "run", f"--isolation={os.environ.get('BUILDAH_ISOLATION', 'chroot')}"),
            *(f"--env={name}={value}" for name, value in (env or {}).items()),
            *(f"--volume={mount.volume()}" for mount in mounts),
            *_user_option(user),
            *(self.name, "--"),
            *argv,
        ]


@dataclasses.dataclass(frozen=True)
class BuildahEngine:
    """Engine for buildah: runs commands in a working container of the image."""

    name: str = "buildah"

    @contextlib.contextmanager
    def container(self, image: str) -> Iterator[Container]:
        """Yields a working container that all commands share, and removes it at the end.

        Raises:
          BadInputError: The image does not exist.
        """
        made = subprocess.run(
            ["buildah", "from", "--pull-never", image], capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise BadInputError(
                f"buildah has no such image here: {made.stderr.strip().rstrip('.')}. "
                f"Build it with `make image`. Received: image={image}"
            )
        working = made.stdout.strip()
        try:
            yield _WorkingContainer(working)
        finally:
            subprocess.run(["buildah", "rm", working], capture_output=True, check=False)


ENGINES: dict[str, Engine] = {
    "docker": RunEngine("docker"),
    "podman": RunEngine("podman"),
    "buildah": BuildahEngine(),
}
"""Engines by name, in the order in which they are tried."""


def find_engine(name: str | None = None) -> Engine:
    """Returns the engine of this name, or the first that works here.

    A docker client without an engine does not work: `docker info` fails.

    Args:
      name: One of docker, podman and buildah. Default: the environment variable `IMAGE_ENGINE`, or the
        first of them that works.

    Raises:
      BadInputError: There is no engine of this name, or none works.
    """
    name = name or os.environ.get(ENGINE_VARIABLE)
    if name:
        if name not in ENGINES:
            raise BadInputError(
                f"There is no such container engine. Available: "
                f"{', '.join(nearest_first(name, ENGINES))}. Received: {ENGINE_VARIABLE}={name}"
            )
        if not _works(name):
            raise BadInputError(f"`{name} info` fails. Received: {ENGINE_VARIABLE}={name}")
        return ENGINES[name]
    for engine in ENGINES.values():
        if _works(engine.name):
            return engine
    raise BadInputError(
        f"No container engine works here: {', '.join(ENGINES)} were tried, "
        "by calling `info` of each. Install and start one of them."
    )


def _user_option(user: str | None) -> tuple[str, ...]:
    return () if user is None else (f"--user={user}",)


def _works(name: str) -> bool:
    if shutil.which(name) is None:
        return False
    try:
        probe = subprocess.run(
            [name, "info"], capture_output=True, timeout=_PROBE_SECS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return probe.returncode == 0
