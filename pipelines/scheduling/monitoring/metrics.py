"""Prometheus metrics of the schedules, the runs and the served model.

They are read from the root at each scrape, so that counters continue when a scheduler is restarted.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from pipelines import atomic_files
from pipelines.root import Root
from pipelines.root.history import read_runs, run_of_version
from pipelines.root.records import RunRecord, Status
from pipelines.scheduling.clock import Clock
from pipelines.scheduling.history import ENDED, Run
from pipelines.scheduling.monitoring.overview import Standing, look

PREFIX = "estimator_pipelines"

_OF_SCHEDULES: dict[str, tuple[str, Callable[[Standing], float | None]]] = {
    "schedule_enabled": ("Whether the schedule starts runs", lambda one: one.schedule.enabled),
    "schedule_next_time_seconds": (
        "When the next run is due",
        lambda one: one.next_time.timestamp() if one.next_time else None,
    ),
    "schedule_running": ("Whether a run is in progress", lambda one: bool(one.running)),
    "schedule_interrupted": (
        "Whether a run was stopped or killed, and no scheduler is there to resume it",
        lambda one: bool(one.interrupted),
    ),
    "schedule_due_ticks": ("Ticks that are due and have not started", lambda one: one.due.count),
    "schedule_late_ticks": ("Ticks that should have started by now", lambda one: len(one.due.late)),
    "schedule_late_seconds": (
        "For how long the oldest of them has been due",
        lambda one: one.late_secs,
    ),
    "schedule_has_problem": (
        "Whether due runs cannot be determined, such as when the configuration is broken",
        lambda one: bool(one.problem),
    ),
    "notification_failed": (
        "Whether the notification of the last run has failed",
        lambda one: bool(one.not_told),
    ),
    "last_run_end_time_seconds": ("When the last scheduled run ended", lambda one: _end(one.last)),
    "last_good_run_end_time_seconds": (
        "When the last run that did not fail ended",
        lambda one: _end(one.last_good),
    ),
    "last_run_duration_seconds": (
        "From its start to its end",
        lambda one: _duration_secs(one.last),
    ),
}
"""Gauges of each schedule: the name, the help, and the value of a schedule, None without one."""


class PipelineCollector:
    """Collects the metrics of a root."""

    def __init__(self, root: Root, clock: Clock):
        self._root = root
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics to `prometheus_client`."""
        now = self._clock.now()
        overview = look(self._root, now)
        yield from _of_schedules(overview.standings)
        yield from _of_runs(read_runs(self._root))
        yield from _of_model(self._root)
        damaged = "Files of schedules and runs that cannot be read"
        yield _gauge("damaged_files", damaged, len(overview.damaged))
        future = "Runs, ticks and schedules with a time in the future, which are ignored"
        yield _gauge("future_records", future, len(overview.future))
        collected = "When these metrics were collected"
        yield _gauge("metrics_time_seconds", collected, now.timestamp())


def registry(collector: PipelineCollector) -> CollectorRegistry:
    """Returns a registry with the metrics of a root, and no others."""
    made = CollectorRegistry()
    made.register(collector)
    return made


def write_metrics(collector: PipelineCollector, file: Path) -> None:
    """Replaces a file of node_exporter's textfile collector, which reads *.prom: never a partial file."""
    atomic_files.write(file, generate_latest(registry(collector)))


@contextlib.contextmanager
def serving_metrics(collector: PipelineCollector, address: str, port: int) -> Iterator[int]:
    """Serves scrapes from a thread, at the port that it yields."""
    server, thread = start_http_server(port, address, registry(collector))
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _of_schedules(found: Sequence[Standing]) -> Iterator[Metric]:
    counts = CounterMetricFamily(
        f"{PREFIX}_scheduled_runs", "Scheduled runs that have ended", labels=("schedule", "status")
    )
    for one in found:
        for status in ENDED:
            counts.add_metric((one.schedule.name, status), one.counts[status])
    yield counts
    for name, (text, value_of) in _OF_SCHEDULES.items():
        values = {(one.schedule.name,): value_of(one) for one in found}
        yield _gauge(name, text, values, "schedule")
    statuses = {
        (one.schedule.name, status): one.last.status == status
        for one in found
        if one.last
        for status in ENDED
    }
    text = "1 for the status of the last scheduled run, 0 for the others"
    yield _gauge("last_run_status", text, statuses, "schedule", "status")


def _of_runs(records: Sequence[RunRecord]) -> Iterator[Metric]:
    """Yields metrics of the runs of a root, whether started by a schedule, by hand, or on Kubeflow."""
    if not records:
        return
    newest = records[-1]
    statuses = {(status,): newest.status == status for status in get_args(Status)}
    text = "Status of the newest run, whoever started it"
    yield _gauge("newest_run_status", text, statuses, "status")
    began = datetime.fromisoformat(newest.started).timestamp()
    yield _gauge("newest_run_start_time_seconds", "When it began", began)
    ended = [one for one in records if one.finished is not None]
    good = [one for one in ended if one.status in ENDED and one.status != "failed"]
    if ended:
        end, secs = _end(ended[-1]), _duration_secs(ended[-1])
        yield _gauge("newest_run_end_time_seconds", "When the last run ended", end)
        yield _gauge("newest_run_duration_seconds", "From its start to its end", secs)
    if good:
        text = "When the last run that did not fail ended"
        yield _gauge("newest_good_run_end_time_seconds", text, _end(good[-1]))


def _of_model(root: Root) -> Iterator[Metric]:
    versions = root.versions.served()
    if not versions:
        return
    yield _gauge("served_version", "The version that serves", versions[-1])
    record = run_of_version(root, str(versions[-1]))
    if record is None:
        return
    metrics = {(name,): value for name, value in record.metrics.items()}
    text = "Metrics of the model that serves, of the evaluation in its run"
    yield _gauge("served_model_metric", text, metrics, "metric")
    if record.finished is not None:
        yield _gauge("served_model_push_time_seconds", "When its run ended", _end(record))


def _gauge(
    name: str, text: str, values: float | None | Mapping[Any, float | None], *labels: str
) -> Metric:
    """Returns a gauge with its value, or with its values by label; those that are None are left out."""
    gauge = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for of_labels, value in (values if isinstance(values, Mapping) else {(): values}).items():
        if value is not None:
            gauge.add_metric(of_labels, float(value))
    return gauge


def _duration_secs(run: Run | None) -> float | None:
    end = _end(run)
    return None if not run or end is None else end - datetime.fromisoformat(run.started).timestamp()


def _end(run: Run | None) -> float | None:
    return datetime.fromisoformat(run.finished).timestamp() if run and run.finished else None
