"""`pipelines.run` and `pipelines.plan`: what the commands of these names do, in Python."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import pyarrow as pa
from pydantic import ValidationError

from pipelines.config.load import explain, load_config
from pipelines.config.tfx_pipeline import TfxPipelineConfig
from pipelines.data.cells import list_rows
from pipelines.data.dialect import COMMAS
from pipelines.data.remote import store_table
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.records import Metrics, RunRecord
from pipelines.runs.plan.description import describe_plan
from pipelines.runs.plan.inputs import RunRequest, check_root
from pipelines.runs.run import run as run_pipeline
from pipelines.runs.tfx_pipeline import run_tfx_pipeline
from pipelines.steps.definition import checked_pipeline
from pipelines.terminal.output_capture import OutputCapture, captured_output
from pipelines.terminal.progress import PlainDisplay, Progress, make_display, terminal_stream
from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

if TYPE_CHECKING:
    import pandas as pd
    from tfx.orchestration.pipeline import Pipeline

    from pipelines.serving.model import Model

    Data: TypeAlias = str | os.PathLike[str] | pd.DataFrame


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    Attributes:
        record: Everything that is known about it.
        root: Folder of the pipeline's runs.
    """

    record: RunRecord
    root: Root

    @property
    def status(self) -> str:
        """`pushed`, `unchanged`, `held`, `not_blessed`, `failed`, `interrupted`; or `finished`."""
        return self.record.status

    @property
    def reason(self) -> str | None:
        """Reason why nothing was pushed."""
        return self.record.reason

    @property
    def version(self) -> str | None:
        """Version that was pushed; None if there is none."""
        return self.record.version

    @property
    def metrics(self) -> Metrics:
        """Metrics by name, on the rows that the model has not seen."""
        return self.record.metrics

    @property
    def report(self) -> Path | None:
        """HTML page about the run."""
        return Path(self.record.report) if self.record.report else None

    @property
    def model(self) -> "Model":
        """The version that the run has pushed or, if it is unchanged, the live one.

        Raises:
            BadInputError: It has pushed none.
        """
        from pipelines.serving.model import load  # imports TensorFlow

        version = self.record.version
        if version is None and self.status != "unchanged":
            raise BadInputError(
                f"Run {self.record.run_id} has no model: it is {self.status}. {self.reason or ''} "
                f"pipelines.load({str(self.root)!r}) loads the live version, if there is one."
            )
        return load(self.root, int(version) if version else None)

    def __repr__(self) -> str:
        because = f": {self.reason}" if self.reason else ""
        return f"<run {self.record.run_id} in {self.root}: {self.status}{because}>"


@dataclass(frozen=True)
class Plan:
    """Plan of a run: the use of each column.

    Attributes:
        columns: Kind, use, share of missing values and note of each column.
        lines: Lines that the command `plan` prints.
    """

    columns: tuple[dict[str, Any], ...]
    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)


def run(
    pipeline: "Pipeline | None" = None,
    *,
    data: "Data | None" = None,
    label: str | None = None,
    config: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] = "pipeline_root",
    runner: str = "local",
    parameters: Mapping[str, str | int | float] | None = None,
    enable_cache: bool = True,
    resume: bool = False,
    **settings: Mapping[str, Any],
) -> Run:
    """Runs the pipeline from a CSV, or a TFX pipeline of your own, and returns how it ended.

    Unchanged steps are reused. Progress goes to stderr, output of libraries to the run's log.

    Args:
        pipeline: TFX pipeline with components of TFX, of ours, or of your own; instead of the next three.
        data: CSV or Parquet file, a folder of them, a URL, or a DataFrame. Of the last two, the root gets a
            copy.
        label: Column to predict.
        config: Configuration file (TOML).
        root: Folder of the runs; it takes the place of a TFX pipeline's `pipeline_root`.
        runner: `local`, or `beam` for the engine in `beam`.
        parameters: Values of a TFX pipeline's `RuntimeParameter`s.
        enable_cache: False runs every step.
        resume: Continues the newest run, which has not ended.
        **settings: Sections of the configuration, which override those of the file, such as
            `trainer={"train_steps": 500}` or `beam={"direct": {"workers": 4}}`.

    Raises:
        BadInputError: The run cannot begin, or the root is in use; no run was recorded.

    Example:
          run = pipelines.run(data="trips.csv", label="tips", trainer={"model": "linear"})
          run.status, run.metrics["auc"]
          run.model.predict([{"fare": 12.5}])
    """
    place = Root(Path(os.path.realpath(root)))
    describes_csv = {"data": data is not None, "label": label, "config": config}
    given = [name for name, value in describes_csv.items() if value]
    if pipeline is None:
        if parameters:
            raise BadInputError("pipelines.run: parameters are for a TFX pipeline.")
        if not given and not resume:
            raise BadInputError("pipelines.run needs data and label, or config, or a TFX pipeline.")
        check_root(place)  # a DataFrame is written to it
        with _data_path(data, place.data) as path:
            request = RunRequest(
                place,
                Path(config) if config else None,
                path,
                label,
                sections=settings,
                runner=runner,
                enable_cache=enable_cache,
                resume=resume,
            )
            with _progress() as (progress, capture):
                return Run(run_pipeline(request, progress, capture), place)
    if given:
        raise BadInputError(f"pipelines.run: a TFX pipeline names its data itself. Leave out {given[0]}.")
    checked_pipeline(pipeline, "pipelines.run")
    values = {"pipeline": {"parameters": dict(parameters or {})}, **settings}
    try:
        tfx_config = TfxPipelineConfig.model_validate(values)
    except ValidationError as error:
        raise BadInputError(explain(error, None, TfxPipelineConfig)) from error
    request = RunRequest(place, runner=runner, enable_cache=enable_cache, resume=resume)
    with _progress() as (progress, capture):
        return Run(run_tfx_pipeline(request, tfx_config, progress, capture, pipeline), place)


