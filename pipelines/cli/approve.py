"""`approve`: the decision about a model that the gate holds."""

import sys
from typing import Annotated

import typer

from pipelines.cli.options import DEFAULT_ROOT, RootOption, existing


def approve_command(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run that holds the model.")],
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="Reason, shown in the report.")],
    reject: Annotated[
        bool, typer.Option("--reject", help="Discard the model instead of pushing it.")
    ] = False,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="Who decided. Default: your user name.")
    ] = "",
    root: RootOption = DEFAULT_ROOT,
) -> None:
    """Push a held model unchanged and print its version, or discard it."""
    from pipelines.runs import approval
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    def say(text: str) -> None:
        print(f"! {text}", file=sys.stderr)

    existing(root)
    if reject:
        record = approval.reject(root, run_id, because, by, say)
        print(f"run {record.run_id}: {record.decision}", file=sys.stderr)
        return
    with quiet_tensorflow():
        record = approval.approve(root, run_id, because, by, say)
    print(f"pushed version {record.version}: {record.decision}", file=sys.stderr)
    print(record.version)
