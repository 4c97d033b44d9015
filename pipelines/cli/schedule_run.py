"""`schedule run`, `backfill`, `check`, `metrics` and `manifest`."""

import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipelines.cli.options import (
    DEFAULT_ROOT,
    EXIT_FAILED,
    RootOption,
    ScheduleName,
    existing,
    given_path,
    refuse,
)
from pipelines.errors import counted
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.scheduling.clock import Clock, Stop
    from pipelines.scheduling.monitoring.overview import Overview

_LOGGER = logging.getLogger(__name__)

MetricsFile = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE.prom",
        parser=given_path,
        help="Write metrics to this file, for node_exporter's textfile collector.",
    ),
]


def run_command(
    root: RootOption = DEFAULT_ROOT,
    once: Annotated[
        bool, typer.Option("--once", help="Start the due runs, then exit; for cron, timers and CronJobs.")
    ] = False,
    now: Annotated[
        str | None,
        typer.Option(
            "--now",
            metavar="NAME",
            help="Run this schedule's pipeline now, due or not, and exit. A scheduler may be running.",
        ),
    ] = None,
    metrics_file: MetricsFile = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", min=0, max=65_535, help="Port for the Prometheus endpoint; 0 picks a free port."
        ),
    ] = None,
    metrics_address: Annotated[
        str, typer.Option("--metrics-address", help="Address for --metrics-port to listen on.")
    ] = "127.0.0.1",
) -> None:
    """Start the runs of all schedules when they are due, one at a time, until SIGTERM or Ctrl-C.

    These stop the active run; the next `schedule run` resumes it. Exit codes: 0; 1 with --once or --now if a
    run failed or due runs cannot be determined; 2 if another scheduler is working in the root.
    """
    from pipelines.scheduling.clock import Clock, Stop
    from pipelines.scheduling.monitoring.metrics import PipelineCollector, serving_metrics, write_metrics
    from pipelines.scheduling.scheduler import Scheduler
    from pipelines.scheduling.store import scheduler_lock

    existing(root, EXIT_FAILED)
    stop = Stop()
    clock = Clock(stop)
    if now is not None:
        _run_now(root, now, clock, stop)
        return
    collector = PipelineCollector(root, clock)

    def write() -> None:
        if metrics_file is not None:
            try:
                write_metrics(collector, metrics_file)
            except OSError as error:  # must not stop the runs
                _LOGGER.error("--metrics-file %s: %s", metrics_file, error)

    with contextlib.ExitStack() as stack:
        stack.enter_context(scheduler_lock(root.schedules))
        stack.enter_context(_working(stop))
        scheduler = Scheduler(root, clock, stop, on_change=write)
        if metrics_port is not None:
            port = stack.enter_context(serving_metrics(collector, metrics_address, metrics_port))
            print(f"metrics: http://{metrics_address}:{port}/metrics", file=sys.stderr, flush=True)
        write()
        if not once:
            _LOGGER.info("%d schedules in %s", len(scheduler.store.names()), root)
            scheduler.run()
        elif any(run.status == "failed" for run in scheduler.run_due()) or scheduler.broken:
            raise typer.Exit(EXIT_FAILED)


def _run_now(root: Root, name: str, clock: "Clock", stop: "Stop") -> None:
    from pipelines.scheduling.scheduler import Scheduler, StoppedError
    from pipelines.scheduling.ticks import Tick, key_of_time

    scheduler = Scheduler(root, clock, stop)
    schedule = scheduler.store.read(name)
    tick = Tick(name, f"now-{key_of_time(clock.now())}", clock.now())
    with _working(stop):
        try:
            run = scheduler.run_tick(schedule, tick)
        except StoppedError:
            raise typer.Exit(128 + signal.SIGINT) from None
    reason = getattr(run, "reason", None)
    line = {"run_id": run.run_id, "status": run.status, "version": run.version, "reason": reason}
    print(json.dumps(line))
    if run.status == "failed":
        raise typer.Exit(EXIT_FAILED)


