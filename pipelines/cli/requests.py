"""`requests`: sampled requests of the server compared with the data that the model was trained on."""

import json
from typing import Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, existing, print_table


def requests_command(
    root: RootOption = DEFAULT_ROOT,
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="V", help="Version they were sent to. Default: the live version."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Check for drift: compare requests, stored by `serve --sample-requests`, with the training data."""
    existing(root)
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    with quiet_tensorflow():
        import tensorflow  # noqa: F401
    from pipelines.errors import BadInputError, counted
    from pipelines.serving.model import version_folder
    from pipelines.serving.request_drift import MIN_ROWS, TrainingData, drift_limits
    from pipelines.serving.request_files import MAX_ROWS, sampled_rows
    from pipelines.serving.saved_model import read_signatures

    folder = version_folder(root, version)
    number = int(folder.name)
    rows = sampled_rows(root.requests, number, MAX_ROWS)
    if not rows:
        raise BadInputError(
            f"There are no requests to version {number} in {root.requests}. `serve --sample-requests 0.01` "
            "keeps one row in a hundred."
        )
    if len(rows) < MIN_ROWS:
        raise BadInputError(
            f"Requests to version {number} in {root.requests}: {counted(len(rows), 'row')}, too few to "
            f"compare distributions (at least {MIN_ROWS} are needed). Wait for more, or raise `serve "
            "--sample-requests`."
        )
    signatures = read_signatures(folder).values()
    columns = {name: column for signature in signatures for name, column in signature.columns.items()}
    limits = drift_limits(root, number)
    drift = TrainingData.read_version(root, number).drift(rows, dict(sorted(columns.items())))
    drift.sort(key=lambda column: column.shift.value - max(limits[column.measure], column.shift.noise))
    drift.reverse()
    drifted = [column for column in drift if column.shift.exceeds(limits[column.measure])]
    if as_json:
        fields = [
            {
                "column": column.column,
                "measure": column.measure,
                "value": column.shift.value,
                "by_chance": column.shift.noise,
                "limit": limits[column.measure],
                "drifted": column in drifted,
                "text": column.shift.text,
            }
            for column in drift
        ]
        print(json.dumps(fields, indent=1, allow_nan=False))
        return
    from rich.table import Table

    table = Table("column", "measure", "shift", "by chance", "limit", "")
    for column in drift:
        shift, limit = column.shift, limits[column.measure]
        cells = (f"{shift.value:.3g}", f"{shift.noise:.3g}", f"{limit:g}")
        text = shift.text if column in drifted else ""
        table.add_row(column.column, column.measure, *cells, text)
    print_table(table)
    names = ", ".join(dict.fromkeys(column.column for column in drifted)) or "none"
    print(f"{counted(len(rows), 'row')} of requests to version {number}. Columns that have drifted: {names}.")
