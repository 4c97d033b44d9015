"""A real S3 server for tests: versitygw, which `scripts/kubeflow/judges.sh` builds from the Go proxy."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pyarrow.fs

ROOT = pathlib.Path(__file__).parents[2]
SERVER = ROOT / ".kubeflow/bin/versitygw"

_ACCESS_KEY, _SECRET_KEY = "test-access", "test-secret-0123456789"
_START_SECS = 30.0


class ObjectStore:
    """One bucket of a running server, as KFP's launcher uses it: files under keys, no folders.

    Attributes:
      endpoint: host:port of the server.
      uri: `s3://BUCKET`.
      transfers: (direction, key, files) of each transfer, in order.
    """

    def __init__(self, endpoint: str, bucket: str):
        self.endpoint = endpoint
        self.uri = f"s3://{bucket}"
        self.transfers: list[tuple[str, str, int]] = []
        self._bucket = bucket
        self._s3 = pyarrow.fs.S3FileSystem(
            access_key=_ACCESS_KEY,
            secret_key=_SECRET_KEY,
            endpoint_override=endpoint,
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )
        self._s3.create_dir(bucket)

    def upload(self, path: pathlib.Path, key: str) -> None:
        """Puts a file, or each file below a folder. A folder without files leaves nothing."""
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            name = key if file == path else f"{key}/{file.relative_to(path).as_posix()}"
            with (
                file.open("rb") as source,
                self._s3.open_output_stream(f"{self._bucket}/{name}") as to,
            ):
                shutil.copyfileobj(source, to)
        self.transfers.append(("up", key, len(files)))

    def download(self, key: str, path: pathlib.Path) -> None:
        """Gets the object of this key, or all whose keys begin with it and a slash."""
        keys = self.keys(key)
        for found in keys:
            file = path if found == key else path / found.removeprefix(f"{key}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            with (
                self._s3.open_input_stream(f"{self._bucket}/{found}") as source,
                file.open("wb") as to,
            ):
                shutil.copyfileobj(source, to)
        self.transfers.append(("down", key, len(keys)))

    def keys(self, prefix: str) -> list[str]:
        """Returns the keys that are the prefix, or begin with it and a slash."""
        found = self._s3.get_file_info(f"{self._bucket}/{prefix}")
        if found.type == pyarrow.fs.FileType.File:
            return [prefix]
        below = pyarrow.fs.FileSelector(
            f"{self._bucket}/{prefix}", recursive=True, allow_not_found=True
        )
        return sorted(
            entry.path.removeprefix(f"{self._bucket}/")
            for entry in self._s3.get_file_info(below)
            if entry.type == pyarrow.fs.FileType.File
        )


@contextlib.contextmanager
def object_store(folder: pathlib.Path, bucket: str = "mlpipeline") -> Iterator[ObjectStore]:
    """Runs the server with its data below the folder, and stops it at the end."""
    data, metadata = folder / "objects", folder / "object-metadata"
    data.mkdir(parents=True)
    metadata.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    with (folder / "object-store.log").open("wb") as log:
        server = subprocess.Popen(
            [SERVER, "--port", endpoint, "posix", "--sidecar", metadata, data],
            env={
                **os.environ,
                "ROOT_ACCESS_KEY_ID": _ACCESS_KEY,
                "ROOT_SECRET_ACCESS_KEY": _SECRET_KEY,
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(endpoint, server, folder / "object-store.log")
        yield ObjectStore(endpoint, bucket)
    finally:
        server.terminate()
        server.wait(timeout=_START_SECS)


def _wait(endpoint: str, server: subprocess.Popen, log: pathlib.Path) -> None:
    host, port = endpoint.split(":")
    deadline = time.monotonic() + _START_SECS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"The object store does not answer at {endpoint}: {log.read_text()[-2000:]}")
