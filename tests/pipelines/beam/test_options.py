from pathlib import Path

import pytest
from apache_beam.options import pipeline_options

from pipelines.beam import options
from pipelines.config import beam as config
from pipelines.errors import BadInputError

LAUNCHER = Path("/root/beam/worker.sh")


def view(given, kind):
    return pipeline_options.PipelineOptions(list(given)).view_as(kind)


def test_processes_on_this_machine():
    given = options.direct_options(config.DirectConfig(workers=3))
    direct = view(given, pipeline_options.DirectOptions)
    assert (direct.direct_num_workers, direct.direct_running_mode) == (3, "multi_processing")
    standard = view(given, pipeline_options.StandardOptions)
    assert standard.runner == "components.beam.processes.ProcessesRunner"


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--direct_running_mode=multi_processing",), "components.beam.processes.ProcessesRunner"),
        (("--direct_running_mode=multi_processing", "--runner=PrismRunner"), "PrismRunner"),
        ((), None),
    ],
)
def test_processes_of_args_are_of_our_runner_unless_they_name_one(args, expected):
    given = options.given_options(config.BeamConfig(args=args))
    assert view(given, pipeline_options.StandardOptions).runner == expected


@pytest.mark.parametrize(
    ("settings", "kind", "value"),
    [
        ({}, "PROCESS", '{"command": "/root/beam/worker.sh"}'),
        ({"worker_command": "/w"}, "PROCESS", '{"command": "/w"}'),
        ({"environment": "external", "worker_pool": "h:5"}, "EXTERNAL", "h:5"),
        ({"environment": "docker", "worker_image": "i:1"}, "DOCKER", "i:1"),
        ({"environment": "loopback"}, "LOOPBACK", None),
    ],
)
def test_where_the_python_code_runs(settings, kind, value):
    given = options.worker_options(config.WorkerConfig(workers=2, **settings), LAUNCHER)
    portable = view(given, pipeline_options.PortableOptions)
    assert (portable.environment_type, portable.environment_config) == (kind, value)
    assert int(portable.sdk_worker_parallelism) == 2
    assert int(portable.environment_cache_millis) == 30_000


def test_flink_options_name_the_master_and_the_parallelism():
    flink = config.FlinkConfig(master="jobs:8081", parallelism=4)
    given = options.flink_options(flink, "localhost:8099", LAUNCHER)
    assert view(given, pipeline_options.StandardOptions).runner == "PortableRunner"
    assert view(given, pipeline_options.PortableOptions).job_endpoint == "localhost:8099"
    read = view(given, pipeline_options.FlinkRunnerOptions)
    assert (read.flink_master, read.parallelism) == ("jobs:8081", 4)
    without = options.flink_options(config.FlinkConfig(master="j:1"), "localhost:8099", LAUNCHER)
    assert not any(option.startswith("--parallelism") for option in without)


def test_spark_options_name_the_master_and_run_workers_as_processes():
    given = options.spark_options(config.SparkConfig(master="local[2]"), "localhost:8099", LAUNCHER)
    assert view(given, pipeline_options.SparkRunnerOptions).spark_master_url == "local[2]"
    assert view(given, pipeline_options.PortableOptions).environment_type == "PROCESS"


def test_dataflow_options_hold_each_setting():
    dataflow = config.DataflowConfig(
        project="a-project", region="europe-west1", temp_location="gs://bucket/tmp", worker_image="image:1",
        service_account="me@a-project.iam.gserviceaccount.com", machine_type="n2-standard-4", num_workers=2,
        max_num_workers=9, disk_size_gb=50, subnetwork="regions/europe-west1/subnetworks/s", public_ips=False,
    )  # fmt: skip
    given = options.dataflow_options(dataflow)
    assert view(given, pipeline_options.StandardOptions).runner == "DataflowRunner"
    cloud = view(given, pipeline_options.GoogleCloudOptions)
    assert (cloud.project, cloud.region) == ("a-project", "europe-west1")
    assert cloud.temp_location == "gs://bucket/tmp"
    assert cloud.service_account_email == "me@a-project.iam.gserviceaccount.com"
    worker = view(given, pipeline_options.WorkerOptions)
    assert (worker.num_workers, worker.max_num_workers, worker.disk_size_gb) == (2, 9, 50)
    assert (worker.machine_type, worker.sdk_container_image) == ("n2-standard-4", "image:1")
    assert worker.subnetwork == "regions/europe-west1/subnetworks/s"
    assert worker.use_public_ips is False


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"direct": {"workers": 3}}, "3 processes on this machine"),
        ({"runner": "flink", "flink": {"master": "j:1"}}, "Flink at j:1"),
        ({"runner": "spark", "spark": {"master": "local"}}, "Spark at local"),
    ],
)
def test_engines_in_words(settings, expected):
    assert options.engine_name(config.BeamConfig.model_validate(settings)) == expected


def test_options_that_beam_has():
    options.check_beam_args(["--direct_num_workers=2", "--direct_running_mode=multi_threading"])
    options.check_beam_args(["--runner=DirectRunner", "--temp_location=/somewhere"])


@pytest.mark.parametrize(
    ("arg", "message"),
    [
        ("--direct_num_worker=2", r"no option '--direct_num_worker=2'.*mean '--direct_num_workers'"),
        ("--direct_num_workers=two", r"--direct_num_workers: invalid int value: 'two'"),
        ("--direct_running_mode=x", r"--direct_running_mode: invalid choice: 'x'"),
    ],
)
def test_options_that_it_has_not(arg, message):
    with pytest.raises(BadInputError, match=rf"^beam\.args: .*{message}"):
        options.check_beam_args(["--runner=DirectRunner", arg])