def backfill_command(
    first: Annotated[str, typer.Option("--from", metavar="SPAN", help="First span: a number or a date.")],
    last: Annotated[str, typer.Option("--to", metavar="SPAN", help="Last span, included.")],
    root: RootOption = DEFAULT_ROOT,
    name: ScheduleName = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Continue with the next span after a failed run.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Run all spans again, even those that succeeded.")
    ] = False,
) -> None:
    """Run a schedule's pipeline over past spans, in order. Repeat the command to continue after a stop.

    Each model has to pass the usual checks to be pushed. The last line on stdout is one JSON object.
    """
    from pipelines.scheduling.backfill import plan_backfill
    from pipelines.scheduling.clock import Clock, Stop
    from pipelines.scheduling.scheduler import Scheduler, StoppedError

    existing(root)
    stop = Stop()
    clock = Clock(stop)
    scheduler = Scheduler(root, clock, stop)
    schedule = scheduler.store.chosen(name)
    # These runs and those of `schedule run` take turns, by the lock of the root.
    with _working(stop):
        backfill = plan_backfill(schedule, root, first, last, clock.now(), again)
        with contextlib.suppress(StoppedError):
            for tick, run in backfill.run(scheduler, keep_going):
                reason = getattr(run, "reason", None)
                text = f"span {tick.spans}: {run.status}" + (f": {reason}" if reason else "")
                print(text, file=sys.stderr)
        summary = backfill.summary(root)
    print(json.dumps({"name": schedule.name, **summary}))
    if stop.requested:
        raise typer.Exit(128 + signal.SIGINT)
    if summary["left"] or summary["failed"]:
        raise typer.Exit(EXIT_FAILED)


def check_command(root: RootOption = DEFAULT_ROOT) -> None:
    """For monitoring: exit with code 1 if a schedule is late or stopped, or its due runs are unknown."""
    overview = current_overview(existing(root, EXIT_FAILED))
    for line in overview.remarks():
        print(f"! {line}", file=sys.stderr)
    if lines := overview.problems():
        print("\n".join(lines))
        raise typer.Exit(EXIT_FAILED)
    print(f"{counted(len(overview.standings), 'schedule')}, none late")


def metrics_command(root: RootOption = DEFAULT_ROOT, metrics_file: MetricsFile = None) -> None:
    """Print the metrics of a root in Prometheus' text format, or write them to a file."""
    from prometheus_client import generate_latest

    from pipelines.scheduling.clock import Clock, Stop
    from pipelines.scheduling.monitoring.metrics import PipelineCollector, registry, write_metrics

    existing(root, EXIT_FAILED)
    collector = PipelineCollector(root, Clock(Stop()))
    if metrics_file is None:
        print(generate_latest(registry(collector)).decode(), end="")
    else:
        write_metrics(collector, metrics_file)


def manifest_command(
    kind: Annotated[
        Literal["systemd", "kubernetes"],
        typer.Option("--kind", help="What keeps the scheduler running."),
    ],
    root: RootOption = DEFAULT_ROOT,
    image: Annotated[
        str | None, typer.Option("--image", help="Image of the CronJob. Default: kubeflow.image.")
    ] = None,
    cron: Annotated[
        str,
        typer.Option(
            "--cron",
            metavar='"M H D M W"',
            help="When the CronJob looks for due runs: more often than the shortest --grace.",
        ),
    ] = "*/5 * * * *",
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port", min=1, max=65_535, help="Port for the metrics of the systemd service."
        ),
    ] = None,
) -> None:
    """Print a systemd service or a Kubernetes CronJob that runs the schedules of a root."""
    from pipelines.config.tfx_pipeline import load_any_config
    from pipelines.scheduling.monitoring.manifests import cron_job, systemd_service
    from pipelines.scheduling.store import ScheduleStore
    from pipelines.scheduling.timetable import Cron

    existing(root)
    schedules, _ = ScheduleStore(root).read_all()
    if kind == "systemd":
        folders = {schedule.config_file.parent for schedule in schedules if schedule.config_file}
        variable = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
        options = () if metrics_port is None else ("--metrics-port", str(metrics_port))
        print(systemd_service(root.path, folders, variable, *options), end="")
        return
    try:
        Cron(cron)
    except ValueError as error:
        refuse(f"--cron {cron!r}: {error}.")
    first = schedules[0] if schedules else ScheduleStore(root).chosen(None)
    settings = first.settings if image is None else (*first.settings, f"kubeflow.image={image}")
    kubeflow = load_any_config(first.config_file, settings).kubeflow
    if kubeflow.image is None:
        refuse("The CronJob needs an image: give --image NAME, or set kubeflow.image.")
    names = [schedule.name for schedule in schedules]
    print(cron_job(names, kubeflow, root.path, cron), end="")


def current_overview(root: Root) -> "Overview":
    """Returns the present state of a root's schedules."""
    from pipelines.scheduling.monitoring.overview import look

    return look(root, datetime.now(timezone.utc))


@contextlib.contextmanager
def _working(stop: "Stop") -> Iterator[None]:
    """Lets SIGINT and SIGTERM stop a scheduler; shows its log on stderr, with the time, and nowhere else."""
    handler: Any = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("pipelines")
    level, propagate = logger.level, logger.propagate
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in handlers:
        signal.signal(number, stop.request)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
        for number, signal_handler in handlers.items():
            signal.signal(number, signal_handler)
