"""`predict`: predictions for the rows of files. Heavy imports happen inside the command."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, Settings, existing, given_path
from pipelines.errors import BadInputError
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.root.records import RunRecord
    from pipelines.serving.files import Reading


def predict_command(
    data: Annotated[
        str,
        typer.Option(
            "--data", metavar="FILE_OR_DIR", help="A CSV or Parquet file, or a folder of them."
        ),
    ],
    root: RootOption = DEFAULT_ROOT,
    version: Annotated[
        int | None,
        typer.Option(
            "--version", metavar="V", help="Version of the model. Default: the one that serves."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="FILE",
            parser=given_path,
            help="File to write, .csv or .parquet; a folder of them with --runner beam. Default: CSV to "
            "standard output.",
        ),
    ] = None,
    runner: Annotated[
        Literal["local", "beam"],
        typer.Option(
            "--runner",
            help="beam predicts each file on the engine that the configuration of the run names.",
        ),
    ] = "local",
    settings: Settings = None,
) -> None:
    """Predict the rows of files by the model that serves.

    The columns of the input are kept, and the predictions are appended: class and probability, or value.
    """
    existing(root)
    if runner == "beam":
        _on_engine(root, data, version, output, tuple(settings or ()))
        return
    if settings:
        raise BadInputError("--set is for --runner beam, and has its settings: beam.runner=flink.")
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    with quiet_tensorflow():
        from pipelines.serving.files import predict_files
        from pipelines.serving.load import load

        model = load(root, version)
    start = time.monotonic()
    reading = _reading(_record_of(root, model.version))
    num_rows = predict_files(model, data, output, reading, _say)
    _say_end(num_rows, model.version, start, output)


def _on_engine(
    root: Root, data: str, version: int | None, output: Path | None, settings: tuple[str, ...]
) -> None:
    from pipelines.beam.runners import BeamRunner
    from pipelines.config.tfx_pipeline import with_settings
    from pipelines.serving.engine_files import predict_on_engine
    from pipelines.serving.load import version_folder

    if output is None:
        raise BadInputError("--runner beam writes a folder of files. Give its name with -o.")
    folder = version_folder(root, version)
    record = _record_of(root, int(folder.name))
    if record is None:
        raise BadInputError(
            f"No run of {root} has pushed version {folder.name}, so its [beam] is not known. Predict without "
            "--runner beam."
        )
    config = with_settings(record.config, settings).beam
    engine = BeamRunner()
    engine.check(config)
    start = time.monotonic()
    with engine.beam_options(config, root.beam) as options:
        num_rows = predict_on_engine(folder, data, output, _reading(record), options, _say)
    _say_end(num_rows, int(folder.name), start, output)


def _record_of(root: Root, version: int) -> "RunRecord | None":
    """Returns the run that pushed a version; None if it is not known."""
    origin = next((found for number, found in root.versions.origins() if number == version), None)
    return root.records.read(origin.pipeline_run_id) if origin else None


def _reading(record: "RunRecord | None") -> "Reading":
    """Returns how a run read its files."""
    from pipelines.config.load import is_of_tfx_pipeline
    from pipelines.serving.files import Reading

    if record is None or is_of_tfx_pipeline(record.config):  # its data need not be a CSV
        return Reading()
    given = record.validated_config().data
    return Reading(given.delimiter, given.quote, given.encoding)


def _say_end(num_rows: int, version: int, start: float, output: Path | None) -> None:
    place = "" if output is None else f", written to {output}"
    secs = time.monotonic() - start
    rows = "1 row" if num_rows == 1 else f"{num_rows:,} rows"
    _say(f"{rows} predicted by version {version} in {secs:.1f} s{place}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
