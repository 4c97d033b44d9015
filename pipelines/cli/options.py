"""Options, exit codes and refusals that the commands share."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.kubeflow.server.submission import Server
    from pipelines.serving.model import ModelFolder

EXIT_PUSHED = EXIT_UNCHANGED = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_BLESSED = EXIT_HELD = 3

DEFAULT_ROOT: Any = "pipeline_root"  # a Root once Typer has parsed it


def given_path(text: str | Path) -> Path:
    """Returns the path of an option; refuses an empty one, which would be the working directory."""
    if not str(text):
        raise typer.BadParameter("the path is empty. Give one such as ./name, or . for the current folder.")
    return Path(text)


def _root(text: str) -> Root:
    return Root(Path(os.path.realpath(given_path(text))))


kubeflow_option = partial(typer.Option, rich_help_panel="Kubeflow")

RootOption = Annotated[
    Root,
    typer.Option(
        "--root", metavar="DIR", parser=_root, help="Folder of the pipeline: models, runs, reports."
    ),
]
ModelOption = Annotated[
    Path | None,
    typer.Option(
        "--model",
        metavar="DIR",
        parser=given_path,
        help="Any SavedModel, or a folder of numbered ones, instead of the model of --root.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE.toml",
        parser=given_path,
        help="Configuration file; other options override it.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FILE_OR_DIR",
        help="CSV or Parquet file, folder or URL; for spans, a pattern such as {YYYY}-{MM}-{DD}.csv.",
    ),
]
Label = Annotated[str | None, typer.Option("--label", metavar="COLUMN", help="Column to predict.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="section.key=value",
        help="Override a key of the configuration, such as trainer.model=linear. Can be repeated.",
    ),
]
Pipeline = Annotated[
    str | None,
    typer.Option(
        "--pipeline",
        metavar="FILE.py[:FUNCTION]",
        help="Your own TFX pipeline, instead of --data and --label.",
    ),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--arg", metavar="name=value", help="Argument of the FUNCTION of --pipeline. Can be repeated."
    ),
]
ScheduleName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name of the schedule. Default: the root's only schedule."),
]
Host = Annotated[
    str | None,
    kubeflow_option("--kubeflow", metavar="URL", help="Address of Kubeflow Pipelines: use its schedules."),
]
Namespace = Annotated[
    str | None,
    kubeflow_option("--namespace", metavar="NAME", help="Your namespace, if Kubeflow has several users."),
]
TokenFile = Annotated[
    Path | None,
    kubeflow_option(
        "--token-file", metavar="FILE", parser=given_path, help="File with Kubeflow's bearer token."
    ),
]

Experiment = Annotated[
    str | None,
    kubeflow_option(
        "--experiment", metavar="NAME", help="Name of the experiment. Default: the pipeline's name."
    ),
]


def with_old_name(option: str) -> str:
    """Returns the name of an option, of which `host` was an earlier one for Kubeflow's address."""
    return "kubeflow" if option == "host" else option


@dataclass(frozen=True)
class HostOptions:
    """Options that select a server of Kubeflow."""

    host: str | None  # Address of the server; None for this machine
    namespace: str | None
    token_file: Path | None

    def server(self) -> "Server":
        from pipelines.kubeflow.server.submission import Server, read_token

        token = read_token(self.token_file) if self.token_file else None
        return Server(self.host or "", self.namespace, token)


def existing(root: Root, exit_code: int = EXIT_BAD_INPUT) -> Root:
    """Returns a root, or ends the command if the folder does not exist."""
    if not root.path.is_dir():
        file = " (it is a file)" if root.path.exists() else ""
        refuse(
            f"There is no folder {root}{file}: give the --root of `run` or `schedule create`, or mount its "
            "volume.",
            exit_code,
        )
    return root


def place_of_model(context: typer.Context, root: Root, model_folder: Path | None) -> "Root | ModelFolder":
    if model_folder is None:
        return existing(root)
    source = context.get_parameter_source("root")
    if source is not None and source.name == "COMMANDLINE":
        refuse("--model takes the place of --root: leave one of the two out.")
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    with quiet_tensorflow():
        from pipelines.serving.model import ModelFolder

        return ModelFolder(model_folder)


def short_path(path: str | os.PathLike[str]) -> str:
    """Returns a path, relative to the working directory if it is inside."""
    absolute = Path(path).absolute()
    inside = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd()) if inside else absolute)


def callable_program(program: str) -> str:
    """Returns a program as this shell finds it: its environment may not be active, as in `make demo`."""
    word, *rest = program.split()
    own = Path(sys.executable).parent / word
    on_path = shutil.which(word)
    is_found = on_path is not None and Path(on_path).absolute() == own.absolute()
    return " ".join([word if is_found else shlex.quote(short_path(own)), *rest])


@contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """Turns errors into a message and an exit code."""
    from components.errors import SettingError
    from pipelines.errors import BadInputError, RunFailedError

    try:
        yield
    except (BadInputError, SettingError) as error:
        refuse(str(error))
    except OSError as error:
        if error.filename is None:
            refuse(str(error))
        refuse(f"{error.filename}: {error.strerror}. Check the path and its permissions.")
    except RuntimeError as error:
        from pipelines.kubeflow.server.submission import ServerError

        if not isinstance(error, ServerError | RunFailedError):
            raise
        refuse(str(error), EXIT_FAILED)


def print_table(table: Any) -> None:
    """Prints a table, up to 140 characters wide if the output is not a terminal."""
    from rich.console import Console

    # Cells are text: the brackets of a column `weight [kg]` are not Rich's markup.
    Console(width=None if sys.stdout.isatty() else 140, markup=False, emoji=False).print(table)


def refuse(message: str, exit_code: int = EXIT_BAD_INPUT) -> NoReturn:
    """Ends the command with a message."""
    print(message, file=sys.stderr)
    raise typer.Exit(exit_code)
