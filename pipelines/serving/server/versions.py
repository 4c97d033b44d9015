"""The versions that a server has loaded; pushes and rollbacks are noticed while it runs."""

import gc
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.model import Model, ModelFolder, plain_columns
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request import RequestError

LABELS = ("latest", "previous")
"""Labels of the newest loaded version, and of the version before it."""

_LOGGER = logging.getLogger(__name__)
_MAX_DELAY_SECS = 60.0

_Files = dict[str, tuple[int, int]]
"""Size and time of the last change, in ns, of the files below a folder, by path."""


@dataclass(frozen=True)
class _Attempt:
    files: _Files  # as they were before the version was loaded
    num_failures: int = 0
    next_secs: float = 0.0  # time before which it is not tried again
    error: str = ""


@dataclass(frozen=True)
class LoadedVersion:
    model: Model
    # Types of its plain predictions by column; empty if it takes no rows, or not the plainest one.
    predictions: dict[str, Any]


def load_version(folder: Path) -> LoadedVersion:
    """Loads a version, and predicts a row: the first prediction of a signature is slow."""
    model = Model(folder)
    predictions: dict[str, Any] = {}
    try:
        for signature in model.signatures.values():
            if signature.columns:
                outputs = model.try_out(signature)
                if signature is model.main_signature:
                    predictions = plain_columns(outputs, signature.method)
    except BadInputError as error:
        _LOGGER.info("version %d cannot predict a row without values: %s", model.version, error)
    return LoadedVersion(model, {name: values.dtype for name, values in predictions.items()})


class ServedVersions:
    """The newest versions of a root or of a folder of models, loaded.

    A version is loaded once its files have stopped changing, and again if they change later. After a failure
    it is tried again when its files have changed, with increasing delays. A version stays until another
    can serve: if a version cannot be loaded, or the root is emptied, the previous versions stay in service.

    `quiet_secs`: time for which the files of a version must not have changed before it is loaded.
    """

    def __init__(
        self,
        root: Root | ModelFolder,
        name: str,
        metrics: ServerMetrics,
        num_versions: int = 1,
        load: Callable[[Path], LoadedVersion] = load_version,
        request_secs: float = 30.0,
        quiet_secs: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        file_clock: Callable[[], float] = time.time,
    ):
        self._root = root
        self.name = name
        self._metrics = metrics
        self._num_versions = num_versions
        self._load = load
        self._request_secs = request_secs
        self._next_collection = math.inf
        self._loaded: dict[int, LoadedVersion] = {}
        self._quiet_secs = quiet_secs
        self._clock = clock
        self._file_clock = file_clock
        self._attempts: dict[int, _Attempt] = {}  # the last one of each version
        self._changing: dict[int, tuple[_Files, float]] = {}  # and the time of the last change seen

    def refresh(self) -> bool:
        """Loads versions that are new, and drops others. Blocks; returns True if something has changed.

        It is called by one thread at a time. Requests see the versions before, or those after.
        """
        served = self._root.versions.served()
        self._attempts = {
            key: attempt
            for key, attempt in self._attempts.items()
            if key in served and (attempt.error or key in self._loaded)
        }
        loaded: dict[int, LoadedVersion] = {}
        examined = set()
        for version in reversed(served):
            if len(loaded) == self._num_versions:
                break
            examined.add(version)
            if current := self._up_to_date(version):
                loaded[version] = current
        # The other versions are not watched, so nothing is known about how long they have been quiet.
        self._changing = {key: self._changing[key] for key in self._changing if key in examined}
        if not loaded or loaded == self._loaded:
            if time.monotonic() >= self._next_collection:
                self._next_collection = math.inf
                _collect()
            return False
        self._loaded = loaded
        newest = max(loaded)
        self._metrics.set_version(newest)
        _LOGGER.info("version %d serves", newest)
        _collect()
        # Requests that have begun hold the version that was dropped.
        self._next_collection = time.monotonic() + self._request_secs
        return True

    def versions(self) -> list[int]:
        """Returns the loaded versions, newest first."""
        return sorted(self._loaded, reverse=True)

    def failures(self) -> dict[int, str]:
        """Returns the errors of versions whose files cannot be loaded; one may serve as it was before."""
        return {version: attempt.error for version, attempt in self._attempts.items() if attempt.error}

    def are_changing(self) -> bool:
        """Returns whether the files of a version were still changing at the last refresh."""
        return bool(self._changing)

    def find(self, name: str, version: str | None = None, label: str | None = None) -> LoadedVersion:
        loaded = self._loaded
        if name != self.name:
            raise RequestError(404, f"There is no model {name!r}. There is {self.name!r}.")
        numbers = sorted(loaded, reverse=True)
        if not numbers:
            raise RequestError(503, "No version is loaded.")
        if label is not None:
            labels = dict(zip(LABELS, numbers, strict=False))
            if label not in labels:
                raise RequestError(404, f"There is no label {label!r}. There are: {', '.join(labels)}.")
            return loaded[labels[label]]
        number = numbers[0] if version is None else int(version)
        if number not in loaded:
            raise RequestError(
                404, f"Version {version} of {name!r} is not loaded. Loaded: {', '.join(map(str, numbers))}."
            )
        return loaded[number]

    def _up_to_date(self, version: int) -> LoadedVersion | None:
        """Returns a version as its files are now, or else as it was loaded before; None without either."""
        folder = self._root.versions.folder(version)
        previous = self._loaded.get(version)
        last = self._attempts.get(version)
        now = self._clock()
        try:
            files = _files(folder)
        except FileNotFoundError:  # it has just been renamed, or a rollback has moved the folder
            return previous
        if last is not None and (files == last.files or now < last.next_secs):
            return previous
        if version in self._changing:
            seen, since = self._changing[version]
            since = since if seen == files else now
        else:  # without a newer change, the files' own times tell how long they have been quiet
            newest_secs = max((ns for _, ns in files.values()), default=0) / 1e9
            since = now if last else now - max(self._file_clock() - newest_secs, 0.0)
        if now - since < self._quiet_secs:
            self._changing[version] = (files, since)
            return previous
        self._changing.pop(version, None)
        start = time.monotonic()
        try:
            reloaded = self._load(folder)
            if _files(folder) != files:  # what was loaded may be half old and half new
                self._changing[version] = (files, now)
                return previous
        except Exception as error:  # of any kind: the previous version continues to serve
            if not folder.exists():
                return previous
            num_failures = 1 + (last.num_failures if last else 0)
            next_secs = self._clock() + min(2.0**num_failures, _MAX_DELAY_SECS)
            self._attempts[version] = _Attempt(files, num_failures, next_secs, str(error))
            self._metrics.add_load_failure()
            _LOGGER.error("version %d cannot be loaded: %s", version, error)
            return previous
        self._attempts[version] = _Attempt(files)
        self._metrics.set_load_secs(time.monotonic() - start)
        return reloaded


def _files(folder: Path) -> _Files:
    """Returns the files below a folder.

    The time is that of the inode (ctime), which changes even if a copy keeps the modification times. Renaming
    the folder, as a push or a rollback does, changes only the folder's own time, which is not compared.
    """
    files: _Files = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(directory, name)
            status = os.stat(path) if os.path.exists(path) else os.lstat(path)  # a dangling link
            files[path] = (status.st_size, status.st_ctime_ns)
    return files


def _collect() -> None:
    gc.unfreeze()
    gc.collect()  # a model is a cycle of objects
    gc.freeze()  # what is left stays: to look at all of it again takes a quarter of a second
