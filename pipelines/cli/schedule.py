"""`schedule`: runs that start automatically."""

import json
import shlex
import sys
from dataclasses import asdict
from functools import partial
from typing import Annotated, Literal

import typer

from pipelines.cli.kubeflow import Parameters
from pipelines.cli.options import (
    DEFAULT_ROOT,
    Arguments,
    Config,
    Data,
    Experiment,
    Host,
    HostOptions,
    Label,
    Namespace,
    Pipeline,
    RootOption,
    Settings,
    TokenFile,
    callable_program,
    existing,
    kubeflow_option,
    print_table,
    short_path,
    with_old_name,
)
from pipelines.cli.schedule_run import (
    backfill_command,
    check_command,
    current_overview,
    manifest_command,
    metrics_command,
    run_command,
)
from pipelines.root import Root

app = typer.Typer(
    help="Run at set times or when data arrive, here or on Kubeflow.",
    no_args_is_help=True,
    context_settings={"token_normalize_func": with_old_name},
)
_time_option = partial(typer.Option, rich_help_panel="Times")

app.command("run")(run_command)
app.command("backfill")(backfill_command)
app.command("check")(check_command)
app.command("metrics")(metrics_command)
app.command("manifest")(manifest_command)


@app.command()
def create(
    context: typer.Context,
    config: Config = None,
    data: Data = None,
    label: Label = None,
    pipeline: Pipeline = None,
    arguments: Arguments = None,
    settings: Settings = None,
    root: RootOption = DEFAULT_ROOT,
    cron: Annotated[
        str | None,
        _time_option(
            "--cron",
            metavar='"M H D M W"',
            help="Five fields: minute hour day month weekday. With --kubeflow, seconds may come first.",
        ),
    ] = None,
    every: Annotated[
        str | None,
        _time_option("--every", metavar="6h", help="Interval, in s, m, h, d or w, counted from now."),
    ] = None,
    on_new_span: Annotated[bool, _time_option("--on-new-span", help="Run when a new span arrives.")] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the schedule. Default: the pipeline's name."),
    ] = None,
    missed: Annotated[
        Literal["latest", "skip", "catch-up"],
        _time_option("--missed", help="After downtime, run the latest missed time, none, or all."),
    ] = "latest",
    timezone: Annotated[
        str, _time_option("--timezone", metavar="ZONE", help="Time zone of --cron, such as Europe/Berlin.")
    ] = "UTC",
    grace: Annotated[
        str | None,
        _time_option(
            "--grace",
            metavar="10m",
            help="Delay after which a run is late. Default: half the time to the next run, at most 15m.",
        ),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="2h", help="Time limit of a run. Default: none.")
    ] = None,
    retries: Annotated[
        int,
        typer.Option("--retries", metavar="N", min=0, max=100, help="How many times to resume a failed run."),
    ] = 1,
    poll: Annotated[
        str, _time_option("--poll", metavar="1m", help="Interval at which --on-new-span looks for spans.")
    ] = "1m",
    runner: Annotated[
        str, typer.Option("--runner", metavar="NAME", help="Where the components run: local or beam.")
    ] = "local",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the schedule of this name, keeping its history.")
    ] = False,
    host: Host = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
    experiment: Experiment = None,
    max_concurrency: Annotated[
        int | None,
        kubeflow_option(
            "--max-concurrency",
            metavar="N",
            min=1,
            max=10,
            help="Largest number of overlapping runs. Default: 1.",
        ),
    ] = None,
    parameters: Parameters = None,
) -> None:
    """Schedule runs of a pipeline, which is given as for `run`.

    Give exactly one of --cron, --every and --on-new-span. For example, `schedule create --config trips.toml
    --cron '0 3 * * *'`. `schedule run` starts the runs: leave it running. With --kubeflow, Kubeflow starts
    them.
    """
    from pipelines.cli.schedule_creation import CreateRequest, create_local, create_on_kubeflow

    def warn(text: str) -> None:
        print(f"! {text}", file=sys.stderr)

    request = CreateRequest(
        config=config,
        data=data,
        label=label,
        root=root,
        cron=cron,
        every=every,
        on_new_span=on_new_span,
        name=name,
        missed=missed,
        settings=tuple(settings or ()),
        timezone=timezone,
        grace=grace,
        timeout=timeout,
        retries=retries,
        poll=poll,
        runner=runner,
        replace=replace,
        experiment=experiment,
        max_concurrency=max_concurrency,
        param=tuple(parameters) if parameters else None,
        pipeline=pipeline,
        arg=tuple(arguments) if arguments else None,
    )
    if host is None:
        print(json.dumps(create_local(request, warn)))
        _note_missing_scheduler(root, context)
    else:
        server = HostOptions(host, namespace, token_file).server()
        made = create_on_kubeflow(request, server, warn)
        print(json.dumps({"host": host, **made}))


