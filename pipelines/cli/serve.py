"""`serve`: an HTTP server for the model of a root."""

import logging
import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from pipelines.cli.options import (
    DEFAULT_ROOT,
    ModelOption,
    RootOption,
    existing,
    given_path,
    place_of_model,
    refuse,
)
from pipelines.root import Root

_TOKEN_VARIABLE = "ESTIMATOR_PIPELINES_TOKEN"
_OF_MANIFEST = ("root", "name", "manifest", "image", "storage")

_limit = partial(typer.Option, rich_help_panel="Limits", min=1)
_time_limit = partial(typer.Option, rich_help_panel="Limits", metavar="SECS", min=0.001)
_kserve_option = partial(typer.Option, rich_help_panel="KServe")


def serve_command(
    context: typer.Context,
    root: RootOption = DEFAULT_ROOT,
    model_folder: ModelOption = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on. Any address but loopback requires a token.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port; 0 picks a free one.")
    ] = 8501,
    grpc_port: Annotated[
        int | None,
        typer.Option(
            "--grpc-port",
            metavar="N",
            min=0,
            max=65_535,
            help="Also serve TensorFlow Serving's gRPC PredictionService, on this port (usually 8500).",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the model in URLs. Default: the pipeline's."),
    ] = None,
    versions: Annotated[
        int, typer.Option("--versions", metavar="N", min=1, help="Number of recent versions to serve.")
    ] = 1,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            parser=given_path,
            help=f"File with the token that clients must send. Default: the variable {_TOKEN_VARIABLE}.",
        ),
    ] = None,
    max_body: Annotated[
        int,
        _limit(
            "--max-body", metavar="BYTES", help="Maximum size of a request body, also after decompression."
        ),
    ] = 16 << 20,
    max_rows: Annotated[
        int, _limit("--max-rows", metavar="ROWS", help="Maximum number of rows in a request.")
    ] = 20_000,
    max_waiting: Annotated[
        int, _limit("--max-waiting", metavar="ROWS", help="Maximum rows queued for the model.")
    ] = 20_000,
    timeout: Annotated[
        float, _time_limit("--timeout", help="Time limit for a request, from its headers to the response.")
    ] = 30.0,
    max_connections: Annotated[
        int, _limit("--max-connections", metavar="N", help="Maximum number of open connections.")
    ] = 1_000,
    max_header: Annotated[
        int,
        _limit(
            "--max-header", metavar="BYTES", min=256, help="Maximum size of the request line and headers."
        ),
    ] = 16 << 10,
    header_timeout: Annotated[
        float, _time_limit("--header-timeout", help="Time limit for the request line and headers to arrive.")
    ] = 10.0,
    idle_timeout: Annotated[
        float, _time_limit("--idle-timeout", help="Time after which an idle connection is closed.")
    ] = 75.0,
    sample_requests: Annotated[
        float,
        typer.Option(
            "--sample-requests",
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Share of rows to store in ROOT/requests, for `requests` and the drift in /metrics.",
        ),
    ] = 0.0,
    manifest: Annotated[
        Literal["kserve"] | None,
        _kserve_option("--manifest", help="Print a manifest for this platform instead of starting a server."),
    ] = None,
    image: Annotated[
        str | None,
        _kserve_option("--image", metavar="IMAGE", help="Image with this package, for --manifest."),
    ] = None,
    storage: Annotated[
        str | None,
        _kserve_option(
            "--storage",
            metavar="URI",
            help="URI of the root, for --manifest, such as pvc://CLAIM/FOLDER or s3://BUCKET/ROOT.",
        ),
    ] = None,
) -> None:
    """Serve the model over HTTP: TensorFlow Serving's REST API, and the Open Inference Protocol.

    Pushes and rollbacks take effect without a restart. SIGTERM and Ctrl-C stop the server after it has
    answered open requests.
    """
    if manifest:
        _refuse_options_of_a_server(context)
        _print_manifest(root, name, image, storage)
        return
    if image or storage:
        refuse("--image and --storage are for --manifest kserve only.")
    _say(f"loading {model_folder or root} ...")
    place = place_of_model(context, root, model_folder)
    if model_folder is not None and sample_requests:
        refuse("--sample-requests stores rows in a root: give --root instead of --model.")
    token = _token(token_file)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("pipelines.serving").setLevel(logging.INFO)
    from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

    with quiet_tensorflow():
        from pipelines.serving.request_files import SampleLimits
        from pipelines.serving.server.batching import BatchLimits
        from pipelines.serving.server.connections import ConnectionLimits
        from pipelines.serving.server.process import ServerAddress, serve
        from pipelines.serving.server.server_settings import ServerSettings

    settings = ServerSettings(
        batches=BatchLimits(max_request_rows=max_rows, max_waiting_rows=max_waiting, timeout_secs=timeout),
        connections=ConnectionLimits(max_connections, max_header, header_timeout, idle_timeout),
        max_body_bytes=max_body,
        token=token,
    )
    address = ServerAddress(host, port)
    sample = SampleLimits(sample_requests) if sample_requests else None
    name = name or (_name(place) if isinstance(place, Root) else place.name)
    serve(place, name, address, _say, versions, settings, sample, grpc_port)


def _refuse_options_of_a_server(context: typer.Context) -> None:
    """Refuses options that the manifest would leave out."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name not in _OF_MANIFEST:
            refuse(
                f"{parameter.opts[0]} is not in the manifest. Leave it out, and add it to the file's args."
            )


def _print_manifest(root: Root, name: str | None, image: str | None, storage: str | None) -> None:
    from pipelines.serving.kserve import manifest

    if not image or not storage:
        refuse("--manifest kserve needs --image and --storage.")
    if name is None:
        existing(root)
        name = _name(root)
    print(manifest(name, image, storage), end="")


def _token(file: Path | None) -> str | None:
    from pipelines.atomic_files import read_small

    if file is not None:
        source, token = str(file), read_small(file, "a token").decode("utf-8", "replace").strip()
    elif _TOKEN_VARIABLE in os.environ:
        source, token = _TOKEN_VARIABLE, os.environ[_TOKEN_VARIABLE].strip()
    else:
        return None
    if not token:
        refuse(f"{source} is empty: a token is expected. Leave it out to serve without one.")
    for position, character in enumerate(token, 1):
        if not "!" <= character <= "~":
            refuse(
                f"{source}: character {position} of the token is {character!r}, which a header cannot carry. "
                "Use ASCII letters, digits and punctuation, such as the output of `openssl rand -hex 32`."
            )
    return token


def _name(root: Root) -> str:
    """Returns the name of the pipeline whose model serves, as it stands in addresses."""
    from pipelines.root.served_run import serving_run

    record = serving_run(root)
    name = record.name if record else root.path.name
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in name)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
