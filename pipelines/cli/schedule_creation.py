"""The work of `schedule create`, `enable` and `disable`."""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipelines.beam.runners import KUBEFLOW, RUNNER_NAMES
from pipelines.config.data_url import is_url
from pipelines.config.load import explain, is_of_tfx_pipeline, read_tree
from pipelines.config.tfx_pipeline import AnyConfig, TfxPipelineConfig, load_any_config, pipeline_settings
from pipelines.config.toml import parse_named, toml_text
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.runs.plan.data_plan import check_headers
from pipelines.runs.plan.inputs import check_root
from pipelines.scheduling.history import History
from pipelines.scheduling.receivers import Receivers, without_receivers
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.spans import check_has_windows, new_arrivals
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import iso
from pipelines.scheduling.timetable import parse_duration

if TYPE_CHECKING:
    from pipelines.kubeflow.server.submission import Server


_AS_WRITTEN = ("runner", "cron", "on_new_span", "timezone", "missed", "retries")
_DURATIONS = ("every", "poll", "grace", "timeout")
"""Options that are fields of a `Schedule` as they are written, and those that are fields in seconds."""


@dataclass(frozen=True)
class CreateRequest:
    """Options of `schedule create`, as written."""

    config: Path | None
    root: Root
    cron: str | None = None
    every: str | None = None
    on_new_span: bool = False
    name: str | None = None
    missed: str = "latest"
    settings: tuple[str, ...] = ()
    timezone: str = "UTC"
    grace: str | None = None
    timeout: str | None = None
    retries: int = 1
    poll: str = "1m"
    runner: str = "local"
    replace: bool = False
    experiment: str | None = None
    max_concurrency: int | None = None
    param: tuple[str, ...] | None = None
    data: str | None = None
    label: str | None = None
    pipeline: str | None = None
    arg: tuple[str, ...] | None = None

    def load(self) -> AnyConfig:
        return load_any_config(self.config, self.stored_settings())

    def stored_settings(self) -> tuple[str, ...]:
        """Returns the settings of the runs; of two values for one key, the last counts."""
        data = self.data if self.data is None or is_url(self.data) else os.path.abspath(self.data)
        options = {"data.path": data, "data.label": self.label}
        # Quoted as TOML, so that a label `1` stays text.
        data_settings = [f"{key}={toml_text(text)}" for key, text in options.items() if text is not None]
        pipeline = None if self.pipeline is None else os.path.abspath(self.pipeline)
        settings = (*data_settings, *self.settings, *pipeline_settings(pipeline, {}, {}))
        if not is_of_tfx_pipeline(read_tree(self.config, settings)):
            return settings
        _refuse_others(self, ("data", "label"), "a pipeline from a CSV")
        arguments = parse_named(self.arg or (), "--arg")
        parameters = parse_named(self.param or (), "--param")
        return (*settings, *pipeline_settings(None, arguments, parameters))


def create_local(request: CreateRequest, warn: Callable[[str], None]) -> dict[str, Any]:
    """Creates a schedule in a root, and returns the fields that the command prints; warns of missing data."""
    if [request.cron is not None, request.every is not None, request.on_new_span].count(True) != 1:
        raise BadInputError("Give exactly one of --cron, --every and --on-new-span.")
    _refuse_others(request, ("experiment", "max_concurrency"), "--kubeflow")
    if request.runner not in RUNNER_NAMES or request.runner == KUBEFLOW:
        names = ", ".join(name for name in RUNNER_NAMES if name != KUBEFLOW)
        raise BadInputError(
            f"--runner takes one of {names}; for Kubeflow, give --kubeflow. Received: {request.runner!r}"
        )
    config = request.load()
    check_root(request.root)
    _schedule(request, config, _name(request, config), None)  # before anything is written
    if isinstance(config, TfxPipelineConfig):
        if request.on_new_span:
            raise BadInputError(
                "--on-new-span needs a pipeline from a CSV. An ExampleGen of your own pipeline finds its "
                "newest span at each run: give --cron or --every."
            )
    else:
        _refuse_others(request, ("arg",), "--pipeline FILE.py:FUNCTION")
        _refuse_others(request, ("param",), "--kubeflow and --pipeline")
        if request.on_new_span:
            check_has_windows(config.data, "--on-new-span")
        check_headers(config, warn)
    store = ScheduleStore(request.root)
    with store.changing():
        return _create(request, config, store)


