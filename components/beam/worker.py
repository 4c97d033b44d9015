"""A Beam worker for runners in other processes: a program that follows Beam's container contract.

Flink and Spark start it themselves (`environment = "process"`), or ask a pool for one (`"external"`):

    python -m components.beam.worker --pool 50000

Beam's Python package contains the worker, but not the program that asks the runner for the worker's
options, which is only in Beam's container images. This module is such a program. It imports the stand-ins
that TFDV needs before any of the pipeline's code (`components.tfx.compat`), and sends logs to the runner.

Source: Beam's SDK container contract, `beam_provision_api.proto`: the arguments, and the variables that
`apache_beam.runners.worker.sdk_worker_main` reads.
"""

import argparse
import concurrent.futures
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import json_format, text_format

PROVISION_TIMEOUT_SECS = 60
"""Time to wait for the runner."""

STOP_SECS = 10
"""Time that a worker has to end before it is killed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a worker, or with `--pool PORT` a server that starts one for each request."""
    parser = argparse.ArgumentParser(prog="python -m components.beam.worker", description=__doc__)
    parser.add_argument("--pool", type=int, metavar="PORT", help="start workers when asked to")
    parser.add_argument("--id", help="id of the worker; runners pass this and the other options")
    parser.add_argument("--provision_endpoint", metavar="HOST:PORT")
    for name in ("control_endpoint", "logging_endpoint", "artifact_endpoint"):
        parser.add_argument(f"--{name}", metavar="HOST:PORT")
    options = parser.parse_args(arguments)
    if options.pool is not None:
        _serve_pool(options.pool)
    elif options.id is None or options.provision_endpoint is None:
        parser.error("give --pool PORT, or --id and --provision_endpoint, as a runner does")
    else:
        os.environ.update(worker_variables(options.id, options.provision_endpoint))
        from apache_beam.runners.worker import sdk_worker_main

        sdk_worker_main.main(sys.argv)


def worker_variables(worker_id: str, provision_endpoint: str) -> dict[str, str]:
    """Returns the environment variables of Beam's worker, from the runner's provision service."""
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
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
        variables["STATUS_API_SERVICE_DESCRIPTOR"] = text_format.MessageToString(info.status_endpoint)
    return variables


def write_launcher(file: Path) -> None:
    """Writes a shell script that starts a worker in this process's environment.

    A runner's setting for it is a command of one word, which it starts wherever its task managers run.
    """
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = dict.fromkeys([str(Path(__file__).parents[2]), os.getcwd(), *filter(None, inherited)])
    path, python = shlex.quote(os.pathsep.join(folders)), shlex.quote(sys.executable)
    # Safe path: a folder `components` where the runner happens to start it is not ours.
    variables = f"PYTHONSAFEPATH=1 PYTHONPATH={path}"
    file.write_text(f'#!/bin/sh\n{variables} exec {python} -m components.beam.worker "$@"\n')
    file.chmod(0o755)


class WorkerPool:
    """Starts worker processes when a runner asks for them, over gRPC.

    Task managers number their workers independently, so two that share a pool both have a worker `1-1`.
    A worker is therefore stopped by its id only while no other worker has the same id. A worker always
    ends when its runner does.

    Source: `apache_beam.runners.worker.worker_pool_main`, which forgets the first of two workers with
    the same id, and stops the second one on the request to stop the first.
    """

    def __init__(self, launcher: Path):
        self._launcher = launcher
        self._workers: list[tuple[str, subprocess.Popen]] = []
        self._lock = threading.Lock()

    def StartWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        from apache_beam.portability.api import beam_fn_api_pb2

        command = [
            str(self._launcher),
            f"--id={request.worker_id}",
            f"--provision_endpoint={request.provision_endpoint.url}",
        ]
        with self._lock:
            self._workers = [worker for worker in self._workers if worker[1].poll() is None]
            self._workers.append((request.worker_id, subprocess.Popen(command)))
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        """Stops a worker, unless several have its id."""
        from apache_beam.portability.api import beam_fn_api_pb2

        with self._lock:
            running = [worker for name, worker in self._workers if name == request.worker_id]
            running = [worker for worker in running if worker.poll() is None]
            if len(running) == 1:
                running[0].terminate()
        return beam_fn_api_pb2.StopWorkerResponse()

    def stop(self) -> None:
        with self._lock:
            for _, worker in self._workers:
                worker.terminate()
            for _, worker in self._workers:
                try:
                    worker.wait(timeout=STOP_SECS)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()


@contextlib.contextmanager
def worker_pool(port: int) -> Iterator[int]:
    """Serves a pool of workers within the context; yields its port."""
    import grpc
    from apache_beam.portability.api import beam_fn_api_pb2_grpc

    with tempfile.TemporaryDirectory(prefix="beam-worker-") as folder:
        launcher = Path(folder) / "worker.sh"
        write_launcher(launcher)
        pool = WorkerPool(launcher)
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(), options=[("grpc.so_reuseport", 0)])
        beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
        port = server.add_insecure_port(f"[::]:{port}")
        server.start()
        try:
            yield port
        finally:
            server.stop(None).wait()
            pool.stop()


def _serve_pool(port: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    with worker_pool(port) as bound:
        print(f"starting workers on request at port {bound}; stop with Ctrl-C", file=sys.stderr, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
