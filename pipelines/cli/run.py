"""`run`: from a CSV to a pushed model, or to the reason why there is none."""

import gc
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand

from pipelines.beam.runners import KUBEFLOW
from pipelines.cli.options import (
    DEFAULT_ROOT,
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    EXIT_HELD,
    EXIT_NOT_BLESSED,
    EXIT_PUSHED,
    EXIT_UNCHANGED,
    Arguments,
    Config,
    Data,
    Label,
    Pipeline,
    RootOption,
    Settings,
    callable_program,
    short_path,
)
from pipelines.errors import BadInputError
from pipelines.terminal.ending import end_process
from pipelines.terminal.signals import (
    EXIT_INTERRUPTED,
    ignore_signals,
    line_without_run,
    raise_at_signals,
    signal_has_come,
)

if TYPE_CHECKING:
    from pipelines.config.tfx_pipeline import AnyConfig
    from pipelines.root import Root
    from pipelines.root.records import RunRecord
    from pipelines.runs.plan.inputs import RunRequest
    from pipelines.terminal.output_capture import OutputCapture
    from pipelines.terminal.progress import Progress


_EXIT_CODES = {
    "pushed": EXIT_PUSHED,
    "unchanged": EXIT_UNCHANGED,
    "finished": EXIT_PUSHED,
    "held": EXIT_HELD,
    "not_blessed": EXIT_NOT_BLESSED,
    "failed": EXIT_FAILED,
    "interrupted": EXIT_INTERRUPTED,
}

_place_option = partial(typer.Option, rich_help_panel="Where it runs")


class _Resume(str, Enum):
    SAME = "same"
    FORCE = "force"


