import contextlib
import json
import socket
import time

import pytest

from pipelines.beam.engine import checked_flink, running_engine
from pipelines.config.beam import BeamConfig, FlinkConfig
from pipelines.errors import BadInputError, RunFailedError
from tests.pipelines.kubeflow.loopback import LoopbackServer, RefusedError

OVERVIEW = {"taskmanagers": 2, "slots-total": 4, "flink-version": "1.19.3"}


class JobManager(LoopbackServer):
    def __init__(self, overview):
        self._overview = overview
        super().__init__()

    def answer(self, method, path, *_):
        if path != "/overview":
            raise RefusedError(404, "there is no such page")
        return self._overview


@contextlib.contextmanager
def job_manager(overview):
    """Serves an overview of a cluster; yields the address."""
    with contextlib.closing(JobManager(overview)) as server:
        yield server.url.removeprefix("http://")


def test_the_version_of_the_cluster_chooses_the_jar():
    with job_manager(json.dumps(OVERVIEW)) as master:
        assert checked_flink(FlinkConfig(master=master, parallelism=4)).version == "1.19"
        assert checked_flink(FlinkConfig(master=master, version="1.19")).version == "1.19"
        assert checked_flink(FlinkConfig(master=master, job_server="h:1")).version is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("overview", "settings", "message"),
    [
        ({}, {"version": "2.0"}, r"version = '2\.0'.*is Flink 1\.19\.3.*write '1\.19'"),
        ({}, {"parallelism": 5}, r"parallelism = 5: .* has 4 task slots \(2 task managers\)"),
        ({"taskmanagers": 0, "slots-total": 0}, {}, "has 0 task slots"),
    ],
)
def test_what_the_cluster_does_not_have_is_refused(overview, settings, message):
    answer = json.dumps({**OVERVIEW, **overview})
    with job_manager(answer) as master, pytest.raises(BadInputError, match=message):
        checked_flink(FlinkConfig(master=master, **settings))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("answer", ["<html>", '{"other": 1}', "[]"])
def test_something_else_at_the_address_is_an_error(answer):
    with job_manager(answer) as master, pytest.raises(RunFailedError, match="no Flink JobManager"):
        checked_flink(FlinkConfig(master=master))


def test_a_job_manager_that_does_not_run_is_an_error_at_once(tmp_path):
    config = BeamConfig.model_validate({"runner": "flink", "flink": {"master": "localhost:9"}})
    start = time.monotonic()
    with (
        pytest.raises(RunFailedError, match=r"beam\.flink\.master = 'localhost:9'.*correct the address"),
        running_engine(config, tmp_path),
    ):
        pass
    assert time.monotonic() - start < 5


def test_flink_with_a_job_server_that_runs(tmp_path):
    with job_manager(json.dumps(OVERVIEW)) as master, socket.create_server(("localhost", 0)) as server:
        jobs = f"localhost:{server.getsockname()[1]}"
        flink = {"master": master, "job_server": jobs, "parallelism": 3}
        config = BeamConfig.model_validate({"runner": "flink", "flink": flink})
        with running_engine(config, tmp_path / "beam") as options:
            assert {f"--job_endpoint={jobs}", f"--flink_master={master}", "--parallelism=3"} < set(options)
    assert (tmp_path / "beam" / "worker.sh").stat().st_mode & 0o111


def test_spark_with_a_job_server_that_runs(tmp_path):
    with socket.create_server(("localhost", 0)) as server:
        jobs = f"localhost:{server.getsockname()[1]}"
        spark = {"master": "local[2]", "job_server": jobs}
        config = BeamConfig.model_validate({"runner": "spark", "spark": spark})
        with running_engine(config, tmp_path) as options:
            assert {f"--job_endpoint={jobs}", "--spark_master_url=local[2]"} < set(options)


def test_processes_on_this_machine_need_nothing_beside_them(tmp_path):
    config = BeamConfig.model_validate({"direct": {"workers": 2}})
    with running_engine(config, tmp_path / "beam") as options:
        assert "--direct_running_mode=multi_processing" in options
    assert not (tmp_path / "beam").exists()
