"""Figures about a server, in Prometheus' text format."""

from collections.abc import Sequence
from typing import Any

from pipelines.serving.request_drift import ColumnDrift

_PREFIX = "estimator_pipelines_serving"
_SECS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class ServerMetrics:
    """Figures about requests, batches and versions. Each server has its own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._registry = CollectorRegistry()
        common: dict[str, Any] = {"namespace": _PREFIX, "registry": self._registry}
        self._requests = Counter(
            "requests", "Requests by kind and HTTP status.", ["kind", "status"], **common
        )
        self._secs = Histogram(
            "request_seconds",
            "Time of a request, from its first byte to its answer.",
            ["kind"],
            buckets=_SECS,
            **common,
        )
        self._rows = Histogram("batch_rows", "Rows of a batch.", buckets=_ROWS, **common)
        self._batch_secs = Histogram(
            "batch_seconds", "Time that the model took for a batch.", buckets=_SECS, **common
        )
        self._waiting = Gauge("waiting_rows", "Rows waiting for a batch.", **common)
        self._version = Gauge("version", "Version of the model that is served.", **common)
        self._load_secs = Gauge("load_seconds", "Seconds that loading the last version took.", **common)
        self._failures = Counter("load_failures", "Versions that could not be loaded.", **common)
        self._failures.inc(0)
        self._sampled_rows = Gauge("sampled_rows", "Rows of requests in the sample.", **common)
        self._shifted: set[tuple[str, str]] = set()
        labels = ["column", "measure"]
        self._drift = Gauge(
            "request_drift", "Shift from the training data to the requests.", labels, **common
        )
        self._drift_by_chance = Gauge(
            "request_drift_by_chance", "Shift that chance explains.", labels, **common
        )

    def add_request(self, kind: str, status: int, secs: float) -> None:
        self._requests.labels(kind, str(status)).inc()
        self._secs.labels(kind).observe(secs)

    def add_batch(self, rows: int, secs: float) -> None:
        self._rows.observe(rows)
        self._batch_secs.observe(secs)

    def set_waiting(self, rows: int) -> None:
        self._waiting.set(rows)

    def set_load_secs(self, secs: float) -> None:
        self._load_secs.set(secs)

    def set_version(self, version: int) -> None:
        self._version.set(version)

    def add_load_failure(self) -> None:
        self._failures.inc()

    def set_drift(self, num_rows: int, drift: Sequence[ColumnDrift]) -> None:
        self._sampled_rows.set(num_rows)
        shifted = {(column.column, column.measure) for column in drift}
        for labels in self._shifted - shifted:  # the others stay while a scrape may look
            self._drift.remove(*labels)
            self._drift_by_chance.remove(*labels)
        self._shifted = shifted
        for column in drift:
            self._drift.labels(column.column, column.measure).set(column.shift.value)
            self._drift_by_chance.labels(column.column, column.measure).set(column.shift.noise)

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return bytes(generate_latest(self._registry))
