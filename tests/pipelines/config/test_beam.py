import pytest

from pipelines.config.beam import BeamConfig, is_address
from pipelines.config.load import load_config
from pipelines.errors import BadInputError

FLINK = {"runner": "flink", "flink.master": "jobs:8081"}
SPARK = {"runner": "spark", "spark.master": "spark://host:7077"}


DATAFLOW = {
    "runner": "dataflow", "dataflow.project": "a-project", "dataflow.region": "europe-west1",
    "dataflow.temp_location": "gs://bucket/tmp", "dataflow.worker_image": "image:1",
}  # fmt: skip


def load(settings):
    given = [f"beam.{key}={value}" for key, value in settings.items()]
    return load_config(data="d.csv", label="y", settings=given).beam


def test_by_default_beam_works_in_one_process():
    assert load({}) == BeamConfig()
    assert (BeamConfig().runner, BeamConfig().direct.workers) == ("direct", 1)


@pytest.mark.parametrize("settings", [FLINK, SPARK, DATAFLOW, {"direct.workers": 3}])
def test_what_an_engine_needs_is_enough(settings):
    assert load(settings).runner == settings.get("runner", "direct")


def test_sections_of_other_engines_are_kept(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(
        '[data]\npath = "d.csv"\nlabel = "y"\n[beam]\nrunner = "spark"\n'
        '[beam.spark]\nmaster = "local[2]"\n'
        '[beam.flink]\nmaster = "jobs:8081"\nparallelism = 4\n'
        'environment = "external"\nworker_pool = "localhost:50000"\nworkers = 2\n'
    )
    config = load_config(config_file=file).beam
    assert config.spark.master == "local[2]"
    assert (config.flink.parallelism, config.flink.workers) == (4, 2)
    assert load_config(config_file=file, settings=["beam.runner=flink"]).beam.runner == "flink"


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        ({"runner": "flnk"}, ["beam.runner = 'flnk'", "'flink'"]),
        ({"runner": "flink"}, ["needs flink.master", "set beam.flink.master", "localhost:8081"]),
        ({"runner": "spark"}, ["needs spark.master", "spark://host:port"]),
        ({**DATAFLOW, "dataflow.region": "Europe"}, ["beam.dataflow.region = 'Europe'"]),
        *(
            ({k: v for k, v in DATAFLOW.items() if k != f"dataflow.{key}"}, [f"needs dataflow.{key}"])
            for key in ("project", "region", "temp_location", "worker_image")
        ),
        ({"dataflow.temp_location": "/tmp"}, ["dataflow.temp_location = '/tmp'", "gs://BUCKET"]),
        (
            {"dataflow.num_workers": 5, "dataflow.max_num_workers": 3},
            ["num_workers = 5 is above max_num_workers = 3"],
        ),
        ({"flink.master": "http://jobs:8081"}, ["beam.flink.master", "without http://"]),
        ({"flink.master": "jobs"}, ["beam.flink.master = 'jobs'", '"host:port"']),
        ({"flink.master": "jobs:99999"}, ["beam.flink.master = 'jobs:99999'"]),
        ({"flink.parallelism": 0}, ["beam.flink.parallelism = 0"]),
        ({"flink.version": "'1.19'", "flink.job_server": "a.jar"}, ["version = '1.19'", "Remove one"]),
        ({"flink.job_server": "some server"}, ["neither an address", "nor a jar"]),
        ({"spark.staging": "/s", "spark.job_server": "h:1"}, ["staging = '/s'", "--artifacts-dir"]),
        ({"spark.master": "host:7077"}, ["beam.spark.master = 'host:7077'", "spark://host:port"]),
        ({"flink.environment": "external"}, ["needs worker_pool", "components.beam.worker --pool"]),
        ({"flink.environment": "docker"}, ["needs worker_image"]),
        (
            {"spark.worker_pool": "h:1"},
            ["worker_pool = 'h:1'", 'environment = "external"', 'received environment = "process"'],
        ),
        (
            {"flink.environment": "loopback", "flink.worker_command": "/w"},
            ["worker_command = '/w'", 'environment = "process"'],
        ),
        ({"flink.environment": "threads"}, ["beam.flink.environment = 'threads'", "loopback"]),
        ({"flink.workrs": 2}, ["beam.flink.workrs", "Did you mean workers?"]),
        ({"direct.workers": 0}, ["beam.direct.workers = 0"]),
        (
            {"args": "['--direct_num_workers=3']"},
            ["alone starts no processes", "[beam.direct] workers = 3", "--runner beam"],
        ),
    ],
)
def test_what_is_missing_or_contradictory_is_refused(settings, messages):
    with pytest.raises(BadInputError) as error:
        load(settings)
    for message in messages:
        assert message in str(error.value)


def test_workers_with_their_mode_are_an_option_like_others():
    args = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    assert load({"args": args}).args == tuple(args)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h:65535", True),
        ("[::1]:1", True),
        ("h", False),
        ("h:0", False),
        ("h:65536", False),
        ("/a/b:1.jar", False),
    ],
)
def test_an_address_is_a_host_and_a_port(text, expected):
    assert is_address(text) is expected