class RunCommand(TyperCommand):
    """Accepts `--resume` and `--resume=force`; a Typer option has a value always or never."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(
            ctx, [f"--resume={_Resume.SAME.value}" if arg == "--resume" else arg for arg in args]
        )


def run_command(
    typer_context: typer.Context,
    config: Config = None,
    data: Data = None,
    label: Label = None,
    pipeline: Pipeline = None,
    arguments: Arguments = None,
    settings: Settings = None,
    root: RootOption = DEFAULT_ROOT,
    runner: Annotated[
        str,
        _place_option(
            "--runner",
            metavar="NAME",
            help="Where the components run: local, beam or kubeflow (with --local).",
        ),
    ] = "local",
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Re-run every component, even if its inputs have not changed.")
    ] = False,
    resume: Annotated[
        _Resume | None,
        typer.Option(
            "--resume",
            metavar="[=force]",
            help="Resume the newest run if it did not finish; =force: even if the model's code changed.",
        ),
    ] = None,
    local: Annotated[
        bool, _place_option("--local", help="Run the compiled pipeline of --runner kubeflow on this machine.")
    ] = False,
    image: Annotated[
        str | None,
        _place_option(
            "--image",
            metavar="NAME",
            help="With --local: run each step in a container of this image (docker, podman or buildah).",
        ),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        _place_option(
            "--param",
            metavar="name=value",
            help="RuntimeParameter of --pipeline, or with --local a parameter of the compiled pipeline, such "
            "as train_steps=500.",
        ),
    ] = None,
    scheduled_by: Annotated[
        str | None,
        typer.Option("--scheduled-by", hidden=True, help="Tick of the schedule that starts the run."),
    ] = None,
) -> None:
    """Run a pipeline: check, train, evaluate, and push the model if it is good enough.

    For example, `run --data trips.csv --label tips`, or `run --config trips.toml`.

    The last line on stdout is one JSON object (in a terminal, next steps instead); everything else goes to
    stderr. Exit codes: 0 pushed or unchanged, 3 the model failed a check or is held for `approve`, 2 bad
    input or configuration, 1 any other failure, 130 interrupted.
    """
    from pipelines.runs.plan.inputs import RunRequest

    kubeflow = KubeflowOptions(local, image, tuple(parameters or ()))
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

    def execute(progress: "Progress", capture: "OutputCapture") -> "RunRecord":
        from pipelines.runs.tfx_pipeline import asks_for_tfx_pipeline

        if pipeline is not None or asks_for_tfx_pipeline(request):
            return _run_tfx_pipeline(request, pipeline, arguments or [], kubeflow, progress, capture)
        if arguments:
            raise BadInputError(f"--arg {arguments[0]} is for --pipeline FILE.py:FUNCTION only.")
        if runner == KUBEFLOW:
            from pipelines.config.load import load_config

            configuration = load_config(config, data, label, tuple(settings or ()))
            return _run_compiled(request, configuration, progress, kubeflow)
        if option := kubeflow.given():
            raise BadInputError(f"{option} is for --runner kubeflow only. Received: --runner {runner}")
        from pipelines.runs.run import run as run_pipeline

        return run_pipeline(request, progress, capture)

    _run(execute, root, typer_context.find_root().info_name or "")


@dataclass(frozen=True)
class KubeflowOptions:
    """Options of `run` that are valid with `--runner kubeflow` only."""

    local: bool
    image: str | None
    parameters: tuple[str, ...]

    def given(self) -> str | None:
        """Returns the first option that was given, or None."""
        return self.given_but_parameters() or ("--param" if self.parameters else None)

    def given_but_parameters(self) -> str | None:
        """Returns the first option that was given, `--param` aside."""
        options = {"--local": self.local, "--image": self.image}
        return next((option for option, value in options.items() if value), None)


def _run(
    execute: Callable[["Progress", "OutputCapture"], "RunRecord"], root: "Root", program: str
) -> NoReturn:
    # Imports and graphs make millions of objects that stay: looking through them took a tenth of a run.
    gc.set_threshold(100_000, 10, 10)
    from components.errors import SettingError
    from pipelines.root.lock import RootBusyError
    from pipelines.terminal.output_capture import captured_output
    from pipelines.terminal.progress import Progress, make_display, terminal_stream
    from pipelines.terminal.streams import checked_exit_code

    display = make_display(terminal_stream())
    line = line_without_run("failed")
    steps: list[str] = []
    try:
        with captured_output() as capture, Progress(display) as progress:
            try:
                raise_at_signals()
                record = execute(progress, capture)
            finally:
                ignore_signals()  # only the end is left to report
        line = record.summary()
        code = _exit_code(record)
        _say_outcome(display.line, record)
        steps = next_steps(record, root, program)
    except (BadInputError, SettingError) as error:
        code, line["reason"] = EXIT_BAD_INPUT, str(error)
        line["error"] = "root_busy" if isinstance(error, RootBusyError) else "bad_input"
        display.line(f"✗ {error}")
    except BaseException as error:  # SystemExit, too: this process still has a line to print
        if signal_has_come():
            code, line["status"] = EXIT_INTERRUPTED, "interrupted"
            display.line("✗ interrupted")
        else:
            code, line["reason"] = EXIT_FAILED, f"{type(error).__name__}: {error}"
            display.line(f"✗ {line['reason']}")
    display.close()
    last = steps if sys.stdout.isatty() else [json.dumps(line, allow_nan=False)]
    print("".join(f"{text}\n" for text in last), end="", flush=True)
    end_process(checked_exit_code(code))


def _exit_code(record: "RunRecord") -> int:
    return EXIT_BAD_INPUT if record.is_bad_input else _EXIT_CODES[record.status]


def _run_tfx_pipeline(
    request: "RunRequest",
    pipeline: str | None,
    arguments: Sequence[str],
    kubeflow: KubeflowOptions,
    progress: "Progress",
    capture: "OutputCapture",
) -> "RunRecord":
    from pipelines.config.tfx_pipeline import load_tfx_pipeline_config
    from pipelines.config.toml import parse_named
    from pipelines.runs.tfx_pipeline import recorded_config, run_tfx_pipeline

    if request.data or request.label:
        raise BadInputError(
            "--data and --label are for a pipeline from a CSV; the definition of a TFX pipeline of your own "
            "names its data. Give its function arguments with --arg name=value."
        )
    is_configured = pipeline or arguments or kubeflow.parameters or request.gives_configuration
    config = None if is_configured or not request.resume else recorded_config(request.root)
    config = config or load_tfx_pipeline_config(
        request.config_file,
        pipeline,
        parse_named(arguments, "--arg"),
        parse_named(kubeflow.parameters, "--param"),
        request.settings,
    )
    if request.runner == KUBEFLOW:
        # The parameters are defaults of the compiled pipeline already.
        return _run_compiled(request, config, progress, replace(kubeflow, parameters=()))
    if option := kubeflow.given_but_parameters():
        raise BadInputError(f"{option} is for --runner kubeflow only. Received: --runner {request.runner}")
    return run_tfx_pipeline(request, config, progress, capture)


def _run_compiled(
    request: "RunRequest", config: "AnyConfig", progress: Any, kubeflow: KubeflowOptions
) -> "RunRecord":
    if not kubeflow.local:
        raise BadInputError(
            "--runner kubeflow runs the compiled pipeline here with --local. On a cluster, "
            "`estimator-pipelines submit --config FILE.toml --kubeflow URL` runs it."
        )
    if request.resume:
        raise BadInputError(
            "--resume does not apply to --runner kubeflow: run again, and finished steps are reused."
        )
    from pipelines.config.toml import parse_named
    from pipelines.kubeflow.local_execution.container_engine import in_image
    from pipelines.kubeflow.local_execution.local_run import run_locally

    values = parse_named(kubeflow.parameters, "--param")
    if kubeflow.image is None:
        return run_locally(request.root, config, progress, values, request.enable_cache)
    with in_image(kubeflow.image) as engine:
        return run_locally(request.root, config, progress, values, request.enable_cache, engine=engine)


def _say_outcome(say: Any, record: "RunRecord") -> None:
    from pipelines.cli.runs_table import evaluation_lines

    # A Kubeflow run continues by way of its cache.
    advice = "another run" if record.kubeflow_run else "`run --resume`"
    if record.status == "pushed":
        say(f"✓ pushed version {record.version}" if record.version else "✓ pushed")
        if record.reason:
            say(f"! {record.reason}")
    elif record.status == "unchanged":
        serves = f"; version {record.serving_version} is live" if record.serving_version else ""
        say(f"= unchanged, nothing is pushed: {record.reason}{serves}")
    elif record.status == "finished":
        say("✓ finished; the pipeline has no Pusher")
    elif record.status == "held":
        say(f"? held, nothing is pushed until `approve` decides: {record.reason}")
    elif record.status == "not_blessed":
        say(f"✗ not blessed, nothing is pushed: {record.reason}")
    elif record.status == "interrupted":
        say(f"✗ {record.reason}; {advice} continues from here")
    else:
        say(f"✗ {record.reason}")
        if not record.is_bad_input:  # other data or settings make a different run
            say(f"  fix that, then {advice} continues from here")
        say(f"  log: {record.log}")
    for line in evaluation_lines(record):
        say(line)
    if record.report:
        say(f"  report: {record.report}")
    if record.last_line:
        say(f"  {record.last_line}")


def next_steps(record: "RunRecord", root: "Root", program: str) -> list[str]:
    """Returns one line for each thing to do after a run: commands that can be copied."""
    lines = []
    if record.report:
        lines.append(f"look at the report:  {shlex.quote(short_path(record.report))}")
    if record.status == "held":
        run_id = record.same_as or record.run_id
        root_option = f"--root {shlex.quote(short_path(root))}"
        lines.append(
            f"decide:              {callable_program(program)} approve {run_id} {root_option} --because TEXT"
        )
    if record.version or record.serving_version:
        command, root_option = callable_program(program), f"--root {shlex.quote(short_path(root))}"
        # A TFX pipeline of the user's own may have read something else than CSVs.
        read_csv = any(file["path"].endswith(".csv") for file in record.data_files)
        if read_csv or record.section("data").get("path"):
            lines.append(f"get predictions:     {command} predict {root_option} --data NEW.csv")
        lines.append(f"serve the model:     {command} serve {root_option}")
    return lines
