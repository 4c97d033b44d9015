"""The versions that a server has loaded; pushes and rollbacks are noticed while it runs."""

import gc
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.inputs import inputs_of
from pipelines.serving.model import Model
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request_error import RequestError

LABELS = ("latest", "previous")
"""Labels of the newest version that is loaded, and of the one before it."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedVersion:
    """A version that is loaded.

    Attributes:
      model: Model of the version.
      predictions: Types of its plain predictions by column; empty if it takes no rows without values.
    """

    model: Model
    predictions: dict[str, Any]


def load_version(folder: Path) -> LoadedVersion:
    """Loads a version, and predicts a row without values: the first prediction of a signature is slow."""
    model = Model(folder)
    predictions: dict[str, Any] = {}
    try:
        for signature in model.signatures.values():
            if signature.columns:
                model.run(signature.name, inputs_of({}, signature, 1))
        predictions = model.predict_cells({}, 1)
    except BadInputError as error:
        _LOGGER.info("version %d predicts no row without values: %s", model.version, error)
    return LoadedVersion(model, {name: values.dtype for name, values in predictions.items()})


class ServedVersions:
    """The newest versions of a root, loaded.

    A version stays until another one is there to serve: one that cannot be loaded, or a root from which all
    were removed, leaves the former ones in service.

    Args:
      root: Root of the runs.
      name: Name of the model.
      metrics: Figures to update.
      num_versions: Number of the newest versions to load.
      load: Function that loads a version.
      request_secs: Time after which no request holds a version that was dropped.
    """

    def __init__(
        self,
        root: Root,
        name: str,
        metrics: ServerMetrics,
        num_versions: int = 1,
        load: Callable[[Path], LoadedVersion] = load_version,
        request_secs: float = 30.0,
    ):
        self._root = root
        self.name = name
        self._metrics = metrics
        self._num_versions = num_versions
        self._load = load
        self._request_secs = request_secs
        self._next_collection = math.inf
        self._loaded: dict[int, LoadedVersion] = {}
        self._failed: dict[int, tuple[float, str]] = {}  # time of the file, and the error

    def refresh(self) -> bool:
        """Loads versions that are new, and drops others. Blocks; returns True if something has changed.

        It is called by one thread at a time. Requests see the versions before, or those after.
        """
        served = self._root.versions.served()
        wanted = served[-self._num_versions :]
        loaded = {version: self._loaded[version] for version in wanted if version in self._loaded}
        for version in reversed(wanted):
            if version not in loaded and (found := self._loaded_or_none(version)):
                loaded[version] = found
        if not loaded or loaded.keys() == self._loaded.keys():
            if time.monotonic() >= self._next_collection:
                self._next_collection = math.inf
                _collect()
            return False
        self._loaded = loaded
        newest = max(loaded)
        self._metrics.set_version(newest)
        self._failed = {
            version: self._failed[version] for version in self._failed if version in served
        }
        _LOGGER.info("version %d serves", newest)
        _collect()
        # Requests that have begun hold the version that was dropped.
        self._next_collection = time.monotonic() + self._request_secs
        return True

    def versions(self) -> list[int]:
        """Returns the versions that are loaded, newest first."""
        return sorted(self._loaded, reverse=True)

    def failures(self) -> dict[int, str]:
        """Returns the errors of versions that could not be loaded."""
        return {version: message for version, (_, message) in self._failed.items()}

    def find(
        self, name: str, version: str | None = None, label: str | None = None
    ) -> LoadedVersion:
        """Returns a version.

        Args:
          name: Name of the model.
          version: Number of the version. Default: the newest.
          label: Label in place of a number, one of `LABELS`.

        Raises:
          RequestError: There is no such model, version or label.
        """
        loaded = self._loaded
        if name != self.name:
            raise RequestError(404, f"There is no model {name!r}. There is {self.name!r}.")
        numbers = sorted(loaded, reverse=True)
        if not numbers:
            raise RequestError(503, "No version is loaded.")
        if label is not None:
            labels = dict(zip(LABELS, numbers, strict=False))
            if label not in labels:
                raise RequestError(
                    404, f"There is no label {label!r}. There are: {', '.join(labels)}."
                )
            return loaded[labels[label]]
        number = numbers[0] if version is None else int(version)
        if number not in loaded:
            raise RequestError(
                404,
                f"Version {version} of {name!r} is not loaded. Loaded: {', '.join(map(str, numbers))}.",
            )
        return loaded[number]

    def _loaded_or_none(self, version: int) -> LoadedVersion | None:
        folder = self._root.serving / str(version)
        start = time.monotonic()
        try:
            changed = folder.stat().st_mtime
            if self._failed.get(version, (None, ""))[0] == changed:
                return None
            found = self._load(folder)
        except FileNotFoundError:  # a rollback has just moved it
            return None
        except Exception as error:  # of whatever kind: the former version goes on serving
            if not folder.exists():
                return None
            self._failed[version] = (changed, str(error))
            self._metrics.add_load_failure()
            _LOGGER.error("version %d cannot be loaded: %s", version, error)
            return None
        self._metrics.set_load_secs(time.monotonic() - start)
        return found


def _collect() -> None:
    gc.unfreeze()
    gc.collect()  # a model is a cycle of objects
    gc.freeze()  # what is left stays: to look at all of it again takes a quarter of a second
