"""Samples the requests of a server, and compares them with the training data of the version that serves."""

import logging
from collections.abc import Callable

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.cells import Cells
from pipelines.serving.model import Model
from pipelines.serving.request_drift import MIN_ROWS, TrainingData
from pipelines.serving.request_files import RequestSample, SampleLimits, sampled_rows
from pipelines.serving.server.metrics import ServerMetrics

_LOGGER = logging.getLogger(__name__)


class RequestMonitor:
    """Samples rows into the root's folder of requests, and shows their drift in the metrics."""

    def __init__(
        self,
        root: Root,
        limits: SampleLimits,
        metrics: ServerMetrics,
        clock: Callable[[], float],
        seed: int | None = None,
    ):
        self._root = root
        self._limits = limits
        self._metrics = metrics
        self._sample = RequestSample(root.requests, limits, clock, seed)
        self._version: int | None = None
        self._training: TrainingData | None = None
        self._failure = ""

    def add(self, model: Model, cells: Cells, num_rows: int) -> None:
        self._sample.add(model.version, cells, num_rows)

    def update(self, model: Model) -> None:
        """Writes the sample, and compares it with the training data of a version. Blocks."""
        try:
            self._sample.write()
            rows = sampled_rows(self._root.requests, model.version, self._limits.max_rows)
        except OSError as error:
            self._say(f"the sampled requests cannot be written: {error}")
            return
        self._failure = ""
        if model.version != self._version:
            self._training = None
            self._metrics.set_drift(len(rows), [])
            try:
                self._training = TrainingData.read_version(self._root, model.version)
            except BadInputError as error:
                _LOGGER.warning(error)
            self._version = model.version  # any other error: once more next time
        drift = []
        if self._training is not None and len(rows) >= MIN_ROWS:
            drift = self._training.drift(rows, model.columns)
        self._metrics.set_drift(len(rows), drift)

    def _say(self, failure: str) -> None:
        """Logs a failure once, until the next success."""
        if failure != self._failure:
            _LOGGER.warning(failure)
        self._failure = failure
