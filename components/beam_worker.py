"""A Beam worker for runners in other processes: a program that follows Beam's container contract.

Flink and Spark start it themselves (`environment = "process"`), or ask a pool of it to (`"external"`):

    python -m components.beam_worker --pool 50000

Beam's Python package has a worker, and leaves out the program that asks the runner for the options it
needs; that one comes in Beam's container images alone. Here it is: what TFDV needs is imported
before any of the pipeline's code (`components.tfx_compat`), and logs go to the runner.

Source: Beam's SDK container contract, `beam_provision_api.proto`: the arguments, and the variables that
`apache_beam.runners.worker.sdk_worker_main` reads.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from google.protobuf import json_format, text_format

PROVISION_TIMEOUT_SECS = 60
"""How long the runner is waited for."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a worker, or with `--pool PORT` a server that starts one for each request."""
    parser = argparse.ArgumentParser(prog="python -m components.beam_worker", description=__doc__)
    parser.add_argument("--pool", type=int, metavar="PORT", help="start workers when asked to")
    parser.add_argument("--id", help="of the worker; runners give this and what follows")
    parser.add_argument("--provision_endpoint", metavar="HOST:PORT")
    for name in ("control_endpoint", "logging_endpoint", "artifact_endpoint"):
        parser.add_argument(f"--{name}", metavar="HOST:PORT")
    given = parser.parse_args(arguments)
    if given.pool is not None:
        _serve_pool(given.pool)
    elif given.id is None or given.provision_endpoint is None:
        parser.error("give --pool PORT, or --id and --provision_endpoint, as a runner does")
    else:
        os.environ.update(worker_variables(given.id, given.provision_endpoint))
        from apache_beam.runners.worker import sdk_worker_main

        sdk_worker_main.main(sys.argv)


def worker_variables(worker_id: str, provision_endpoint: str) -> dict[str, str]:
    """Returns what Beam's worker reads from its environment, as the runner says it.

    Args:
      worker_id: Of the worker.
      provision_endpoint: `host:port` of the runner's provision service.

    Raises:
      grpc.RpcError: The runner does not answer.
    """
    import grpc
    from apache_beam.portability.api import (
        beam_provision_api_pb2,
        beam_provision_api_pb2_grpc,
    )
    from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor

    with grpc.insecure_channel(provision_endpoint) as channel:
        named = grpc.intercept_channel(channel, WorkerIdInterceptor(worker_id))
        info = (
            beam_provision_api_pb2_grpc.ProvisionServiceStub(named)
            .GetProvisionInfo(
                beam_provision_api_pb2.GetProvisionInfoRequest(),
                timeout=PROVISION_TIMEOUT_SECS,
                wait_for_ready=True,
            )
            .info
        )
    variables = {
        "WORKER_ID": worker_id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        "CONTROL_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.control_endpoint),
        "LOGGING_API_SERVICE_DESCRIPTOR": text_format.MessageToString(info.logging_endpoint),
    }
    if info.HasField("status_endpoint"):
        variables["STATUS_API_SERVICE_DESCRIPTOR"] = text_format.MessageToString(
            info.status_endpoint
        )
    return variables


def write_launcher(file: Path) -> None:
    """Writes a shell script that starts a worker in this process's environment.

    A runner is given the one word of a command, and starts it wherever its task managers are.

    Args:
      file: The script; its folder exists.
    """
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = dict.fromkeys([str(Path(__file__).parents[1]), os.getcwd(), *filter(None, inherited)])
    path, python = shlex.quote(os.pathsep.join(folders)), shlex.quote(sys.executable)
    file.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {python} -m components.beam_worker "$@"\n')
    file.chmod(0o755)


def _serve_pool(port: int) -> None:
    import tempfile

    from apache_beam.runners.worker import worker_pool_main

    with tempfile.TemporaryDirectory(prefix="beam-worker-") as folder:
        launcher = Path(folder) / "worker.sh"
        write_launcher(launcher)
        worker_pool_main.main([f"--service_port={port}", f"--container_executable={launcher}"])


if __name__ == "__main__":
    main()
