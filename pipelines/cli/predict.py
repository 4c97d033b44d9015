"""`predict`: predictions for the rows of CSV files. Heavy imports happen inside the command."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, existing, given_path
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.serving.files import Reading


def predict_command(
    data: Annotated[
        str, typer.Option("--data", metavar="CSV_OR_DIR", help="A CSV, or a folder of CSVs.")
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
            help="File to write, .csv or .parquet. Default: CSV to standard output.",
        ),
    ] = None,
) -> None:
    """Predict the rows of CSV files by the model that serves.

    The columns of the input are kept, and the predictions are appended: class and probability, or value.
    """
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    existing(root)
    with quiet_tensorflow():
        from pipelines.serving.files import predict_files
        from pipelines.serving.load import load

        model = load(root, version)
    start = time.monotonic()
    num_rows = predict_files(model, data, output, _reading(root, model.version), _say)
    place = "" if output is None else f", written to {output}"
    secs = time.monotonic() - start
    _say(f"{num_rows:,} rows predicted by version {model.version} in {secs:.1f} s{place}")


def _reading(root: Root, version: int) -> "Reading":
    """Returns how the run that pushed a version read its files."""
    from pipelines.serving.files import Reading

    origin = next((found for number, found in root.versions.origins() if number == version), None)
    record = root.records.read(origin.pipeline_run_id) if origin else None
    if record is None:
        return Reading()
    given = record.validated_config().data
    return Reading(given.delimiter, given.quote, given.encoding)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