def _create(request: CreateRequest, config: AnyConfig, store: ScheduleStore) -> dict[str, Any]:
    root, name = store.root, _name(request, config)
    previous = store.read(name) if name in store.names() else None
    if previous is not None and not request.replace:
        raise BadInputError(
            f"{root} already has a schedule {name!r}: {previous.when()}. Give another --name, or --replace "
            "to change it."
        )
    schedule = _schedule(request, config, name, previous)
    made: dict[str, Any] = {"name": name, "when": schedule.when(), "next": None}
    timetable = schedule.timetable()
    if following := timetable.after(schedule.since) if timetable else None:
        made["next"] = iso(following)
    if schedule.on_new_span:
        old = new_arrivals(schedule, History.read(root)).old
        made["old_spans"] = len(old or ())
        if old is not None:
            schedule = schedule.model_copy(update={"passed_spans": old})
    others = set(schedule.settings)
    notify_settings = tuple(setting for setting in request.stored_settings() if setting not in others)
    Receivers(notify=config.notify, settings=notify_settings).write(store.state(name))
    store.write(schedule)
    return {**made, "missed": schedule.missed, "file": str(store.file(name))}


def switch_local(name: str, root: Root, on: bool) -> None:
    store = ScheduleStore(root)
    if store.read(name).enabled != on:
        store.change(name, enabled=on, **({"since": _now()} if on else {}))


def create_on_kubeflow(
    request: CreateRequest, server: "Server", warn: Callable[[str], None]
) -> dict[str, Any]:
    """Creates a recurring run on Kubeflow, and returns the fields that the command prints.

    It warns of settings without effect there, and of parameters that a schedule has lost.
    """
    from pipelines.kubeflow.compile.admission import without_effect
    from pipelines.kubeflow.compile.parameters import check_given, names_on_kubeflow
    from pipelines.kubeflow.compile.pipeline_file import compile_pipeline
    from pipelines.kubeflow.server.recurring import Recurrence, dropped_warning, six_fields
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    if request.on_new_span:
        raise BadInputError("--on-new-span needs `schedule run`. On Kubeflow, use --cron or --every.")
    if (request.cron is None) == (request.every is None):
        raise BadInputError("Give exactly one of --cron and --every.")
    _refuse_others(request, ("grace", "timeout"), "a schedule of this machine")
    if request.timezone != "UTC":
        raise BadInputError(
            "--timezone: Kubeflow's server has one time zone for all schedules, UTC by default. Write --cron "
            "in that zone."
        )
    if request.missed == "skip":
        raise BadInputError('--missed skip: Kubeflow only supports "latest" (the last time) and "catch-up".')
    config = request.load()
    recurrence = Recurrence(
        cron=None if request.cron is None else six_fields(request.cron),
        interval_secs=_secs(request.every, "--every"),
        catches_up=request.missed == "catch-up",
        max_concurrency=request.max_concurrency or 1,
    )
    parameters = parse_named(request.param or (), "--param")
    if isinstance(config, TfxPipelineConfig):
        parameters = names_on_kubeflow(parameters)
    else:
        _refuse_others(request, ("arg",), "a TFX pipeline of your own")
        check_given(config, parameters)
    for warning in without_effect(config):
        warn(warning)
    with quiet_tensorflow():
        text = compile_pipeline(config, ())
    made = server.submit(
        text,
        request.experiment,
        parameters,
        recurrence,
        config.kubeflow.service_account,
        request.name,
        request.replace,
    )
    if made.dropped_parameters:
        warn(dropped_warning(made.dropped_parameters))
    return asdict(made)


def _name(request: CreateRequest, config: AnyConfig) -> str:
    if isinstance(config, TfxPipelineConfig):  # its definition, which may name it, is not loaded here
        return request.name or config.name or Path(config.pipeline.file).stem
    return request.name or config.name


def _schedule(request: CreateRequest, config: AnyConfig, name: str, previous: Schedule | None) -> Schedule:
    now = _now()
    fields = {
        "name": name,
        "config": None if request.config is None else str(request.config.absolute()),
        "settings": without_receivers(request.stored_settings()),
        "working_dir": str(Path.cwd()),
        **{name: getattr(request, name) for name in _AS_WRITTEN},
        **{f"{name}_secs": _secs(getattr(request, name), f"--{name}") for name in _DURATIONS},
        "since": now,
        "created": now,
        "enabled": previous is None or previous.enabled,
        "passed_spans": previous.passed_spans if previous and previous.on_new_span else None,
    }
    try:
        return Schedule.model_validate(fields)
    except ValidationError as error:
        raise BadInputError(explain(error, None).removeprefix(": ")) from error


def _secs(duration: str | None, option: str) -> int | None:
    return None if duration is None else parse_duration(duration, option)


def _refuse_others(request: CreateRequest, names: tuple[str, ...], belongs_to: str) -> None:
    for name in names:
        if getattr(request, name) is not None:
            option = "--" + name.replace("_", "-")
            raise BadInputError(f"{option} is for {belongs_to}. Leave it out.")


def _now() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)
