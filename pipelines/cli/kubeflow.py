"""`compile` and `submit`: the pipeline on Kubeflow Pipelines, or on Vertex."""

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipelines.cli.options import (
    EXIT_FAILED,
    Arguments,
    Config,
    Experiment,
    HostOptions,
    Namespace,
    Pipeline,
    Settings,
    TokenFile,
    given_path,
    kubeflow_option,
)
from pipelines.root import Root

if TYPE_CHECKING:
    from pipelines.config.tfx_pipeline import AnyConfig

_VERTEX = """\
kubeflow.backend = "vertex": submit supports only open-source Kubeflow Pipelines. Compile the
pipeline, and start it with Google's own client: `estimator-pipelines compile ... -o pipeline.yaml`,
then in Python
  from google.cloud import aiplatform
  aiplatform.init(project="PROJECT", location="REGION")
  aiplatform.PipelineJob(display_name="NAME", template_path="pipeline.yaml").submit()"""

_CompiledParameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="section.key",
        help="Configuration key that becomes a parameter. With --pipeline: name=value, the default of a "
        "RuntimeParameter.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    kubeflow_option(
        "--param",
        metavar="name=value",
        help="Parameter of a run on Kubeflow, such as train_steps=500; with --pipeline, a RuntimeParameter.",
    ),
]


def compile_command(
    output: Annotated[
        Path,
        typer.Option("-o", metavar="FILE.yaml", parser=given_path, help="File for the compiled pipeline."),
    ],
    config: Config = None,
    pipeline: Pipeline = None,
    arguments: Arguments = None,
    settings: Settings = None,
    parameters: _CompiledParameters = None,
) -> None:
    """Compile the pipeline into a YAML file for Kubeflow Pipelines. The data are not read.

    With --pipeline, compile your own TFX pipeline; --config then gives the `kubeflow` settings.
    """
    from pipelines.config.tfx_pipeline import TfxPipelineConfig
    from pipelines.errors import BadInputError

    if not output.parent.is_dir():
        raise BadInputError(
            f"-o: the folder {output.parent} does not exist. Create it, or give another file."
        )
    if output.is_dir():
        raise BadInputError(f"-o: {output} is a folder. Give a file in it.")
    configuration = _loaded(config, settings, pipeline, arguments, parameters)
    keys = () if isinstance(configuration, TfxPipelineConfig) else parameters or ()
    output.write_text(_compiled(configuration, keys), encoding="utf-8")
    print(f"written: {output}", file=sys.stderr)


def submit_command(
    host: Annotated[str, kubeflow_option("--kubeflow", metavar="URL", help="Address of Kubeflow Pipelines.")],
    config: Config = None,
    pipeline: Pipeline = None,
    arguments: Arguments = None,
    settings: Settings = None,
    parameters: Parameters = None,
    experiment: Experiment = None,
    namespace: Namespace = None,
    token_file: TokenFile = None,
    cron: Annotated[str | None, typer.Option("--cron", hidden=True)] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the run to end.")] = False,
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", metavar="SECS", help="Longest time to --wait, in seconds.")
    ] = 86_400,
) -> None:
    """Compile the pipeline, upload it, and start a run.

    The last line on stdout is one JSON object. Exit codes: 0 submitted (with --wait: the run succeeded),
    2 bad input, 1 any other failure.
    """
    from pipelines.config.tfx_pipeline import TfxPipelineConfig
    from pipelines.config.toml import parse_named
    from pipelines.errors import BadInputError
    from pipelines.kubeflow.compile.parameters import check_given, names_on_kubeflow
    from pipelines.kubeflow.server.submission import check_host

    check_host(host)
    if cron is not None:
        raise BadInputError(
            "--cron: submit starts one run. For runs at set times, give the same options to `schedule create "
            f"--kubeflow {shlex.quote(host)} --cron {shlex.quote(cron)}`, with --replace if there is a "
            "schedule."
        )
    run_parameters = parse_named(parameters or (), "--param")
    configuration = _loaded(config, settings, pipeline, arguments, parameters)
    if isinstance(configuration, TfxPipelineConfig):
        run_parameters = names_on_kubeflow(run_parameters)
    else:
        check_given(configuration, run_parameters)  # before the slow import of kfp
    text = _compiled(configuration)
    if configuration.kubeflow.backend == "vertex":
        raise BadInputError(_VERTEX)
    server = HostOptions(host, namespace, token_file).server()
    account = configuration.kubeflow.service_account
    made = server.submit(text, experiment, run_parameters, service_account=account)
    if wait and made.run_id is not None:
        print(f"run {made.run_id} on {host} ...", file=sys.stderr)
        status = server.wait(made.run_id, wait_secs)
        root = Path(str(configuration.kubeflow.root))
        if root.is_dir():  # mounted on this machine, too: closes the run's record if no step could
            from pipelines.kubeflow.steps.record_steps import close_known_run

            close_known_run(Root(root), made.run_id, status)
        made = replace(made, status=status)
    print(json.dumps({"host": host, **asdict(made)}))
    if wait and made.status != "SUCCEEDED":
        raise typer.Exit(EXIT_FAILED)


def _compiled(configuration: "AnyConfig", keys: Iterable[str] = ()) -> str:
    from pipelines.kubeflow.compile.admission import without_effect
    from pipelines.kubeflow.compile.pipeline_file import compile_pipeline
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    for warning in without_effect(configuration):
        print(f"! {warning}", file=sys.stderr)
    with quiet_tensorflow():
        return compile_pipeline(configuration, keys)


def _loaded(
    config: Path | None,
    settings: Sequence[str] | None,
    pipeline: str | None,
    arguments: Sequence[str] | None,
    parameters: Sequence[str] | None,
) -> "AnyConfig":
    from pipelines.config.load import is_of_tfx_pipeline, read_tree
    from pipelines.config.tfx_pipeline import load_any_config, pipeline_settings
    from pipelines.config.toml import parse_named
    from pipelines.errors import BadInputError

    values = tuple(settings or ())
    if pipeline is not None or is_of_tfx_pipeline(read_tree(config, values)):
        values += pipeline_settings(
            pipeline, parse_named(arguments or (), "--arg"), parse_named(parameters or (), "--param")
        )
    elif arguments:
        raise BadInputError(f"--arg {arguments[0]} is for --pipeline FILE.py:FUNCTION only.")
    return load_any_config(config, values)