@app.command("list")
def list_command(
    context: typer.Context,
    root: RootOption = DEFAULT_ROOT,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
    host: Host = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
) -> None:
    """List schedules: their next time, the outcome of the last run, and late runs."""
    if host is not None:
        _list_on_kubeflow(HostOptions(host, namespace, token_file), as_json)
        return
    overview = current_overview(existing(root))
    if as_json:
        lines = [standing.as_json() for standing in overview.standings]
        print(json.dumps(lines, indent=1, allow_nan=False))
        for line in (*overview.damaged, *overview.remarks()):
            print(f"! {line}", file=sys.stderr)
        return
    if overview.standings:
        from pipelines.scheduling.monitoring.overview import table

        print_table(table(overview.standings))
    else:
        print(f"There are no schedules in {root}.", file=sys.stderr)
    for line in (*overview.problems(), *overview.remarks()):
        print(f"! {line}")
    if overview.standings:
        _note_missing_scheduler(root, context)


def _note_missing_scheduler(root: Root, context: typer.Context) -> None:
    from pipelines.scheduling.store import is_scheduled

    if not is_scheduled(root.schedules):
        program = callable_program(context.find_root().info_name or "estimator-pipelines")
        command = f"{program} schedule run --root {shlex.quote(short_path(root))}"
        print(
            f"! No run will start, because no scheduler is running in {root}. Start one, and leave it "
            f"running:\n    {command}\n  or start the due runs now; cron can do that every few minutes:\n"
            f"    {command} --once",
            file=sys.stderr,
        )


@app.command()
def enable(
    name: Annotated[str, typer.Argument(help="Name of the schedule.")],
    root: RootOption = DEFAULT_ROOT,
    host: Host = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
) -> None:
    """Let a schedule start runs again. Times that passed while it was disabled are skipped."""
    _switch(name, root, HostOptions(host, namespace, token_file), on=True)


@app.command()
def disable(
    name: Annotated[str, typer.Argument(help="Name of the schedule.")],
    root: RootOption = DEFAULT_ROOT,
    host: Host = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
) -> None:
    """Stop a schedule from starting runs. A run that is in progress continues."""
    _switch(name, root, HostOptions(host, namespace, token_file), on=False)


@app.command()
def delete(
    name: Annotated[str, typer.Argument(help="Name of the schedule.")],
    root: RootOption = DEFAULT_ROOT,
    host: Host = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
) -> None:
    """Remove a schedule. Its runs, reports and versions stay, and a run that is in progress continues."""
    if host is not None:
        server = HostOptions(host, namespace, token_file).server()
        for recurring in server.recurring_runs(name):
            server.delete_recurring_run(recurring.id)
    else:
        from pipelines.scheduling.store import ScheduleStore

        ScheduleStore(existing(root)).delete(name)
    print(f"deleted: {name}", file=sys.stderr)


def _switch(name: str, root: Root, options: HostOptions, on: bool) -> None:
    if options.host is not None:
        server = options.server()
        switch = server.enable_recurring_run if on else server.disable_recurring_run
        for recurring in server.recurring_runs(name):
            switch(recurring.id)
    else:
        from pipelines.cli.schedule_creation import switch_local

        switch_local(name, existing(root), on)
    print(f"{'enabled' if on else 'disabled'}: {name}", file=sys.stderr)


def _list_on_kubeflow(options: HostOptions, as_json: bool) -> None:
    from pipelines.kubeflow.server.recurring import written

    recurring_runs = options.server().list_recurring_runs()
    if as_json:
        print(json.dumps([asdict(run) for run in recurring_runs], indent=1))
        return
    from rich.table import Table

    table = Table("schedule", "when", "status", "missed", "at a time", "parameters", "id", box=None)
    for run in recurring_runs:
        cells = (run.name, run.when, run.status, run.missed, str(run.max_concurrency))
        table.add_row(*cells, written(run.parameters), run.id)
    print_table(table)
