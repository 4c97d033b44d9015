"""`[beam]`: the engine of `--runner beam`, and the settings of each engine."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipelines.config.data import Section, matches

EngineName = Literal["direct", "flink", "spark", "dataflow"]

_ADDRESS = re.compile(r"^[A-Za-z0-9_.-]+:[0-9]{1,5}$|^\[[0-9A-Fa-f:]+\]:[0-9]{1,5}$")


def is_address(text: str) -> bool:
    """Returns True if a text is `host:port`."""
    return _ADDRESS.match(text) is not None and 0 < int(text.rpartition(":")[2]) < 65536


def _check_address(address: str) -> str:
    if not is_address(address):
        raise ValueError('write "host:port", without http://')
    return address


_Address = Annotated[str, AfterValidator(_check_address)]
_Bucket = Annotated[
    str,
    matches(
        r"gs://[a-z0-9][a-z0-9_.-]+(/.*)?", 'Dataflow keeps files in buckets: write "gs://BUCKET/FOLDER"'
    ),
]
_SparkMaster = Annotated[
    str,
    matches(
        r"spark://[^/]+:[0-9]+|local(\[([0-9]+|\*)\])?|yarn",
        'write "spark://host:port", "local[4]" or "yarn"',
    ),
]


class DirectConfig(Section):
    """`[beam.direct]`: Beam's own runner on this machine.

    Attributes:
        workers: Number of processes that share the work. 1 is the same as `--runner local`.
    """

    workers: int = Field(default=1, ge=1)


class WorkerConfig(Section):
    """Workers that run the Python code of a pipeline for the engine, which is a Java program.

    Attributes:
        environment: `process`: the engine starts a worker on each of its machines. `external`: it asks a
            pool of workers, `python -m components.beam.worker --pool PORT`, that runs next to it. `docker`:
            it starts a container. `loopback`: threads of the run itself, with an engine on the same
            machine.
        worker_command: Path of the program for `process`, on the engine's machines. Default: a program that
            the run writes into its root, which starts this Python.
        worker_pool: Address of the pool for `external`, `host:port`, as the engine's machines see it.
        worker_image: Name of the image for `docker`.
        workers: Number of worker processes for each process of the engine (`sdk_worker_parallelism`).
    """

    environment: Literal["process", "external", "docker", "loopback"] = "process"
    worker_command: str | None = None
    worker_pool: _Address | None = None
    worker_image: str | None = None
    workers: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _fits_environment(self) -> "WorkerConfig":
        keys = {"process": "worker_command", "external": "worker_pool", "docker": "worker_image"}
        for environment, key in keys.items():
            if environment != self.environment and getattr(self, key) is not None:
                raise ValueError(
                    f'{key} = {getattr(self, key)!r} is for environment = "{environment}"; '
                    f'received environment = "{self.environment}". Change one of the two'
                )
        if self.environment == "external" and self.worker_pool is None:
            raise ValueError(
                'environment = "external" needs worker_pool = "host:port", where the engine\'s machines '
                "find the pool that `python -m components.beam.worker --pool PORT` starts"
            )
        if self.environment == "docker" and self.worker_image is None:
            raise ValueError(
                'environment = "docker" needs worker_image = "NAME", an image with estimator-pipelines'
            )
        return self


class JobServerConfig(WorkerConfig):
    """Settings of Flink and Spark: both get the work from Beam's job server.

    Attributes:
        job_server: `host:port` of a running job server; or its jar (a file, or an https address), which
            each run starts. Default: the jar that Beam has published for its version; Beam downloads it.
        staging: Folder for the files that a job server started by the run makes for the workers, which must
            see it. Default: below the root.
    """

    job_server: str | None = None
    staging: str | None = None

    @property
    def starts_job_server(self) -> bool:
        return self.job_server is None or not is_address(self.job_server)

    @model_validator(mode="after")
    def _is_jar_or_address(self) -> "JobServerConfig":
        job_server = self.job_server
        if job_server is not None and not is_address(job_server) and not job_server.endswith(".jar"):
            raise ValueError(
                f'job_server = {job_server!r} is neither an address such as "localhost:8099" nor a jar, '
                "whose name ends in .jar"
            )
        if self.staging is not None and not self.starts_job_server:
            raise ValueError(
                f"staging = {self.staging!r} is for a job server that the run starts, but job_server = "
                f"{job_server!r} is already running: give it --artifacts-dir. Remove one of the two"
            )
        return self


class FlinkConfig(JobServerConfig):
    """`[beam.flink]`: a Flink cluster.

    Attributes:
        master: `host:port` of the JobManager's REST interface.
        version: Version of Flink that the job server's jar is for, such as `1.19`. Default: the cluster's.
        parallelism: Number of tasks of each step at a time. Default: the cluster's `parallelism.default`.
    """

    master: _Address | None = None
    version: str | None = Field(default=None, pattern=r"^[0-9]+\.[0-9]+$")
    parallelism: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _version_is_used(self) -> "FlinkConfig":
        if self.version is not None and self.job_server is not None:
            raise ValueError(
                f"version = {self.version!r} selects a jar for the job server, but job_server = "
                f"{self.job_server!r} is set. Remove one of the two"
            )
        return self


class SparkConfig(JobServerConfig):
    """`[beam.spark]`: a Spark 3 cluster.

    Attributes:
        master: Address of the cluster, such as `spark://host:7077`, or `local[4]` for threads of the job
            server.
    """

    master: _SparkMaster | None = None


class DataflowConfig(Section):
    """`[beam.dataflow]`: Google Cloud Dataflow.

    Attributes:
        project: Google Cloud project.
        region: Google Cloud region, such as `europe-west1`.
        temp_location: `gs://` folder for temporary files.
        staging_location: `gs://` folder for staged files. Default: below `temp_location`.
        service_account: E-mail address of the account that the workers run as. Default: the project's.
        worker_image: Container image of the workers, with this program in it.
        machine_type: Machine type of the workers, such as `n2-standard-4`. Default: Dataflow's choice.
        num_workers: Initial number of workers. Default: Dataflow's choice.
        max_num_workers: Maximal number of workers. Default: Dataflow's choice.
        disk_size_gb: Disk size of each worker, in GB. Default: Dataflow's choice.
        subnetwork: Subnetwork of the workers. Default: the project's.
        public_ips: Gives workers public addresses.
    """

    project: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9.:-]+$")
    region: str | None = Field(default=None, pattern=r"^[a-z]+-[a-z]+[0-9]+$")
    temp_location: _Bucket | None = None
    staging_location: _Bucket | None = None
    service_account: str | None = Field(default=None, pattern=r"^[^@\s]+@[^@\s]+$")
    worker_image: str | None = None
    machine_type: str | None = None
    num_workers: int | None = Field(default=None, ge=1)
    max_num_workers: int | None = Field(default=None, ge=1)
    disk_size_gb: int | None = Field(default=None, ge=10)
    subnetwork: str | None = None
    public_ips: bool = True

    @model_validator(mode="after")
    def _numbers_fit(self) -> "DataflowConfig":
        least, most = self.num_workers, self.max_num_workers
        if least is not None and most is not None and least > most:
            raise ValueError(f"num_workers = {least} is above max_num_workers = {most}")
        return self


_NEEDED = {
    "flink": {"master": '"host:port" of the JobManager\'s REST interface, such as "localhost:8081"'},
    "spark": {"master": '"spark://host:port", or "local[4]"'},
    "dataflow": {
        "project": "the Google Cloud project",
        "region": 'such as "europe-west1"',
        "temp_location": '"gs://BUCKET/FOLDER"',
        "worker_image": "a container image with estimator-pipelines",
    },
}


class BeamConfig(Section):
    """`[beam]`: Apache Beam.

    Attributes:
        runner: Engine of `--runner beam`; `--runner local` runs Beam in its own process.
        args: Pipeline options of Beam; they take precedence over those that follow from the other keys.
        direct: Settings of processes on this machine.
        flink: Settings of Flink.
        spark: Settings of Spark.
        dataflow: Settings of Dataflow.
    """

    runner: EngineName = "direct"
    args: tuple[str, ...] = ()
    direct: DirectConfig = DirectConfig()
    flink: FlinkConfig = FlinkConfig()
    spark: SparkConfig = SparkConfig()
    dataflow: DataflowConfig = DataflowConfig()

    @property
    def has_engine(self) -> bool:
        """True if Beam needs more than this process."""
        return self.runner != "direct" or self.direct.workers > 1

    @field_validator("args")
    @classmethod
    def _are_options(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        for arg in args:
            if not arg.startswith("--"):
                raise ValueError(f"{arg!r} is not a Beam option: write --name=value")
        values = {arg.partition("=")[0]: arg.partition("=")[2] for arg in args}
        workers = values.get("--direct_num_workers", "1")
        if workers != "1" and "--direct_running_mode" not in values:
            raise ValueError(
                f"--direct_num_workers={workers} alone starts no processes: its threads take turns. Write "
                f"[beam.direct] workers = {workers if workers.isdecimal() else 2} and run with --runner beam"
            )
        return args

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> "BeamConfig":
        section = getattr(self, self.runner)
        for key, what in _NEEDED.get(self.runner, {}).items():
            if getattr(section, key) is None:
                raise ValueError(
                    f'runner = "{self.runner}" needs {self.runner}.{key}: set beam.{self.runner}.{key} to '
                    f"{what}"
                )
        return self
