"""The first look at a run: the request, and its data. Nothing heavy is imported."""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.beam.options import check_beam_args
from pipelines.beam.runners import find_runner
from pipelines.config.data_url import is_url
from pipelines.config.load import load_config
from pipelines.config.pipeline_config import PipelineConfig
from pipelines.data.byte_checks import readable
from pipelines.data.remote import copy_of_run, local_copy
from pipelines.data.spans import SpanRecord
from pipelines.data.staging import PATTERN_MARKS
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import unfinished_run
from pipelines.root.records import RunRecord
from pipelines.root.schema.root_schema import RootSchema
from pipelines.root.served_run import named_as_in_root
from pipelines.runs.definitions.run_plan import CsvData
from pipelines.runs.plan.data_plan import read_data
from pipelines.terminal.progress import Display


@dataclass(frozen=True)
class RunRequest:
    """Request of the command line."""

    root: Root
    config_file: Path | None = None
    data: str | None = None
    label: str | None = None
    settings: tuple[str, ...] = ()  # Values of `--set`, each `section.key=value`
    sections: Mapping[str, Any] = field(default_factory=dict)  # Settings of `pipelines.run`
    runner: str = "local"
    enable_cache: bool = True  # Skips unchanged components
    resume: bool = False  # Continues the newest run if it did not end
    force: bool = False  # Continues, with `resume`, even if the code of that run has changed
    # Configuration that was validated before, in place of the five above.
    config: PipelineConfig | None = None
    scheduled_by: str | None = None  # Tick of the schedule that started the run

    @property
    def gives_configuration(self) -> bool:
        """True if any option provides configuration."""
        return bool(self.config_file or self.data or self.label or self.settings or self.sections)


@dataclass(frozen=True)
class RunInputs:
    """Inputs of a run: the request, resolved, and its data."""

    root: Root  # Root, without symbolic links
    config: PipelineConfig  # Configuration, with the name of the root's pipeline
    data: CsvData  # Files that were read
    root_schema: RootSchema | None  # Schema of the root, or with the user's own
    unfinished: RunRecord | None  # Run to resume

    @property
    def spans(self) -> tuple[SpanRecord, ...]:
        """The spans that are read; empty where `data.path` has none."""
        return self.data.spans.as_records() if self.data.spans else ()


def read_inputs(request: RunRequest, display: Display) -> RunInputs:
    """Resolves the request, and reads its data. Nothing heavy is imported."""
    with readable(request.root, "--root"):
        root = Root(request.root.path.resolve())
        check_root(root)
    unfinished = unfinished_run(root) if request.resume else None
    if request.resume and unfinished is None:
        raise BadInputError(nothing_to_resume(root))
    if unfinished is not None and not request.gives_configuration:
        config = unfinished.validated_config()
    else:
        config = request.config or load_config(
            request.config_file, request.data, request.label, request.settings, request.sections
        )
    config = named_as_in_root(root, config)
    check_beam_args(config.beam.args)
    find_runner(request.runner).check(config.beam)
    if config.pusher.mlflow and importlib.util.find_spec("mlflow") is None:
        raise BadInputError("pusher.mlflow needs MLflow's client: `pip install mlflow-skinny`.")
    display.activity(f"checking {config.data.path}")
    root_schema = root.schema.read() if config.schema_.path is None else None
    pinned_spans: tuple[SpanRecord, ...] = ()
    copy = None
    if unfinished is not None:
        then = unfinished.validated_config().data
        if (then.path, then.query, then.spans) == (config.data.path, config.data.query, config.data.spans):
            pinned_spans = unfinished.spans  # differences are reported with all others later
            copy = copy_of_run(root.data, unfinished.data_files) if is_url(then.path) else None
    copy = copy or local_copy(config.data, config.split, root.data, pinned_spans)
    data = read_data(config, root_schema, pinned_spans, copy)
    return RunInputs(root, config, data, root_schema, unfinished)


def nothing_to_resume(root: Root) -> str:
    """Returns the reason why no run can be resumed, and advice."""
    newest = root.records.newest()
    if newest is None:
        why = "it has no runs"
    elif newest.kubeflow_run:
        why = f"its newest run {newest.run_id} is on Kubeflow, where Retry continues it"
    else:
        why = f"its newest run {newest.run_id} has ended ({newest.status})"
    return (
        f"--resume: there is nothing to resume in {root}: {why}. Leave --resume out to start a new run; "
        "unchanged components are reused anyway."
    )


def check_root(root: Root) -> None:
    """Checks that a root can be used."""
    place = root.path
    while not _exists(place):
        place = place.parent
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise BadInputError(f"--root {root}: {place} is not a writable folder.")
    marks = [mark for mark in PATTERN_MARKS if mark in str(root)]
    if marks:
        raise BadInputError(
            f"--root {root}: TFX would take {marks[0]!r} for a file pattern. Give a --root "
            f"without any of {PATTERN_MARKS}"
        )


def _exists(path: Path) -> bool:
    """Returns whether there is a file, a folder or a link at a path."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
