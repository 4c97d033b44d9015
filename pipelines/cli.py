"""The command line. Heavy imports happen inside the commands: `--help` answers at once."""

import json
import os
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from pipelines.interruption import (
    EXIT_INTERRUPTED,
    came_from_signal,
    ignore_signals,
    line_without_run,
    raise_at_signals,
)
from pipelines.kubeflow_commands import Parameters, compile_command, submit_command
from pipelines.lineage_command import lineage_command
from pipelines.retention.command import prune_command
from pipelines.runners import KUBEFLOW, RUNNER_NAMES
from pipelines.schedule_command import app as schedule_app
from pipelines.schema_command import app as schema_app

if TYPE_CHECKING:
    from pipelines.run_inputs import RunRequest
    from pipelines.run_record import RunRecord

EXIT_PUSHED = EXIT_UNCHANGED = 0
EXIT_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_NOT_BLESSED = 3

_EXIT_CODES = {
    "pushed": EXIT_PUSHED,
    "unchanged": EXIT_UNCHANGED,
    "not_blessed": EXIT_NOT_BLESSED,
    "failed": EXIT_FAILED,
    "interrupted": EXIT_INTERRUPTED,
}

app = typer.Typer(
    help="From a CSV to a gated, versioned, served model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(schema_app, name="schema")
app.add_typer(schedule_app, name="schedule")
app.command("compile")(compile_command)
app.command("submit")(submit_command)
app.command("lineage")(lineage_command)
app.command("prune")(prune_command)

_Root = Annotated[
    Path, typer.Option("--root", metavar="DIR", help="Where everything of the pipeline is kept.")
]
_DEFAULT_ROOT = Path("pipeline_root")
_Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE.toml", help="Configuration file.")
]
_Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="CSV_OR_DIR",
        help="A CSV, a folder of CSVs, or a pattern with {SPAN} or {YYYY}-{MM}-{DD}, and {VERSION}.",
    ),
]
_Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column to predict.")
]
_Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="section.key=value", help="Goes before the configuration file."),
]


class _Resume(str, Enum):
    SAME = "same"
    FORCE = "force"


