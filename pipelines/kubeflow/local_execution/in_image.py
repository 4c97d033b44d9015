"""Runs a container in its image, by docker, podman or buildah.

As on a cluster, the image's code runs, as the image's user.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pipelines.kubeflow.local_execution.container_engine import ImageContainer, container_of
from pipelines.kubeflow.local_execution.containers import Container, Engine, Process
from pipelines.root import Root

_FOR_EVERYONE = 0o777, 0o666


@contextlib.contextmanager
def in_image(image: str) -> Iterator[Engine]:
    """Yields an engine that runs containers in an image, and removes its resources at the end.

    For a caller other than root, containers run as the caller, who thus owns their files. For root, they
    run as the image's user (uid 1000 in ours), who gets access to the folders of the container and to the
    root of the pipeline.
    """
    with container_of(image) as container:
        yield _InImage(container)


class _InImage:
    def __init__(self, container: ImageContainer):
        self._container = container
        self._is_root = os.getuid() == 0

    def __call__(self, container: Container) -> Process:
        temporary = container.folder / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        if self._is_root:
            _give_to_everyone(container)
        user = None if self._is_root else f"{os.getuid()}:{os.getgid()}"
        mounts = {str(path): str(path) for path in _outermost(container)}
        environment = {"TMPDIR": str(temporary), **container.environment}
        command = self._container.command(container.arguments, environment, mounts, user)
        return Process(tuple(command), dict(os.environ), Path.cwd(), self._container.added_lines)


def _outermost(container: Container) -> list[Path]:
    """Returns the paths that the container sees, without those below others."""
    paths = sorted({container.folder, *container.mounts})
    return [path for path in paths if not any(path.is_relative_to(p) and path != p for p in paths)]


def _give_to_everyone(container: Container) -> None:
    """Lets the image's user write to the container's folder and to the root of the pipeline."""
    folder_mode, file_mode = _FOR_EVERYONE
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
