"""Beam's job server: checks one that is running, or starts one for the duration of a run."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from pipelines.config.beam import FlinkConfig, JobServerConfig, SparkConfig
from pipelines.errors import RunFailedError

ANSWER_SECS = 10
"""Timeout for the answer of a running job server or cluster."""

START_SECS = 120
"""Timeout for the answer of a job server that was just started; the machine may be busy."""

_LINES_OF_LOG = 5


@contextlib.contextmanager
def job_server(
    config: JobServerConfig, folder: Path, start_secs: float = START_SECS
) -> Iterator[str]:
    """Yields `host:port` of a job server: a running one, or one that runs within the context."""
    if not config.starts_job_server and config.job_server is not None:
        if not _listens(config.job_server, ANSWER_SECS):
            raise RunFailedError(
                "Beam",
                f"no job server answers at beam.*.job_server = {config.job_server!r} within "
                f"{ANSWER_SECS} s. Start it, or correct the address",
            )
        yield config.job_server
        return
    command, endpoint = _command(config, folder)
    log = folder / "job_server.log"
    if shutil.which(command[0]) is None:
        raise RunFailedError(
            "Beam", f"the job server cannot be started (no {command[0]}): it needs Java 11 or newer"
        )
    if shutil.which("setpriv"):  # of util-linux: a run that is killed can't end its job server
        command = ["setpriv", "--pdeathsig", "TERM", *command]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait_for(process, endpoint, log, start_secs)
            yield endpoint
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _command(config: JobServerConfig, folder: Path) -> tuple[list[str], str]:
    """Returns the command that starts the job server of an engine, and its address."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability import flink_runner, spark_runner

    staging = config.staging or str(folder / "staging")
    options = [f"--artifacts_dir={staging}"]
    if isinstance(config, FlinkConfig):
        options.append(f"--flink_master={config.master}")
        if config.version is not None:
            options.append(f"--flink_version={config.version}")
        if config.job_server is not None:
            options.append(f"--flink_job_server_jar={config.job_server}")
        server = flink_runner.FlinkJarJobServer(PipelineOptions(options))
    elif isinstance(config, SparkConfig):
        options.append(f"--spark_master_url={config.master}")
        if config.job_server is not None:
            options.append(f"--spark_job_server_jar={config.job_server}")
        server = spark_runner.SparkJarJobServer(PipelineOptions(options))
    else:
        raise TypeError(f"no engine with a job server. Received: config={config!r}")
    try:
        command, endpoint = server.subprocess_cmd_and_endpoint()
    except Exception as error:
        raise RunFailedError(
            "Beam",
            f"the job server's jar cannot be obtained: {error}. Set beam.*.job_server to the jar, or to the "
            "address of one that runs",
        ) from error
    return [str(part) for part in command], endpoint


def _wait_for(process: subprocess.Popen, endpoint: str, log: Path, secs: float) -> None:
    end = time.monotonic() + secs
    while not _listens(endpoint, 1):
        if process.poll() is not None:
            reason = f"ended with code {process.returncode}"
        elif time.monotonic() > end:
            reason = f"did not answer within {secs:g} s"
        else:
            time.sleep(0.2)
            continue
        lines = log.read_text(errors="replace").strip().splitlines()[-_LINES_OF_LOG:]
        raise RunFailedError("Beam", f"the job server {reason} (log: {log}): {' | '.join(lines)}")


def _listens(address: str, secs: float) -> bool:
    """Returns True if the address accepts connections."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=max(secs, 0.1)):
            return True
    except OSError:
        return False
