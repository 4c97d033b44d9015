"""Object store in a folder: keys are files, and there are no empty folders."""

import shutil
from pathlib import Path

SCHEMES = ("minio://", "s3://", "gs://")
_MOUNTS = {"minio://": "minio", "s3://": "s3", "gs://": "gcs"}


class Bucket:
    """Buckets of a run.

    Args:
      folder: Folder of the objects.
    """

    def __init__(self, folder: Path):
        self._folder = folder

    def download(self, uri: str, target: Path) -> None:
        """Copies the objects below a uri to a folder, or a single object to a file.

        Raises:
          FileNotFoundError: There is no such object.
        """
        source = self._path(uri)
        if not source.exists():
            raise FileNotFoundError(f"There is no object below {uri} in {self._folder}.")
        _copy_objects(source, target)

    def upload(self, source: Path, uri: str) -> None:
        """Copies a folder or a file to a uri; a component need not write an output."""
        if source.exists():
            _copy_objects(source, self._path(uri))

    def _path(self, uri: str) -> Path:
        return self._folder / mounted_path(uri)


def mounted_path(uri: str) -> str:
    """Returns the local path of a uri in KFP's launcher, relative to the root: `minio/BUCKET/KEY`."""
    scheme = next(item for item in SCHEMES if uri.startswith(item))
    return f"{_MOUNTS[scheme]}/{uri.removeprefix(scheme)}"


def _copy_objects(source: Path, target: Path) -> None:
    files = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
    for file in files:
        place = target / file.relative_to(source) if file != source else target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
