import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import threading
import time

import grpc
import httpx
import pytest
from tensorflow_serving.apis import prediction_service_pb2_grpc, regression_pb2

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.server.process import ServerAddress, _connections_within_files, _listening, serve
from pipelines.serving.server.server_settings import ServerSettings

PROJECT = pathlib.Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example.org", False),
    ],
)
def test_an_address_is_a_loopback_or_not(host, is_loopback):
    assert ServerAddress(host).is_loopback == is_loopback


@pytest.mark.parametrize(
    ("host", "settings", "grpc_port", "message"),
    [
        ("0.0.0.0", {}, None, r"other machines reach it on 0.0.0.0. .* --token-file"),
        ("0.0.0.0", {"token": "a"}, None, "no model in"),
        ("127.0.0.1", {}, 8501, "--port and --grpc-port are both 8501"),
        ("127.0.0.1", {"max_body_bytes": 1 << 32}, 0, "--max-body is 2147483647 at most"),
    ],
    ids=["another address without a token", "no model", "one port for both", "a body beyond gRPC's limit"],
)
def test_what_cannot_be_served_is_refused(tmp_path, host, settings, grpc_port, message):
    with pytest.raises(BadInputError, match=message):
        serve(
            Root(tmp_path), "m", ServerAddress(host), print,
            settings=ServerSettings(**settings), grpc_port=grpc_port,
        )  # fmt: skip


def test_a_port_that_is_taken_is_named(tmp_path):
    with _listening(ServerAddress(port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadInputError, match=f"127.0.0.1, port {port}: .* another --port"):
            _listening(ServerAddress(port=port))
        message = f"cannot listen on 127.0.0.1, port {port}: .* another --grpc-port or --host"
        with pytest.raises(BadInputError, match=message):
            serve(Root(tmp_path), "m", ServerAddress(), print, grpc_port=port)


@pytest.mark.more
def test_the_command_serves_until_sigterm_and_answers_what_has_begun(push, tmp_path):
    root = push("regressor", 7)
    (tmp_path / "token").write_text("secret\n")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "pipelines", "serve", "--root", root, "--port", "0"),
            *("--token-file", tmp_path / "token", "--name", "sums", "--grpc-port", "0"),
        ],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr.readline() == f"loading {root} ...\n"
        for line in process.stderr:
            if line.startswith("version 7 of sums serves at "):
                break
        url = re.search(r"http://\S+", line)[0]
        client = httpx.Client(base_url=url, headers={"Authorization": "Bearer secret"})
        body = {"instances": [{"x": 2.5}]}
        answer = client.post("/v1/models/sums:predict", json=body)
        assert answer.json() == {"predictions": [[2.5]]}
        with grpc.insecure_channel(re.search(r"by gRPC at (\S+)", line)[1]) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            request = regression_pb2.RegressionRequest()
            request.model_spec.name = "sums"
            request.input.example_list.examples.add()
            metadata = [("authorization", "Bearer secret")]
            (value,) = stub.Regress(request, metadata=metadata).result.regressions
            assert value.value == 0.0
        rows = {"instances": [{"x": number} for number in range(20_000)]}
        late = []
        asking = threading.Thread(
            target=lambda: late.append(
                client.post("/v1/models/sums:predict", json=rows, timeout=60).status_code
            )
        )
        asking.start()
        time.sleep(0.3)  # the body is on its way, or the model works
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        asking.join()
        assert late == [200]
        assert process.stderr.read().endswith("the server has ended\n")
        assert process.stdout.read() == ""
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("num_servers", "soft", "hard", "raised", "num_connections"),
    [
        (1, 1_024, 4_096, [(3_100, 4_096)], 3_000),
        (1, 1_024, 2_000, [(2_000, 2_000)], 1_900),
        (2, 1_024, 2_000, [(2_000, 2_000)], 950),
        (2, 1_024, resource.RLIM_INFINITY, [(6_100, resource.RLIM_INFINITY)], 3_000),
        (1, 3_100, 4_096, [], 3_000),
        (2, 50, 50, [(50, 50)], 1),
        (2, resource.RLIM_INFINITY, resource.RLIM_INFINITY, [], 3_000),
    ],
)
def test_the_limit_of_open_files_is_raised_or_else_divided_among_the_servers(
    monkeypatch, num_servers, soft, hard, raised, num_connections
):
    limits = []
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limit: limits.append(limit))
    monkeypatch.setattr(os, "listdir", lambda path: ["0"] * 36)  # and 64 to spare
    assert _connections_within_files(3_000, num_servers) == num_connections
    assert limits == raised
