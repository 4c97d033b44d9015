"""Files that CsvExampleGen reads, with hashes of their content.

`Plan` has read them before, in another pod, and the step's outputs are cached under the hashes that it saw.
So the step fails unless it reads the same content.
"""

import fnmatch
import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.data.profile import CsvProfile, fingerprint_of
from pipelines.data.staging import StagedData
from pipelines.errors import RunFailedError


@dataclass(frozen=True)
class DataFiles:
    """Content of the folder that ExampleGen reads.

    Attributes:
      folder: Absolute path of the folder.
      patterns: Patterns of the files to read, relative to the folder.
      files: SHA-256 of each file, in hexadecimal digits, by its path relative to the folder.
    """

    folder: str
    patterns: list[str]
    files: dict[str, str]

    def as_plan(self) -> dict[str, Any]:
        """Returns the fields as plain values."""
        return asdict(self)

    @classmethod
    def read(cls, folder: str, patterns: list[str]) -> "DataFiles":
        """Reads all files that the patterns match."""
        place = Path(folder)
        found = {
            file.relative_to(place).as_posix(): file
            for pattern in patterns
            for file in _matches(place, pattern)
        }
        return cls(folder, patterns, {name: _digest(found[name]) for name in sorted(found)})


def data_files_of(data: StagedData) -> DataFiles:
    """Returns the files that ExampleGen reads of staged data."""
    patterns = [pattern for _, pattern in data.splits] or [data.pattern]
    return DataFiles.read(str(data.folder), patterns)


def check_as_profiled(profile: CsvProfile, component: str) -> None:
    """Checks that files have not changed since they were profiled.

    Args:
      profile: Profile of the files.
      component: Id of the step that checks, for the error.

    Raises:
      RunFailedError: A file has changed or is gone.
    """
    try:
        is_same = fingerprint_of(profile.files) == profile.fingerprint
    except FileNotFoundError as error:
        raise RunFailedError(
            component,
            f"a file of the data was removed after it was read: {error.filename}. Run again when "
            "nothing removes files there",
        ) from error
    if not is_same:
        raise RunFailedError(
            component,
            f"the data changed while they were read: {profile.files[0].parent}. Run again when nothing "
            "writes there",
        )


def check_data_files(planned: dict[str, Any], component: str) -> None:
    """Checks that the files are those that `Plan` read.

    Args:
      planned: Result of `DataFiles.as_plan`.
      component: Id of the step that reads them, for the error.

    Raises:
      RunFailedError: Files were changed, removed or added.
    """
    before: dict[str, str] = planned["files"]
    try:
        now = DataFiles.read(planned["folder"], planned["patterns"]).files
    except FileNotFoundError:  # gone while they were read
        now = {}
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if changed:
        raise RunFailedError(component, _change_message(changed, before, now, planned["folder"]))


def _change_message(
    changed: list[str], before: dict[str, str], now: dict[str, str], folder: str
) -> str:
    """Returns the change of the data and the fix, for an error message."""
    files = f"{changed[0]}{f' and {len(changed) - 1} more' if len(changed) > 1 else ''} in {folder}"
    if not any(name in now for name in changed):
        return (
            f"data that the step Plan read are gone: {files}. Put them back and try again, or start "
            "a new run, which reads the current files"
        )
    if not any(name in before for name in changed):
        return (
            f"data were added after the step Plan read the others: {files}. Start a new run, which "
            "reads them, too"
        )
    return (
        f"the data changed after the step Plan read them: {files}. Start a new run, which reads them "
        "as they are now; give new data a name of their own"
    )


def _matches(folder: Path, pattern: str) -> list[Path]:
    place = folder / Path(pattern).parent
    name = Path(pattern).name
    if not place.is_dir():
        return []
    return [
        file for file in place.iterdir() if file.is_file() and fnmatch.fnmatchcase(file.name, name)
    ]


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
