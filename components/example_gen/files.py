"""The files that CsvExampleGen reads, identified by their content.

Their fingerprint has a hash of each file, to be compared with the content that is read: if a file is
replaced after the fingerprint was taken, the component fails instead of reading the new file.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping

from tfx.dsl.io import fileio

from components.errors import SettingError

_CHUNK_BYTES = 1 << 20
# What TFX's own drivers write: sizes and times, which say nothing of the content.
_TFX_FINGERPRINT = re.compile(r"split:.*,num_files:\d+,total_bytes:\d+,xor_checksum:.*", re.DOTALL)


def find_files(folder: str, pattern: str) -> list[str]:
    """Returns the sorted paths of the files below a folder that match a pattern."""
    paths = sorted(fileio.glob(os.path.join(folder, pattern)))
    return [path for path in paths if not fileio.isdir(path)]  # such as one that `*` matches


def as_fingerprint(digests: Mapping[str, str]) -> str:
    return json.dumps(digests, sort_keys=True)


class PlannedFiles:
    """The files of a folder with their planned content; without a fingerprint of ours, as they are now."""

    def __init__(self, folder: str, patterns: Iterable[str], fingerprint: str | None = None) -> None:
        self._digests: dict[str, str]
        self._folder = folder
        self._patterns = list(patterns)
        if fingerprint is None or _TFX_FINGERPRINT.fullmatch(fingerprint):
            self._digests = self._digests_now()
        else:
            self._digests = json.loads(fingerprint)

    @property
    def fingerprint(self) -> str:
        return as_fingerprint(self._digests)

    def digest(self, path: str) -> str:
        return self._digests[os.path.relpath(path, self._folder)]

    def check_names(self) -> None:
        now = {os.path.relpath(path, self._folder) for path in self._paths()}
        self._refuse("was deleted", self._digests.keys() - now)
        self._refuse("was added", now - self._digests.keys())

    def check_contents(self) -> None:
        """Checks that the planned files exist, and no others, each with its planned content."""
        self.check_names()
        now = self._digests_now()
        changed = {name for name, digest in self._digests.items() if now.get(name) != digest}
        self._refuse("was changed", changed)

    def _refuse(self, what: str, names: Iterable[str]) -> None:
        first, *others = [*sorted(names), None]
        if first is not None:
            raise SettingError(describe_change(os.path.join(self._folder, first), what, len(others) - 1))

    def _paths(self) -> list[str]:
        return [path for pattern in self._patterns for path in find_files(self._folder, pattern)]

    def _digests_now(self) -> dict[str, str]:
        return {os.path.relpath(path, self._folder): _digest(path) for path in self._paths()}


def describe_change(path: str, what: str = "was changed", num_others: int = 0) -> str:
    more = f" (and {num_others} more)" if num_others else ""
    return (
        f"{path} {what} after its fingerprint was taken{more}: the result is discarded. Run again "
        "once no other process writes there; write new data to new files."
    )


def _digest(path: str) -> str:
    content = hashlib.sha256()
    with fileio.open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            content.update(chunk)
    return content.hexdigest()