class _RunCommand(TyperCommand):
    """Takes `--resume` and `--resume=force`; an option of Typer's has a value always or never."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, [f"--resume={_Resume.SAME.value}" if arg == "--resume" else arg for arg in args]
        )


@app.command(cls=_RunCommand)
def run(
    config: _Config = None,
    data: _Data = None,
    label: _Label = None,
    root: _Root = _DEFAULT_ROOT,
    runner: Annotated[
        str,
        typer.Option(
            "--runner",
            metavar="NAME",
            help=f"Where the components run: {', '.join(RUNNER_NAMES)}.",
        ),
    ] = "local",
    settings: _Settings = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Run components whose inputs have not changed, too.")
    ] = False,
    resume: Annotated[
        _Resume | None,
        typer.Option(
            "--resume",
            metavar="[=force]",
            help="Go on with the newest run if it did not end; with =force though the code of the "
            "model has changed.",
        ),
    ] = None,
    local: Annotated[
        bool,
        typer.Option("--local", help="With --runner kubeflow: execute the compiled YAML here."),
    ] = False,
    image: Annotated[
        str | None,
        typer.Option(
            "--image",
            metavar="NAME",
            help="With --local: run each step in this image, by docker, podman or buildah.",
        ),
    ] = None,
    parameters: Parameters = None,
    scheduled_by: Annotated[
        str | None,
        typer.Option("--scheduled-by", hidden=True, help="The tick of a schedule; of `schedule`."),
    ] = None,
) -> None:
    """Run a pipeline: check, train, evaluate, and push the model if it is good enough.

    The last line on stdout is one JSON object; everything else goes to stderr. Exit codes: 0
    pushed or unchanged, 3 not blessed, 2 bad input or configuration, 1 any other failure, 130 interrupted.
    """
    from pipelines.run_inputs import RunRequest

    request = RunRequest(
        root=root,
        config_file=config,
        data=data,
        label=label,
        settings=tuple(settings or ()),
        runner=runner,
        enable_cache=not no_cache,
        resume=resume is not None,
        force=resume is _Resume.FORCE,
        scheduled_by=scheduled_by,
    )
    _run(request, _OfKubeflow(local, image, tuple(parameters or ())))


@dataclass(frozen=True)
class _OfKubeflow:
    """The options of `run` that have a meaning with `--runner kubeflow` only."""

    local: bool
    image: str | None
    parameters: tuple[str, ...]

    def given(self) -> str | None:
        """Returns the first option that was given; None if there is none."""
        options = {"--local": self.local, "--image": self.image, "--param": self.parameters}
        return next((option for option, value in options.items() if value), None)


def _run(request: "RunRequest", kubeflow: _OfKubeflow) -> NoReturn:
    from pipelines.errors import BadInputError
    from pipelines.progress import Progress, display_for, terminal_stream
    from pipelines.run_lock import RootBusyError
    from pipelines.run_log import captured_output

    display = display_for(terminal_stream())
    line = line_without_run("failed")
    try:
        with captured_output() as capture, Progress(display) as progress:
            try:
                raise_at_signals()
                if request.runner == KUBEFLOW:
                    record = _run_compiled(request, progress, kubeflow)
                else:
                    record = _run_components(request, progress, capture, kubeflow)
            finally:
                ignore_signals()  # what is left is to say how it ended
        line, code = record.summary(), _exit_code(record)
        _say_outcome(display.line, record)
    except BadInputError as error:
        code, line["reason"] = EXIT_BAD_INPUT, str(error)
        line["error"] = "root_busy" if isinstance(error, RootBusyError) else "bad_input"
        display.line(f"✗ {error}")
    except BaseException as error:  # SystemExit, too: this process has a line to print
        if came_from_signal(error):
            code, line["status"] = EXIT_INTERRUPTED, "interrupted"
            display.line("✗ interrupted")
        else:
            code, line["reason"] = EXIT_FAILED, f"{type(error).__name__}: {error}"
            display.line(f"✗ {line['reason']}")
    display.close()
    print(json.dumps(line, allow_nan=False), flush=True)
    # Threads of Beam and gRPC must not keep a run alive that is over, nor its exit code from it.
    sys.stderr.flush()
    os._exit(code)


def _run_components(
    request: "RunRequest", progress: Any, capture: Any, kubeflow: _OfKubeflow
) -> "RunRecord":
    from pipelines.errors import BadInputError
    from pipelines.run import run as run_pipeline

    if option := kubeflow.given():
        raise BadInputError(
            f"{option} has a meaning with --runner kubeflow only. Received: --runner {request.runner}"
        )
    return run_pipeline(request, progress, capture)


def _run_compiled(request: "RunRequest", progress: Any, kubeflow: _OfKubeflow) -> "RunRecord":
    from pipelines.errors import BadInputError

    if not kubeflow.local:
        raise BadInputError(
            "--runner kubeflow runs the compiled pipeline here with --local. On a cluster, "
            "`python -m pipelines submit --config FILE.toml --host URL` runs it."
        )
    from pipelines.kubeflow.given_parameters import parse_parameters
    from pipelines.kubeflow.local_run import run_locally

    given = parse_parameters(kubeflow.parameters)
    if kubeflow.image is None:
        return run_locally(request, progress, given)
    from pipelines.kubeflow.local_execution.in_image import in_image

    with in_image(kubeflow.image) as engine:
        return run_locally(request, progress, given, engine=engine)


def _exit_code(record: "RunRecord") -> int:
    return EXIT_BAD_INPUT if record.is_bad_input else _EXIT_CODES[record.status]


def _say_outcome(say: Any, record: "RunRecord") -> None:
    from pipelines.history_table import evaluation_lines

    # A run of Kubeflow has its cache.
    advice = "another run" if record.kubeflow_run else "`run --resume`"
    if record.status == "pushed":
        say(f"✓ pushed version {record.version}")
        if record.reason:
            say(f"! {record.reason}")
    elif record.status == "unchanged":
        say(
            f"= unchanged, nothing is pushed: {record.reason}; version {record.serving_version} serves"
        )
    elif record.status == "not_blessed":
        say(f"✗ not blessed, nothing is pushed: {record.reason}")
    elif record.status == "interrupted":
        say(f"✗ {record.reason}; {advice} goes on from here")
    else:
        say(f"✗ {record.reason}")
        if not record.is_bad_input:  # other data or settings make another run
            say(f"  once that is mended, {advice} goes on from here")
        say(f"  log: {record.log}")
    for line in evaluation_lines(record):
        say(line)
    if record.report:
        say(f"  report: {record.report}")


@app.command()
def plan(
    config: _Config = None,
    data: _Data = None,
    label: _Label = None,
    settings: _Settings = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="FILE.toml", help="Write a configuration file to start from."),
    ] = None,
) -> None:
    """Say what each column is taken for and how it is used, without running."""
    from pipelines.config import load_config
    from pipelines.errors import BadInputError
    from pipelines.plan_command import describe_plan, write_plan_file

    try:
        given = load_config(config, data, label, tuple(settings or ()))
        made, lines = describe_plan(given)
        print("\n".join(lines))
        if output is not None:
            write_plan_file(given, made, output)
            print(f"written: {output}", file=sys.stderr)
    except BadInputError as error:
        _refuse(str(error))


@app.command()
def runs(
    root: _Root = _DEFAULT_ROOT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare", metavar="A B", help="Say what differs between two runs, or two versions."
        ),
    ] = None,
) -> None:
    """List past runs, their verdicts, the versions they pushed, and which one serves."""
    from pipelines.history_table import reason_lines, runs_json, runs_table
    from pipelines.run_history import read_runs

    records = read_runs(root.resolve())
    if compare is not None:
        _compare(records, compare, root, as_json)
        return
    if as_json:
        print(json.dumps(runs_json(root.resolve(), records), indent=1, allow_nan=False))
        return
    from rich.console import Console

    if not records:
        print(f"There are no runs in {root}.", file=sys.stderr)
        return
    table = runs_table(root.resolve(), records)
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    for line in reason_lines(records):
        print(f"! {line}")


def _compare(records: "list[RunRecord]", names: tuple[str, str], root: Path, as_json: bool) -> None:
    from pipelines.errors import BadInputError
    from pipelines.lineage import find_run
    from pipelines.run_comparison import comparison_json, comparison_table

    try:
        first, second = (find_run(records, name, root) for name in names)
    except BadInputError as error:
        _refuse(str(error))
    if as_json:
        print(json.dumps(comparison_json(first, second), indent=1, allow_nan=False))
        return
    from rich.console import Console

    table = comparison_table(first, second)
    if not table.row_count:
        print(f"Nothing differs between {first.run_id} and {second.run_id}.")
        return
    Console(width=None if sys.stdout.isatty() else 140).print(table)


@app.command()
def report(
    run_id: Annotated[str | None, typer.Argument(help="Default: the newest run.")] = None,
    root: _Root = _DEFAULT_ROOT,
    output: Annotated[
        Path | None, typer.Option("-o", metavar="FILE.html", help="Where the report goes.")
    ] = None,
    index: Annotated[
        bool, typer.Option("--index", help="The page over all runs of the root instead.")
    ] = False,
) -> None:
    """Print the path of the HTML report of a run, which is made anew if it is not up to date."""
    from pipelines.errors import BadInputError
    from pipelines.report.files import index_file, report_file
    from pipelines.run_history import read_runs

    place = root.resolve()
    records = read_runs(place)
    try:
        if not records:
            raise BadInputError(f"There are no runs in {root}.")
        if index and run_id is not None:
            raise BadInputError(f"--index is over all runs. Received: {run_id} --index")
        if index:
            target = index_file(place, records, output)
        else:
            ids = [record.run_id for record in records]
            if run_id is not None and run_id not in ids:
                raise BadInputError(
                    f"There is no run {run_id!r} in {root}. Runs: {', '.join(reversed(ids))}."
                )
            target = report_file(place, records, run_id or ids[-1], output)
    except (BadInputError, OSError) as error:
        _refuse(str(error))
    print(target)


@app.command()
def rollback(
    root: _Root = _DEFAULT_ROOT,
    to: Annotated[
        int | None,
        typer.Option(
            "--to", metavar="VERSION", help="Default: the version before the present one."
        ),
    ] = None,
) -> None:
    """Serve an earlier version again and print it."""
    from pipelines.errors import BadInputError
    from pipelines.report.files import write_index
    from pipelines.serving import rollback as roll_back

    try:
        version = roll_back(root.resolve(), to)
    except (BadInputError, OSError) as error:
        _refuse(str(error))
    print(version, flush=True)
    try:
        write_index(root.resolve())  # which says what serves
    except OSError as error:
        print(f"{error}; `report --index` makes the index again", file=sys.stderr)


def _refuse(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(EXIT_BAD_INPUT)
