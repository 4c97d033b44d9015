import socket
import subprocess
import sys
import time

import pytest

from pipelines.beam import engine as module
from pipelines.beam.engine import job_server
from pipelines.config.beam import FlinkConfig, SparkConfig
from pipelines.errors import RunFailedError

# Stands for Java: listens at the port that --job-port names, and says its arguments.
SERVER = f"""#!{sys.executable}
import socket, sys, time
print(sys.argv[1:], flush=True)
port = int(sys.argv[sys.argv.index("--job-port") + 1])
with socket.create_server(("localhost", port)):
    time.sleep(60)
"""
BROKEN = "#!/bin/sh\necho first line\necho the reason >&2\nexit 3\n"
SILENT = "#!/bin/sh\nexec sleep 60\n"


@pytest.fixture
def java(tmp_path, monkeypatch):
    """Returns a function that puts a program in the place of `java`."""

    def put(text):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "java").write_text(text)
        (tmp_path / "bin" / "java").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return put


@pytest.fixture
def jar(tmp_path):
    (tmp_path / "server.jar").touch()
    return str(tmp_path / "server.jar")


def test_one_that_runs_is_taken():
    with socket.create_server(("localhost", 0)) as server:
        address = f"localhost:{server.getsockname()[1]}"
        with job_server(FlinkConfig(job_server=address), None) as endpoint:
            assert endpoint == address


def test_one_that_does_not_answer_is_an_error_at_once():
    start = time.monotonic()
    with (
        pytest.raises(RunFailedError, match=r"no job server answers at .*'localhost:9'.*Start it"),
        job_server(SparkConfig(job_server="localhost:9"), None),
    ):
        pass
    assert time.monotonic() - start < module.ANSWER_SECS


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (FlinkConfig(master="jobs:8081", staging="/shared"), ["--flink-master", "jobs:8081", "/shared"]),
        (SparkConfig(master="local[3]"), ["--spark-master-url", "local[3]", "beam/staging"]),
    ],
)
def test_one_is_started_from_its_jar_and_ends_with_the_context(java, jar, tmp_path, config, expected):
    java(SERVER)
    folder = tmp_path / "beam"
    folder.mkdir()
    with job_server(config.model_copy(update={"job_server": jar}), folder) as endpoint:
        host, port = endpoint.split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)), timeout=5)
    log = (folder / "job_server.log").read_text()
    for part in ["-jar", jar, *expected]:
        assert part in log


@pytest.mark.more
def test_it_ends_with_a_run_that_is_killed(java, jar, tmp_path):
    java(SERVER)
    program = f"""
import pathlib, sys, time
from pipelines.beam.engine import job_server
from pipelines.config.beam import FlinkConfig
config = FlinkConfig(master="jobs:8081", job_server={jar!r})
with job_server(config, pathlib.Path({str(tmp_path)!r})) as address:
    print(address, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as run:
        host, port = run.stdout.readline().strip().split(":")
        socket.create_connection((host, int(port)), timeout=5).close()
        run.kill()
    deadline = time.monotonic() + 10
    while module._listens(f"{host}:{port}", 1):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("program", "message"),
    [(BROKEN, r"ended with code 3 .*first line \| the reason"), (SILENT, r"did not answer within 0\.5 s")],
)
def test_one_that_does_not_start_says_why(java, jar, tmp_path, program, message):
    java(program)
    config = FlinkConfig(master="jobs:8081", job_server=jar)
    with pytest.raises(RunFailedError, match=message), job_server(config, tmp_path, 0.5):
        pass


@pytest.mark.parametrize(
    ("name", "message"), [("server.jar", "needs Java 11"), ("such.jar", r"Set beam\..*\.job_server")]
)
def test_a_job_server_without_java_or_its_jar_is_refused(jar, tmp_path, monkeypatch, name, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    config = FlinkConfig(master="jobs:8081", job_server=str(tmp_path / name))
    with pytest.raises(RunFailedError, match=message), job_server(config, tmp_path):
        pass
