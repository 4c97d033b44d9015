"""Stand-ins for a Docker engine and for KFP's launcher, while KFP's own code runs a pipeline.

`kfp.local` (PyPI) reads the YAML, orders the tasks, resolves their inputs, replaces the placeholders of
their commands and collects their outputs. It hands each command to a Docker client. `launching` puts
`Launcher` in that client's place, which does what KFP's launcher does around a command: get the input
artifacts from the object store, run it, put the output artifacts there. No copy stays here, so that a task
sees only files that went through the store.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import types
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.kubeflow.object_store import ObjectStore

Command = Callable[[Sequence[str], Mapping[str, str]], Sequence[str]]
"""From a container's command, and its environment, to one that runs here."""


class Launcher:
    """A Docker client, as far as `kfp.local.DockerRunner` uses one.

    Args:
      store: Store of the artifacts.
      pipeline_root: Folder that kfp.local names artifacts in.
      command: Function from a container's command to one that runs here.
      environment: Variables of every container, in addition to the image's.

    Attributes:
      launched: (image, command, exit code) of each container, in order.
    """

    def __init__(
        self,
        store: ObjectStore,
        pipeline_root: pathlib.Path,
        command: Command,
        environment: Mapping[str, str],
    ):
        self.launched: list[tuple[str, list[str], int]] = []
        self.images = types.SimpleNamespace(list=list, pull=lambda image: None)
        self.containers = types.SimpleNamespace(run=self._run)
        self._store = store
        self._root = pipeline_root
        self._command = command
        self._environment = environment

    def info(self) -> dict:
        return {}

    def close(self) -> None:
        pass

    def _run(self, image: str, command: list[str], **_) -> "_Finished":
        inputs, outputs = _artifacts_of(command)
        for path in inputs:
            self._store.download(self._key(path), path)
        for path in outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
        _let_everyone_write(self._root)
        finished = subprocess.run(
            self._command(command, self._environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        for path in outputs:
            if finished.returncode == 0 and path.exists():
                self._store.upload(path, self._key(path))
        for path in (*inputs, *outputs):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self.launched.append((image, command, finished.returncode))
        return _Finished(finished.stdout, finished.returncode)

    def _key(self, path: pathlib.Path) -> str:
        return path.relative_to(self._root).as_posix()


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


def _artifacts_of(command: Sequence[str]) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
    """Returns the inputs and outputs of a command that is given KFP's executor input ({{$}})."""
    for argument in command:
        with contextlib.suppress(ValueError):
            given = json.loads(argument)
            if isinstance(given, dict) and "outputs" in given:
                return tuple(
                    [
                        pathlib.Path(artifact["uri"])
                        for listed in given.get(side, {}).get("artifacts", {}).values()
                        for artifact in listed["artifacts"]
                    ]
                    for side in ("inputs", "outputs")
                )
    return [], []


def _let_everyone_write(root: pathlib.Path) -> None:
    """Lets the image's user write to the folders that were made as another one."""
    for path in (root, *root.rglob("*")):
        if path.stat().st_uid == os.getuid():
            path.chmod(0o777 if path.is_dir() else 0o666)
