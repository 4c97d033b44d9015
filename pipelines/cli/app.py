"""The command line. Heavy imports happen inside the commands, so that `--help` is fast."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pipelines.cli.approve import approve_command
from pipelines.cli.init import init_command
from pipelines.cli.kubeflow import compile_command, submit_command
from pipelines.cli.lineage import lineage_command
from pipelines.cli.options import errors_as_exit_codes, with_old_name
from pipelines.cli.plan import plan_command
from pipelines.cli.predict import predict_command
from pipelines.cli.prune import prune_command
from pipelines.cli.requests import requests_command
from pipelines.cli.run import RunCommand, run_command
from pipelines.cli.runs import report_command, rollback_command, runs_command
from pipelines.cli.schedule import app as schedule_app
from pipelines.cli.schema import app as schema_app
from pipelines.cli.serve import serve_command

_COMPLETION = ("install_completion", "show_completion")


class _Commands(TyperGroup):
    """All commands; any error ends in a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        with errors_as_exit_codes():
            return super().invoke(ctx)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        import importlib.metadata

        print(f"estimator-pipelines {importlib.metadata.version('estimator-pipelines')}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_PANELS: dict[str, dict[str, Callable[..., None]]] = {
    "From data to a model": {
        "init": init_command,
        "plan": plan_command,
        "run": run_command,
        "approve": approve_command,
        "rollback": rollback_command,
    },
    "Predictions": {"predict": predict_command, "serve": serve_command, "requests": requests_command},
    "Earlier runs": {
        "runs": runs_command,
        "report": report_command,
        "lineage": lineage_command,
        "prune": prune_command,
    },
    "Kubeflow": {"compile": compile_command, "submit": submit_command},
}
for panel, commands in _PANELS.items():
    for name, function in commands.items():
        app.command(
            name,
            cls=RunCommand if name == "run" else None,
            rich_help_panel=panel,
            context_settings={"token_normalize_func": with_old_name} if name == "submit" else None,
        )(function)
app.add_typer(schema_app, name="schema", rich_help_panel="From data to a model")
app.add_typer(schedule_app, name="schedule", rich_help_panel="From data to a model")


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Turn a CSV into a checked, versioned, served model.

    Begin with `plan --data FILE.csv --label COLUMN`; then `run` with the same options, and `serve`.
    """


def run_app(program: str) -> None:
    """Runs the command line.

    `program`: command that was called. A shell completes commands of one word only.
    """
    command = typer.main.get_command(app)
    if " " in program:
        command.params = [parameter for parameter in command.params if parameter.name not in _COMPLETION]
    _tidy_help(command)
    command(prog_name=program)


def _tidy_help(command: Any) -> None:
    """Joins the lines of each paragraph, and leaves out the `<bool>` of options without a value."""
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for option in (*command.params, command.get_help_option(typer.Context(command))):
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""
    for other in getattr(command, "commands", {}).values():
        _tidy_help(other)
