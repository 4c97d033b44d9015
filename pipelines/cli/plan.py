"""`plan`: shows the plan of a run without running it."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import Config, Data, Label, Settings, given_path


def plan_command(
    config: Config = None,
    data: Data = None,
    label: Label = None,
    settings: Settings = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", metavar="FILE.toml", parser=given_path, help="Also write the plan as a configuration file."
        ),
    ] = None,
) -> None:
    """Show how each column would be read and used, without running the pipeline.

    For example, `plan --data trips.csv --label tips`. `run` takes the same options.
    """
    from pipelines.config.load import load_config
    from pipelines.runs.plan.description import describe_plan, write_plan_file
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    configuration = load_config(config, data, label, tuple(settings or ()))
    with quiet_tensorflow():  # the user's module imports it
        # COLUMNS, or the width of the terminal; a file or a pipe gets whole lines.
        plan, lines = describe_plan(configuration, width=shutil.get_terminal_size((0, 0)).columns or None)
    print("\n".join(lines))
    if output is not None:
        write_plan_file(configuration, plan, output)
        print(f"written: {output}", file=sys.stderr)
