"""`runs`, `report` and `rollback`: past runs, their pages, and the choice of the served version."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, existing, given_path, print_table
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.root.records import RunRecord


def runs_command(
    root: RootOption = DEFAULT_ROOT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare", metavar="A B", help="Show the differences between two runs (or versions) instead."
        ),
    ] = None,
) -> None:
    """List past runs, their verdicts, the versions that they pushed, and which is live."""
    from pipelines.cli.runs_table import reason_lines, runs_json, runs_table
    from pipelines.errors import counted
    from pipelines.root.history import future_runs, read_runs

    existing(root)
    records = read_runs(root)
    if ahead := future_runs(records):
        print(
            f"! {counted(len(ahead), 'run')} started in the future ({ahead[-1].run_id} on "
            f"{ahead[-1].started}): the clock was wrong then, or is wrong now. Runs are still listed in "
            "the order in which they began.",
            file=sys.stderr,
        )
    for line in root.versions.warnings():
        print(f"! {line}", file=sys.stderr)
    if compare is not None:
        _compare(records, compare, root, as_json)
        return
    if as_json:
        print(json.dumps(runs_json(root, records), indent=1, allow_nan=False))
        return
    if not records:
        print(f"There are no runs in {root}.", file=sys.stderr)
        return
    print_table(runs_table(root, records))
    for line in reason_lines(records):
        print(f"i {line}")


def _compare(records: "list[RunRecord]", names: tuple[str, str], root: Root, as_json: bool) -> None:
    from pipelines.root.comparison import comparison_json, comparison_table
    from pipelines.root.lineage import find_run

    first, second = (find_run(records, name, root) for name in names)
    if as_json:
        print(json.dumps(comparison_json(first, second), indent=1, allow_nan=False))
        return
    table = comparison_table(first, second)
    if not table.row_count:
        print(f"Nothing differs between {first.run_id} and {second.run_id}.")
        return
    print_table(table)


def report_command(
    run_id: Annotated[str | None, typer.Argument(help="Id of the run. Default: the newest run.")] = None,
    root: RootOption = DEFAULT_ROOT,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE.html", parser=given_path, help="File for the report.")
    ] = None,
    index: Annotated[bool, typer.Option("--index", help="Make the page about all runs instead.")] = False,
) -> None:
    """Print the path of a run's HTML report, updating it if necessary."""
    from pipelines.errors import BadInputError
    from pipelines.report.files import index_file, report_file
    from pipelines.root.history import read_runs

    records = read_runs(existing(root))
    if not records:
        raise BadInputError(f"There are no runs in {root}.")
    if index and run_id is not None:
        raise BadInputError(f"--index shows all runs: leave out the run. Received: {run_id} --index")
    if index:
        print(index_file(root, records, output))
        return
    ids = [record.run_id for record in records]
    if run_id is not None and run_id not in ids:
        raise BadInputError(f"There is no run {run_id!r} in {root}. Runs: {', '.join(reversed(ids))}.")
    print(report_file(root, records, run_id or ids[-1], output))


def rollback_command(
    root: RootOption = DEFAULT_ROOT,
    to: Annotated[
        int | None,
        typer.Option("--to", metavar="VERSION", help="Default: the version before the live version."),
    ] = None,
) -> None:
    """Make an earlier version live again and print it.

    After an interruption, repeating the command completes that rollback and goes no further back.
    """
    from pipelines.report.files import write_index
    from pipelines.root.rollback import Rollback
    from pipelines.root.rollback import rollback as roll_back

    existing(root)

    def say(done: Rollback) -> None:
        print(done, file=sys.stderr)
        print(done.to, flush=True)
        try:
            write_index(root)  # the index shows the served version
        except OSError as error:
            print(f"{error}; `report --index` updates the index", file=sys.stderr)

    roll_back(root, to, say)
    for line in root.versions.warnings():
        print(f"! {line}", file=sys.stderr)