def plan(
    *,
    data: "Data | None" = None,
    label: str | None = None,
    config: str | os.PathLike[str] | None = None,
    **settings: Mapping[str, Any],
) -> Plan:
    """Plans a run without running it, as the command `plan` does.

    Args:
        data: CSV or Parquet file, a folder of them, a URL, or a DataFrame.
        label: Column to predict.
        config: Configuration file (TOML).
        **settings: Sections of the configuration, which override those of the file.

    Raises:
        BadInputError: The data or the configuration cannot be used.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        quiet_tensorflow(),
        _data_path(data, Path(folder)) as path,
    ):
        configuration = load_config(Path(config) if config else None, path, label, sections=settings)
        data_plan, lines = describe_plan(configuration)
        if path and _is_frame(data):
            lines = [_with_rows_of_frame(line, path) for line in lines]
    return Plan(tuple(vars(row) for row in data_plan.columns), tuple(lines))


@contextmanager
def _progress() -> Iterator[tuple[Progress, OutputCapture]]:
    """Shows the progress on stderr, and captures the output of libraries."""
    # Before the capture, which redirects the descriptor; a notebook's stderr has none.
    has_descriptor = sys.stderr is sys.__stderr__
    display = make_display(terminal_stream()) if has_descriptor else PlainDisplay(sys.stderr)
    try:
        with captured_output() as capture, Progress(display) as progress:
            yield progress, capture
    finally:
        display.close()


def _is_frame(data: "Data | None") -> "TypeGuard[pd.DataFrame]":
    return data is not None and not isinstance(data, str | os.PathLike)


@contextmanager
def _data_path(data: "Data | None", folder: Path) -> Iterator[str | None]:
    """Yields the path of data; errors in the file of a DataFrame name its rows instead of lines."""
    if not _is_frame(data):
        yield None if data is None else os.fspath(data)
        return
    path = _store_frame(data, folder)
    try:
        yield path
    except BadInputError as error:
        if path not in str(error):
            raise
        raise BadInputError(_with_rows_of_frame(str(error), path)) from error


def _with_rows_of_frame(text: str, path: str) -> str:
    """Returns a message about a line of the DataFrame's file as one about its row."""
    rows = {"1": "the DataFrame"}  # line 1 is the header
    if f"{path}, line" in text:
        for row, (line, _) in enumerate(list_rows(Path(path), COMMAS)):
            rows[str(line)] = f"DataFrame.iloc[{row}]"
    text = re.sub(rf"{re.escape(path)}, line (\d+)", lambda match: rows.get(match[1], match[0]), text)
    return text.replace(path, "the DataFrame")


def _store_frame(data: "pd.DataFrame", folder: Path) -> str:
    """Writes a DataFrame to the folder, once for each content; returns the file's path."""
    if not (hasattr(data, "columns") and hasattr(data, "to_parquet")):
        raise BadInputError(f"data takes a path or a pandas DataFrame. Received: {type(data).__name__}")
    try:
        table = pa.Table.from_pandas(data, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadInputError(
            f"The DataFrame cannot be written as Parquet: {error}. Give each column values of one type."
        ) from error
    return os.path.abspath(store_table(table, folder, "frame.parquet"))
