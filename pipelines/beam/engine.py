"""The engine of a run: checks that it answers, and runs Beam's job server if Flink or Spark need one."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from components.beam.worker import write_launcher
from pipelines.beam import options
from pipelines.config.beam import BeamConfig, FlinkConfig, JobServerConfig, SparkConfig
from pipelines.errors import BadInputError, RunFailedError


@contextlib.contextmanager
def running_engine(config: BeamConfig, folder: Path) -> Iterator[list[str]]:
    """Yields Beam's options for an engine that answers."""
    if config.runner == "direct":
        yield options.direct_options(config.direct)
        return
    if config.runner == "dataflow":
        yield options.dataflow_options(config.dataflow)
        return
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / "worker.sh"
    write_launcher(launcher)
    if config.runner == "flink":
        flink = checked_flink(config.flink)
        with job_server(flink, folder) as endpoint:
            yield options.flink_options(flink, endpoint, launcher)
    else:
        with job_server(config.spark, folder) as endpoint:
            yield options.spark_options(config.spark, endpoint, launcher)


def checked_flink(config: FlinkConfig) -> FlinkConfig:
    """Returns the configuration with the version of the cluster."""
    url = f"http://{config.master}/overview"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECS) as answer:
            overview = json.load(answer)
        version = ".".join(str(overview["flink-version"]).split(".")[:2])
        slots = int(overview["slots-total"])
    except (OSError, urllib.error.URLError, ValueError, KeyError, TypeError) as error:
        raise RunFailedError(
            "Beam",
            f"no Flink JobManager answers at beam.flink.master = {config.master!r} ({error}). Start the "
            "cluster, or correct the address of its REST interface",
        ) from error
    if config.version is not None and config.version != version:
        raise BadInputError(
            f"beam.flink.version = {config.version!r}: the cluster at {config.master} is Flink "
            f"{overview['flink-version']}. Leave the key out, or write {version!r}."
        )
    if (config.parallelism or 1) > slots:
        raise BadInputError(
            f"beam.flink.parallelism = {config.parallelism}: the cluster at {config.master} has {slots} "
            f"task slots ({overview.get('taskmanagers')} task managers). Lower it, or add task managers."
        )
    if config.version is None and config.job_server is None:
        return config.model_copy(update={"version": version})
    return config


ANSWER_SECS = 10
"""Timeout for the answer of a running job server or cluster."""

START_SECS = 120
"""Timeout for the answer of a job server that was just started; the machine may be busy."""

_LINES_OF_LOG = 5


@contextlib.contextmanager
def job_server(config: JobServerConfig, folder: Path, start_secs: float = START_SECS) -> Iterator[str]:
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
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            _await_answer(process, endpoint, log, start_secs)
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
            f"the job server's jar cannot be downloaded: {error}. Set beam.*.job_server to the jar, or to "
            "the address of a running job server",
        ) from error
    return [str(part) for part in command], endpoint


def _await_answer(process: subprocess.Popen, endpoint: str, log: Path, secs: float) -> None:
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
