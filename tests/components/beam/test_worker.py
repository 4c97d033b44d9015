import concurrent.futures
import os
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
from apache_beam.portability.api import (
    beam_fn_api_pb2,
    beam_fn_api_pb2_grpc,
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
)

from components.beam import worker as beam_worker

# A worker that says its arguments in a file of its own, and then waits.
SLEEPER = """#!/bin/sh
echo "$@" > {folder}/$$
exec sleep 60
"""


class Provision:
    """A runner's provision service; keeps the worker ids that ask."""

    def __init__(self):
        self.asked = []

    def GetProvisionInfo(self, request, context):  # noqa: N802
        self.asked.append(dict(context.invocation_metadata())["worker_id"])
        response = beam_provision_api_pb2.GetProvisionInfoResponse()
        info = response.info
        info.pipeline_options.update({"beam:option:beam_plugins:v1": ["components.tfx.compat"]})
        info.control_endpoint.url = "control:1"
        info.logging_endpoint.url = "logging:2"
        info.runner_capabilities.append("beam:some:capability:v1")
        return response


@pytest.fixture
def provision():
    service, server = Provision(), grpc.server(concurrent.futures.ThreadPoolExecutor(2))
    beam_provision_api_pb2_grpc.add_ProvisionServiceServicer_to_server(service, server)
    service.address = f"localhost:{server.add_insecure_port('localhost:0')}"
    server.start()
    yield service
    server.stop(None).wait()


def test_a_worker_reads_what_the_runner_says(provision):
    variables = beam_worker.worker_variables("7-3", provision.address)
    assert provision.asked == ["7-3"]
    assert variables["WORKER_ID"] == "7-3"
    assert "components.tfx.compat" in variables["PIPELINE_OPTIONS"]
    assert variables["CONTROL_API_SERVICE_DESCRIPTOR"].strip() == 'url: "control:1"'
    assert variables["LOGGING_API_SERVICE_DESCRIPTOR"].strip() == 'url: "logging:2"'
    assert variables["RUNNER_CAPABILITIES"] == "beam:some:capability:v1"
    assert "STATUS_API_SERVICE_DESCRIPTOR" not in variables


def test_a_runner_that_does_not_answer_is_an_error_in_time(monkeypatch):
    monkeypatch.setattr(beam_worker, "PROVISION_TIMEOUT_SECS", 0.3)
    with pytest.raises(grpc.RpcError):
        beam_worker.worker_variables("1-1", "localhost:9")


def test_the_launcher_starts_this_python_with_what_it_can_import(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "a folder"))
    launcher = tmp_path / "worker.sh"
    beam_worker.write_launcher(launcher)
    (tmp_path / "components").mkdir()  # a folder with the name of ours
    (tmp_path / "components" / "__init__.py").write_text("")
    for folder in ("/", tmp_path):
        done = subprocess.run([launcher, "--help"], capture_output=True, text=True, cwd=folder, env={})
        assert done.returncode == 0, done.stderr
        assert "--provision_endpoint" in done.stdout, done.stderr
    text = launcher.read_text()
    assert sys.executable in text
    assert f"{os.getcwd()}:{tmp_path / 'a folder'}" in text


def test_it_says_what_to_give(capsys):
    with pytest.raises(SystemExit):
        beam_worker.main(["--id", "1-1"])
    assert "give --pool PORT, or --id and --provision_endpoint" in capsys.readouterr().err


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A pool whose workers wait, its stub, and the folder in which they write their arguments."""

    def write_sleeper(file):
        file.write_text(SLEEPER.format(folder=tmp_path))
        file.chmod(0o755)

    monkeypatch.setattr(beam_worker, "write_launcher", write_sleeper)
    with beam_worker.worker_pool(0) as port, grpc.insecure_channel(f"localhost:{port}") as channel:
        yield beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(channel), tmp_path
    assert running(tmp_path, 0) == {}  # a pool that ends ends its workers


def start(stub, worker_id, provision):
    request = beam_fn_api_pb2.StartWorkerRequest(worker_id=worker_id)
    request.provision_endpoint.url = provision
    assert not stub.StartWorker(request).error


def running(folder, count):
    """Waits until `count` workers run, and returns their process ids with their arguments."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = {}
        for file in folder.iterdir():
            status = Path(f"/proc/{file.name}/stat")
            if status.exists() and status.read_text().split()[2] != "Z":
                found[int(file.name)] = file.read_text().strip()
        if len(found) == count and all(found.values()):
            return found
        time.sleep(0.05)
    raise AssertionError(f"{found} instead of {count} workers")


def test_a_pool_starts_workers_and_stops_the_one_that_is_named(pool):
    stub, folder = pool
    start(stub, "1-1", "localhost:11")
    start(stub, "1-2", "localhost:12")
    assert sorted(running(folder, 2).values()) == [
        "--id=1-1 --provision_endpoint=localhost:11",
        "--id=1-2 --provision_endpoint=localhost:12",
    ]
    stub.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"))
    assert list(running(folder, 1).values()) == ["--id=1-2 --provision_endpoint=localhost:12"]


def test_two_task_managers_that_share_a_pool_do_not_stop_each_others_workers(pool):
    stub, folder = pool
    start(stub, "1-1", "localhost:11")
    start(stub, "1-1", "localhost:21")
    before = running(folder, 2)
    stub.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"))
    assert running(folder, 2) == before
