"""Conversion of `[beam]` to options of Beam's runners."""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from components.nearest import nearest_first
from pipelines.config.beam import (
    BeamConfig,
    DataflowConfig,
    DirectConfig,
    FlinkConfig,
    JobServerConfig,
    SparkConfig,
    WorkerConfig,
)
from pipelines.errors import BadInputError

# A worker imports TensorFlow, which takes seconds, so an idle worker is kept for the next step.
KEEP_WORKERS_MILLIS = 30_000

_PROCESSES = "--direct_running_mode=multi_processing"
_PROCESSES_RUNNER = "--runner=components.beam.processes.ProcessesRunner"


def direct_options(config: DirectConfig) -> list[str]:
    return [_PROCESSES_RUNNER, f"--direct_num_workers={config.workers}", _PROCESSES]


def given_options(config: BeamConfig) -> tuple[str, ...]:
    """Returns `args`; processes that they ask for are those of our runner, unless they name another."""
    if _PROCESSES in config.args:
        return (_PROCESSES_RUNNER, *config.args)
    return config.args


def worker_options(config: WorkerConfig, launcher: Path) -> list[str]:
    """Returns the options for the environment of the pipeline's Python code."""
    environments: dict[str, Callable[[], str | None]] = {
        "process": lambda: json.dumps({"command": config.worker_command or str(launcher)}),
        "external": lambda: config.worker_pool,
        "docker": lambda: config.worker_image,
        "loopback": lambda: None,
    }
    options = [f"--environment_type={config.environment.upper()}"]
    value = environments[config.environment]()
    if value is not None:
        options.append(f"--environment_config={value}")
    return [
        *options,
        f"--sdk_worker_parallelism={config.workers}",
        f"--environment_cache_millis={KEEP_WORKERS_MILLIS}",
    ]


def job_options(config: JobServerConfig, job_endpoint: str, launcher: Path) -> list[str]:
    return ["--runner=PortableRunner", f"--job_endpoint={job_endpoint}", *worker_options(config, launcher)]


def flink_options(config: FlinkConfig, job_endpoint: str, launcher: Path) -> list[str]:
    """Returns the options of a pipeline on Flink; for the arguments see `job_options`."""
    options = job_options(config, job_endpoint, launcher)
    options.append(f"--flink_master={config.master}")
    if config.parallelism is not None:
        options.append(f"--parallelism={config.parallelism}")
    return options


def spark_options(config: SparkConfig, job_endpoint: str, launcher: Path) -> list[str]:
    return [*job_options(config, job_endpoint, launcher), f"--spark_master_url={config.master}"]


def dataflow_options(config: DataflowConfig) -> list[str]:
    values = {
        "project": config.project,
        "region": config.region,
        "temp_location": config.temp_location,
        "staging_location": config.staging_location,
        "service_account_email": config.service_account,
        "sdk_container_image": config.worker_image,
        "worker_machine_type": config.machine_type,
        "num_workers": config.num_workers,
        "max_num_workers": config.max_num_workers,
        "disk_size_gb": config.disk_size_gb,
        "subnetwork": config.subnetwork,
    }
    options = [f"--{name}={value}" for name, value in values.items() if value is not None]
    if not config.public_ips:
        options.append("--no_use_public_ips")
    return ["--runner=DataflowRunner", "--sdk_location=container", *options]


def engine_name(config: BeamConfig) -> str:
    """Returns a description of the engine for messages."""
    if config.runner == "flink":
        return f"Flink at {config.flink.master}"
    if config.runner == "spark":
        return f"Spark at {config.spark.master}"
    if config.runner == "dataflow":
        return f"Dataflow in project {config.dataflow.project}"
    return f"{config.direct.workers} processes on this machine"


def check_beam_args(args: Sequence[str]) -> None:
    """Checks that Beam knows the options and accepts their values."""
    if not args:
        return
    from apache_beam.options.pipeline_options import PipelineOptions

    parser = _Parser(add_help=False, allow_abbrev=False)
    for kind in _kinds(PipelineOptions):
        kind._add_argparse_args(parser)  # noqa: SLF001 - Beam's hook for users' options, too
    unknown = parser.parse_known_args(list(args))[1]
    if unknown:
        nearest = nearest_first(unknown[0].split("=")[0], parser.names)[:5]
        raise BadInputError(
            f"beam.args: Beam has no option {unknown[0]!r}. Did you mean {nearest[0]!r}? "
            f"Nearest: {', '.join(nearest)}."
        )


def _kinds(base: type) -> Iterator[Any]:
    """Yields the subclasses that define options."""
    for kind in base.__subclasses__():
        if "_add_argparse_args" in vars(kind):
            yield kind
        yield from _kinds(kind)


class _Parser(argparse.ArgumentParser):
    """Parser that records the names of its options, and raises instead of ending the process."""

    def __init__(self, **settings: Any):
        self.names: list[str] = []
        super().__init__(**settings)

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        self.names += names
        return super().add_argument(*names, **settings)

    def error(self, message: str) -> NoReturn:
        raise BadInputError(f"beam.args: {message}.")
