"""A stand-in for a Docker engine, while KFP's own code runs a pipeline.

`kfp.local` (PyPI) reads the YAML, orders the tasks, resolves their inputs, replaces the placeholders of
their commands and collects their outputs. It hands each command to a Docker client. `launching` puts
`Launcher` in that client's place.
"""

import contextlib
import os
import pathlib
import subprocess
import types
from collections.abc import Callable, Iterator, Sequence

Command = Callable[[Sequence[str]], Sequence[str]]
"""From a container's command to one that runs here."""


class Launcher:
    """A Docker client, as far as `kfp.local.DockerRunner` uses one.

    Args:
      pipeline_root: Folder in which kfp.local collects the outputs of tasks.
      command: Function from a container's command to one that runs here.

    Attributes:
      launched: (image, command, exit code) of each container, in order.
    """

    def __init__(self, pipeline_root: pathlib.Path, command: Command):
        self.launched: list[tuple[str, list[str], int]] = []
        self.images = types.SimpleNamespace(list=list, pull=lambda image: None)
        self.containers = types.SimpleNamespace(run=self._run)
        self._root = pipeline_root
        self._command = command

    def info(self) -> dict:
        return {}

    def close(self) -> None:
        pass

    def _run(self, image: str, command: list[str], **_) -> "_Finished":
        _let_everyone_write(self._root)
        finished = subprocess.run(
            self._command(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        self.launched.append((image, command, finished.returncode))
        return _Finished(finished.stdout, finished.returncode)


class _Finished:
    def __init__(self, output: bytes, code: int):
        self._output, self._code = output, code

    def logs(self, stream: bool) -> list[bytes]:
        return [self._output]

    def wait(self) -> dict[str, int]:
        return {"StatusCode": self._code}


@contextlib.contextmanager
def launching(launcher: Launcher) -> Iterator[None]:
    """Puts the launcher where kfp.local looks for a Docker engine."""
    import docker

    real = docker.from_env
    docker.from_env = lambda: launcher
    try:
        yield
    finally:
        docker.from_env = real


def _let_everyone_write(root: pathlib.Path) -> None:
    """Lets the image's user write to the folders that another user made."""
    for path in (root, *root.rglob("*")):
        if path.stat().st_uid == os.getuid():
            path.chmod(0o777 if path.is_dir() else 0o666)
