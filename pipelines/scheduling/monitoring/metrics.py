"""Prometheus metrics of the schedules, the runs and the served model.

They are read from the root at each scrape, so that counters continue when a scheduler is restarted.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pipelines import atomic_files
from pipelines.root import Root
from pipelines.root.records import Status
from pipelines.scheduling.clock import Clock
from pipelines.scheduling.history import ENDED, Run
from pipelines.scheduling.monitoring.overview import Standing, look

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily, Metric

PREFIX = "estimator_pipelines"

RUN_STATUSES: tuple[str, ...] = get_args(Status)

_SCHEDULE_GAUGES = {
    "schedule_enabled": "Whether the schedule starts runs",
    "schedule_next_time_seconds": "When the next run is due",
    "schedule_running": "Whether a run is in progress",
    "schedule_interrupted": "Whether a run was stopped or killed, and no scheduler is there to resume it",
    "schedule_due_ticks": "Ticks that are due and have not started",
    "schedule_late_ticks": "Ticks that should have started by now",
    "schedule_late_seconds": "For how long the oldest of them has been due",
    "schedule_has_problem": "Whether due runs cannot be determined, such as when the configuration is broken",
    "notification_failed": "Whether the notification of the last run has failed",
    "last_run_end_time_seconds": "When the last scheduled run ended",
    "last_good_run_end_time_seconds": "When the last run that did not fail ended",
    "last_run_duration_seconds": "From its start to its end",
}


class PipelineCollector:
    """Collects the metrics of a root."""

    def __init__(self, root: Root, clock: Clock):
        self._root = root
        self._clock = clock

    def collect(self) -> Iterator["Metric"]:
        """Yields the metrics to `prometheus_client`."""
        now = self._clock.now()
        overview = look(self._root, now)
        yield from _of_schedules(overview.standings, now)
        yield from _of_runs(self._root)
        yield from _of_model(self._root)
        damaged = len(overview.damaged)
        yield _gauge(
            "damaged_files", "Files of schedules and runs that cannot be read", (), damaged
        )
        text = "Runs, ticks and schedules with a time in the future, which are ignored"
        yield _gauge("future_records", text, (), overview.num_future)
        yield _gauge(
            "metrics_time_seconds", "When these metrics were collected", (), now.timestamp()
        )


def registry(collector: PipelineCollector) -> "CollectorRegistry":
    """Returns a registry with the metrics of a root, and no others."""
    from prometheus_client import CollectorRegistry

    made = CollectorRegistry()
    made.register(collector)
    return made


def write_metrics(collector: PipelineCollector, file: Path) -> None:
    """Replaces a file of node_exporter's textfile collector."""
    from prometheus_client import generate_latest

    text = generate_latest(registry(collector))
    # The collector reads *.prom alone: it never sees a partial file.
    atomic_files.write(file, text)


def serve_metrics(
    collector: PipelineCollector, address: str, port: int
) -> tuple[int, Callable[[], None]]:
    """Serves scrapes from a thread.

    Raises:
      OSError: The port is taken.
    """
    from prometheus_client import start_http_server

    server, thread = start_http_server(port, address, registry(collector))

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, end


def _of_schedules(found: Sequence[Standing], now: datetime) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily

    counts = CounterMetricFamily(
        f"{PREFIX}_scheduled_runs", "Scheduled runs that have ended", labels=("schedule", "status")
    )
    for one in found:
        for status in ENDED:
            counts.add_metric((one.schedule.name, status), one.counts[status])
    yield counts
    values = [(standing.schedule.name, _values(standing, now)) for standing in found]
    for name, text in _SCHEDULE_GAUGES.items():
        samples = (
            ((schedule,), value)
            for schedule, by_name in values
            if (value := by_name[name]) is not None
        )
        yield _gauge(name, text, ("schedule",), *samples)
    yield _gauge(
        "last_run_status",
        "1 for the status of the last scheduled run, 0 for the others",
        ("schedule", "status"),
        *(
            ((one.schedule.name, status), float(one.last.status == status))
            for one in found
            if one.last
            for status in ENDED
        ),
    )


def _values(standing: Standing, now: datetime) -> dict[str, float | None]:
    """Returns the values of the gauges of one schedule; None without one."""
    next_time, last, last_good = standing.next_time, standing.last, standing.last_good
    return {
        "schedule_enabled": standing.schedule.enabled,
        "schedule_next_time_seconds": next_time.timestamp() if next_time else None,
        "schedule_running": standing.running is not None,
        "schedule_interrupted": standing.interrupted is not None,
        "schedule_due_ticks": standing.due.count,
        "schedule_late_ticks": len(standing.due.late),
        "schedule_late_seconds": standing.late_secs(now),
        "schedule_has_problem": standing.problem is not None,
        "notification_failed": bool(standing.not_told),
        "last_run_end_time_seconds": _time(last.finished if last else None),
        "last_good_run_end_time_seconds": _time(last_good.finished if last_good else None),
        "last_run_duration_seconds": _duration_secs(last),
    }


def _of_runs(root: Root) -> Iterator["Metric"]:
    """Yields metrics of the runs of a root, whether started by a schedule, by hand, or on Kubeflow."""
    from pipelines.root.history import read_runs

    records = read_runs(root)
    if not records:
        return
    newest = records[-1]
    yield _gauge(
        "newest_run_status",
        "Status of the newest run, whoever started it",
        ("status",),
        *(((status,), float(newest.status == status)) for status in RUN_STATUSES),
    )
    yield _gauge("newest_run_start_time_seconds", "When it began", (), _time(newest.started) or 0.0)
    ended = [one for one in records if one.finished is not None]
    good = [one for one in ended if one.status in ENDED and one.status != "failed"]
    if ended:
        start, end = _time(ended[-1].started), _time(ended[-1].finished)
        if start is not None and end is not None:
            yield _gauge("newest_run_end_time_seconds", "When the last run ended", (), end)
            yield _gauge(
                "newest_run_duration_seconds", "From its start to its end", (), end - start
            )
    if good and (end := _time(good[-1].finished)) is not None:
        yield _gauge(
            "newest_good_run_end_time_seconds", "When the last run that did not fail ended", (), end
        )


def _of_model(root: Root) -> Iterator["Metric"]:
    from pipelines.root.history import run_of_version

    versions = root.versions.served()
    if not versions:
        return
    yield _gauge("served_version", "The version that serves", (), versions[-1])
    record = run_of_version(root, str(versions[-1]))
    if record is None:
        return
    yield _gauge(
        "served_model_metric",
        "Metrics of the model that serves, of the evaluation in its run",
        ("metric",),
        *(((name,), value) for name, value in record.metrics.items() if value is not None),
    )
    pushed = _time(record.finished)
    if pushed is not None:
        yield _gauge("served_model_push_time_seconds", "When its run ended", (), pushed)


def _gauge(
    name: str,
    text: str,
    labels: tuple[str, ...],
    *values: "float | tuple[Iterable[str], float]",
) -> "GaugeMetricFamily":
    from prometheus_client.core import GaugeMetricFamily

    gauge = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=labels)
    for value in values:
        of_labels, number = value if isinstance(value, tuple) else ((), value)
        gauge.add_metric(list(of_labels), float(number))
    return gauge


def _duration_secs(run: Run | None) -> float | None:
    start, end = (_time(run.started), _time(run.finished)) if run else (None, None)
    return None if start is None or end is None else end - start


def _time(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()
