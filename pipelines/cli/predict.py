"""`predict`: predictions for the rows of files."""

import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, ModelOption, RootOption, given_path, place_of_model
from pipelines.errors import BadInputError
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.serving.files import Reading
    from pipelines.serving.model import ModelFolder


def predict_command(
    context: typer.Context,
    data: Annotated[
        str, typer.Option("--data", metavar="FILE_OR_DIR", help="A CSV or Parquet file, folder or URL.")
    ],
    query: Annotated[
        str | None, typer.Option("--query", metavar="SQL", help="Query, if --data is the URL of a database.")
    ] = None,
    root: RootOption = DEFAULT_ROOT,
    model_folder: ModelOption = None,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="V", help="Version of the model. Default: the live version."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="FILE",
            parser=given_path,
            help="Output file, .csv or .parquet. Default: CSV on standard output.",
        ),
    ] = None,
    num_explained: Annotated[
        int,
        typer.Option(
            "--explain",
            metavar="N",
            min=0,
            help="Also write the N columns that contribute most to each prediction, with their "
            "contributions: log-odds for a class, otherwise in the units of the label.",
        ),
    ] = 0,
) -> None:
    """Make predictions for the rows of a file or a query with the live model.

    For example, `predict --data new.csv -o predictions.csv`. The columns of the input are kept, and the
    predictions are appended: class and probability, or value.
    """
    place = place_of_model(context, root, model_folder)
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    with quiet_tensorflow():
        from pipelines.config.data_url import is_url
        from pipelines.config.load import load_config
        from pipelines.data.remote import temporary_copy
        from pipelines.serving.files import predict_files
        from pipelines.serving.model import load_model

        model = load_model(place, version)
        with suppress(BadInputError):  # only for TensorFlow's messages; the rows will show what is wrong
            model.try_out(model.fast_signature())

    unnamed = ""  # Folder of a temporary copy

    def say(line: str) -> None:
        print(line.replace(unnamed, ""), file=sys.stderr)

    start = time.monotonic()
    reading = _reading(place, model.version)
    is_remote = query is not None or is_url(data)
    # A prediction needs no label.
    config = load_config(None, data, "-", sections={"data": {"query": query}}) if is_remote else None
    with temporary_copy(config.data, config.split) if config else nullcontext(data) as path:
        unnamed = f"{Path(path).parent}/" if is_remote else ""
        num_rows = predict_files(model, path, output, reading, say, num_explained)
    target = "" if output is None else f", written to {output}"
    secs = time.monotonic() - start
    rows = "1 row" if num_rows == 1 else f"{num_rows:,} rows"
    say(f"{rows} predicted by version {model.version} in {secs:.1f} s{target}")


def _reading(root: "Root | ModelFolder", version: int) -> "Reading":
    """Returns how the run that pushed a version read its CSV files; without a root, as they look."""
    from pipelines.config.load import is_of_tfx_pipeline
    from pipelines.serving.files import Reading

    if not isinstance(root, Root):
        return Reading()
    origins = dict(root.versions.origins())
    record = root.records.read(origins[version].pipeline_run_id) if version in origins else None
    if record is None or is_of_tfx_pipeline(record.config):  # its data need not be a CSV
        return Reading()
    data = record.validated_config().data
    return Reading(data.delimiter, data.quote, data.encoding)
