"""Options, exit codes and refusals that the commands share."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from pipelines.kubeflow.server.submission import Server

EXIT_PUSHED = EXIT_UNCHANGED = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_BLESSED = 3

DEFAULT_ROOT = Path("pipeline_root")

Root = Annotated[
    Path, typer.Option("--root", metavar="DIR", help="Where everything of the pipeline is kept.")
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE.toml", help="Configuration file.")
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="CSV_OR_DIR",
        help="A CSV, a folder of CSVs, or a pattern with {SPAN} or {YYYY}-{MM}-{DD}, and {VERSION}.",
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column to predict.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="section.key=value", help="Goes before the configuration file."),
]
ScheduleName = Annotated[
    str | None, typer.Option("--name", help="Of the schedule. Default: the only one of the root.")
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="URL", help="Address of Kubeflow Pipelines: its schedules."),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", help="On Kubeflow, of the user, where there are several."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="Holds a token for Kubeflow's server."),
]


@dataclass(frozen=True)
class HostOptions:
    """Which server of Kubeflow is meant.

    Attributes:
      host: Its address; None for this machine.
      namespace: Of the user.
      token_file: Holds a token.
    """

    host: str | None
    namespace: str | None
    token_file: Path | None

    def server(self) -> "Server":
        """Returns the server."""
        from pipelines.kubeflow.server.submission import Server, read_token

        token = read_token(self.token_file) if self.token_file else None
        return Server(self.host or "", self.namespace, token)


def existing(root: Path) -> Path:
    """Returns a root as an absolute path, or ends the command: a missing one may be a volume to come."""
    place = root.resolve()
    if not place.is_dir():
        print(
            f"There is no folder {place}: give the --root of `schedule create`, or mount its volume.",
            file=sys.stderr,
        )
        raise typer.Exit(EXIT_FAILED)
    return place


@contextmanager
def errors_as_exit_codes() -> Iterator[None]:
    """Turns errors into a message and an exit code."""
    from pipelines.errors import BadInputError

    try:
        yield
    except (BadInputError, OSError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(EXIT_BAD_INPUT) from error
    except RuntimeError as error:
        from pipelines.kubeflow.server.submission import ServerError

        if not isinstance(error, ServerError):
            raise
        print(error, file=sys.stderr)
        raise typer.Exit(EXIT_FAILED) from error


def refuse(message: str) -> NoReturn:
    """Ends the command: the input is bad."""
    print(message, file=sys.stderr)
    raise typer.Exit(EXIT_BAD_INPUT)
