"""Checks within seconds that an engine answers, and starts a job server if needed."""

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from components.beam.worker import write_launcher
from pipelines.beam import options
from pipelines.beam.job_server import ANSWER_SECS, job_server
from pipelines.config.beam import BeamConfig, FlinkConfig
from pipelines.errors import BadInputError, RunFailedError


@contextlib.contextmanager
def running_engine(config: BeamConfig, folder: Path) -> Iterator[list[str]]:
    """Yields Beam's options for an engine that answers.

    `config`: settings of `[beam]`.
    `folder`: folder for logs and the program that starts workers; it is created.
    """
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
