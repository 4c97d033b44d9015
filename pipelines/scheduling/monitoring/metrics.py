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
    "schedule_enabled": ("Whether the schedule starts runs", lambda standing: standing.schedule.enabled),
    "schedule_next_time_seconds": (
        "When the next run is due",
        lambda standing: standing.next_time.timestamp() if standing.next_time else None,
    ),
    "schedule_running": ("Whether a run is in progress", lambda standing: bool(standing.running)),
    "schedule_interrupted": (
        "Whether a run was stopped or killed, and no scheduler is running to resume it",
        lambda standing: bool(standing.interrupted),
    ),
    "schedule_due_ticks": ("Due ticks that have not started", lambda standing: standing.due.count),
    "schedule_late_ticks": ("Ticks that should have started by now", lambda standing: len(standing.due.late)),
    "schedule_late_seconds": ("Time since the oldest of them was due", lambda standing: standing.late_secs),
    "schedule_has_problem": (
        "Whether due runs cannot be determined, such as when the configuration is broken",
        lambda standing: bool(standing.problem),
    ),
    "notification_failed": (
        "Whether the notification of the last run has failed",
        lambda standing: bool(standing.not_told),
    ),
    "last_run_end_time_seconds": ("When the last scheduled run ended", lambda standing: _end(standing.last)),
    "last_good_run_end_time_seconds": (
        "When the last run that did not fail ended",
        lambda standing: _end(standing.last_good),
    ),
    "last_run_duration_seconds": (
        "From its start to its end",
        lambda standing: _duration_secs(standing.last),
    ),
}
"""Gauges of each schedule: the name, the help, and the value of a schedule, or None."""


class PipelineCollector:
    def __init__(self, root: Root, clock: Clock):
        self._root = root
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        now = self._clock.now()
        overview = look(self._root, now)
        yield from _schedule_metrics(overview.standings)
        yield from _run_metrics(read_runs(self._root))
        yield from _model_metrics(self._root)
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


def _schedule_metrics(standings: Sequence[Standing]) -> Iterator[Metric]:
    counts = CounterMetricFamily(
        f"{PREFIX}_scheduled_runs", "Scheduled runs that have ended", labels=("schedule", "status")
    )
    for standing in standings:
        for status in ENDED:
            counts.add_metric((standing.schedule.name, status), standing.counts[status])
    yield counts
    for name, (text, value_of) in _OF_SCHEDULES.items():
        values = {(standing.schedule.name,): value_of(standing) for standing in standings}
        yield _gauge(name, text, values, "schedule")
    statuses = {
        (standing.schedule.name, status): standing.last.status == status
        for standing in standings
        if standing.last
        for status in ENDED
    }
    text = "1 for the status of the last scheduled run, 0 for the others"
    yield _gauge("last_run_status", text, statuses, "schedule", "status")


def _run_metrics(records: Sequence[RunRecord]) -> Iterator[Metric]:
    """Yields metrics of the runs of a root, whether started by a schedule, by hand, or on Kubeflow."""
    if not records:
        return
    newest = records[-1]
    statuses = {(status,): newest.status == status for status in get_args(Status)}
    text = "Status of the newest run, started by a schedule or not"
    yield _gauge("newest_run_status", text, statuses, "status")
    began = datetime.fromisoformat(newest.started).timestamp()
    yield _gauge("newest_run_start_time_seconds", "When it began", began)
    ended = [run for run in records if run.finished is not None]
    good = [run for run in ended if run.status in ENDED and run.status != "failed"]
    if ended:
        end, secs = _end(ended[-1]), _duration_secs(ended[-1])
        yield _gauge("newest_run_end_time_seconds", "When the last run ended", end)
        yield _gauge("newest_run_duration_seconds", "From its start to its end", secs)
    if good:
        text = "When the last run that did not fail ended"
        yield _gauge("newest_good_run_end_time_seconds", text, _end(good[-1]))


def _model_metrics(root: Root) -> Iterator[Metric]:
    versions = root.versions.served()
    if not versions:
        return
    yield _gauge("served_version", "The live version", versions[-1])
    record = run_of_version(root, str(versions[-1]))
    if record is None:
        return
    metrics = {(name,): value for name, value in record.metrics.items()}
    text = "Metrics of the live model, from the evaluation in its run"
    yield _gauge("served_model_metric", text, metrics, "metric")
    if record.finished is not None:
        yield _gauge("served_model_push_time_seconds", "When its run ended", _end(record))


def _gauge(name: str, text: str, values: float | None | Mapping[Any, float | None], *labels: str) -> Metric:
    """Returns a gauge with its value, or with its values by label; those that are None are left out."""
    gauge = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for label_values, value in (values if isinstance(values, Mapping) else {(): values}).items():
        if value is not None:
            gauge.add_metric(label_values, float(value))
    return gauge


def _duration_secs(run: Run | None) -> float | None:
    end = _end(run)
    return None if not run or end is None else end - datetime.fromisoformat(run.started).timestamp()


def _end(run: Run | None) -> float | None:
    return datetime.fromisoformat(run.finished).timestamp() if run and run.finished else None
