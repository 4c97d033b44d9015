import contextlib
import gzip
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipelines.root import Root
from pipelines.root.rollback import rollback
from pipelines.serving.server import app
from pipelines.serving.server.batching import BatchLimits
from pipelines.serving.server.connections import ConnectionLimits
from pipelines.serving.server.request import LARGE_BYTES
from pipelines.serving.server.server_settings import ServerSettings
from tests.pipelines.serving.server.conftest import served

PREDICT = "/v1/models/sums:predict"
BODY = {"instances": [{"x": 3.5}]}


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.more
def test_a_body_beyond_the_limit_is_refused(push):
    with served(push("regressor", 1), ServerSettings(max_body_bytes=40)) as client:
        assert client.post(PREDICT, BODY).status_code == 200
        long = {"instances": [{"x": 3.5}], "more": "x" * 40}
        answer = client.post(PREDICT, long)
        assert (answer.status_code, "more than 40 bytes" in answer.json()["error"]) == (413, True)
        chunks = client._client.post(PREDICT, content=(b" " * 30 for _ in range(2)))
        assert chunks.status_code == 413


@pytest.mark.more
def test_slow_large_bodies_keep_no_small_ones_out(push):
    size = LARGE_BYTES + 2
    start = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"
    with (
        served(push("regressor", 1), ServerSettings(max_body_bytes=size)) as client,
        contextlib.ExitStack() as connections,
    ):
        for _ in range(4):
            connection = socket.create_connection(("127.0.0.1", client.port))
            connections.enter_context(connection)
            connection.sendall(start.encode() + b" " * (size - 1))
        wait_for(lambda: client.post(PREDICT, " " * size).status_code == 503)
        assert client.post(PREDICT, BODY).json() == {"predictions": [[3.5]]}


@pytest.mark.more
def test_a_body_that_does_not_arrive_is_given_up(push):
    settings = ServerSettings(batches=BatchLimits(timeout_secs=0.2))
    start = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{{"
    with (
        served(push("regressor", 1), settings) as client,
        socket.create_connection(("127.0.0.1", client.port)) as connection,
    ):
        connection.sendall(start.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 408")


@pytest.mark.more
def test_a_request_has_its_time_limit_while_its_body_is_read_as_well(push, monkeypatch):
    go = threading.Event()

    def check_json(*arguments):
        assert go.wait(60)

    monkeypatch.setattr(app, "check_json", check_json)
    settings = ServerSettings(batches=BatchLimits(timeout_secs=0.2))
    with served(push("regressor", 1), settings) as client:
        answer = client.post(PREDICT, {**BODY, "more": "x" * LARGE_BYTES})
        go.set()
        assert (answer.status_code, answer.json()["error"]) == (504, "There is no prediction after 0.2 s.")


@pytest.mark.more
def test_a_server_has_the_limits_of_connections(push):
    limits = ConnectionLimits(max_header_bytes=500, header_secs=0.2)
    with served(push("regressor", 1), ServerSettings(connections=limits)) as client:

        def answer(text):
            with socket.create_connection(("127.0.0.1", client.port), timeout=30) as connection:
                connection.sendall(text)
                return connection.recv(100)

        assert answer(b"GET / HTTP/1.1\r\nA: " + b"a" * 500).startswith(b"HTTP/1.1 431 ")
        assert answer(b"GET / HTTP/1.1\r\nA: ").startswith(b"HTTP/1.1 408 ")
        assert answer(b"") == b""
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        assert answer(b"GET / HTTP/1.1\r\n" + upgrade).startswith(b"HTTP/1.1 404 ")
        assert 'kind="other",status="431"} 1' in client.get("/metrics").text


@pytest.mark.more
def test_a_request_has_a_limited_number_of_rows(push):
    settings = ServerSettings(batches=BatchLimits(max_request_rows=3))
    with served(push("regressor", 1), settings) as client:
        assert client.post(PREDICT, {"instances": [{"x": 1}] * 3}).is_success
        body = json.dumps({"instances": [{"x": 1}] + [{}] * 1_000})
        zipped = gzip.compress(body.encode())
        for content, headers in ((body, {}), (zipped, {"Content-Encoding": "gzip"})):
            answer = client.post(PREDICT, content, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (
                413,
                "The request has 1001 rows; 3 are allowed. Split it into several.",
            )


@pytest.mark.more
def test_a_client_that_hangs_up_is_no_failure_of_the_server(push):
    start = f"POST {PREDICT} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{{"
    with served(push("regressor", 1)) as client:
        with socket.create_connection(("127.0.0.1", client.port)) as connection:
            connection.sendall(start.encode())
        wait_for(lambda: 'kind="predict",status="400"} 1' in client.get("/metrics").text)
        assert 'status="500"' not in client.get("/metrics").text


@pytest.mark.more
@pytest.mark.parametrize(
    ("header", "remedy"),
    [
        ({"Content-Encoding": "br"}, "Content-Encoding: br is not supported; gzip is"),
        ({"Inference-Header-Content-Length": "20"}, "Send the tensors as JSON"),
    ],
)
def test_a_body_of_another_form_is_refused_with_the_remedy(push, header, remedy):
    with served(push("regressor", 1)) as client:
        answer = client.post(PREDICT, BODY, headers=header)
        assert (answer.status_code, remedy in answer.json()["error"]) == (415, True)
        assert client.post(PREDICT, BODY, headers={"Content-Encoding": "identity"}).is_success


@pytest.mark.more
def test_a_gzipped_body_is_read_up_to_the_limit(push):
    zipped = gzip.compress(json.dumps(BODY).encode())
    bomb = gzip.compress(b" " * 100_000)
    assert len(bomb) < 500
    with served(push("regressor", 1), ServerSettings(max_body_bytes=500)) as client:

        def status(body):
            return client.post(PREDICT, body, headers={"Content-Encoding": "gzip"}).status_code

        answer = client.post(PREDICT, zipped, headers={"Content-Encoding": "gzip"})
        assert answer.json() == {"predictions": [[3.5]]}
        assert [status(body) for body in (bomb, zipped[:-3], b"{}")] == [413, 400, 400]
        parts = [gzip.compress(part.encode()) for part in (json.dumps(BODY)[:9], json.dumps(BODY)[9:])]
        assert (status(b"".join(parts)), status(parts[0] + parts[1][:-9])) == (200, 400)
        exact = gzip.compress(json.dumps(BODY).encode().ljust(500))
        assert (status(exact), status(gzip.compress(b" " * 501))) == (200, 413)


@pytest.mark.more
def test_a_token_is_asked_for_except_for_health(push):
    with served(push("regressor", 1), ServerSettings(token="secret")) as client:
        assert client.get("/v2/health/live").status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": b"Bearer \xe9"}):
            answer = client.post(PREDICT, BODY, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        for path in ("/metrics", "/openapi.json", "/v2"):
            assert client.get(path).status_code == 401
        right = {"Authorization": "Bearer secret"}
        assert client.post(PREDICT, BODY, headers=right).json() == {"predictions": [[3.5]]}
        assert client.get("/openapi.json", headers=right).json()["security"] == [{"token": []}]


@pytest.mark.more
def test_figures_count_requests_and_batches(push):
    with served(push("regressor", 5)) as client:
        for _ in range(3):
            client.post(PREDICT, {"instances": [{"x": 1}] * 5})
        client.post(PREDICT, {})
        lines = client.get("/metrics").text.splitlines()
    prefix = "estimator_pipelines_serving"
    assert f'{prefix}_requests_total{{kind="predict",status="200"}} 3.0' in lines
    assert f'{prefix}_requests_total{{kind="predict",status="400"}} 1.0' in lines
    assert f"{prefix}_batch_rows_sum 15.0" in lines
    assert f"{prefix}_version 5.0" in lines


def test_the_openapi_document_has_the_columns_and_fitting_paths(regression):
    document = regression.get("/openapi.json").json()
    assert document["components"]["schemas"]["Row"]["properties"] == {
        "city": {"type": ["string", "null"]},
        "n": {"type": ["integer", "null"]},
        "x": {"type": ["number", "null"]},
    }
    posts = {path for path, methods in document["paths"].items() if "post" in methods}
    assert posts == {
        PREDICT,
        "/v1/models/sums:regress",
        "/v2/models/sums/infer",
        "/v2/repository/index",
    }
    assert {"/v1/models", "/v2/models"} < document["paths"].keys()
    for path, methods in document["paths"].items():
        if "get" in methods:
            assert regression.get(path).status_code == 200, path


def test_many_clients_get_their_own_predictions(regression):
    def ask(number):
        return regression.post(PREDICT, {"instances": [{"n": number}]}).json()["predictions"]

    with ThreadPoolExecutor(16) as clients:
        assert list(clients.map(ask, range(300))) == [[[float(number)]] for number in range(300)]


@pytest.mark.slow
def test_no_request_fails_while_versions_are_pushed_and_rolled_back(push):
    """Both kinds of answers are seen; the last digits depend on the size of the batch."""
    root = push("regressor", 1)
    answers, over = [], []

    with served(root) as client:

        def ask(_):
            while not over:
                answer = client.post(PREDICT, {"instances": [{"x": 2.0}, {"x": 3.0}]})
                answers.append((answer.status_code, str(answer.json())[:18]))

        with ThreadPoolExecutor(4) as clients:
            asking = [clients.submit(ask, number) for number in range(4)]
            try:
                for version in range(2, 5):
                    push("classifier" if version % 2 == 0 else "regressor", version)
                    wait_for(lambda version=version: client.versions.versions() == [version])
                rollback(Root(root))
                wait_for(lambda: client.versions.versions() == [3])
            finally:
                over.append(True)
            for one in asking:
                one.result()
    assert {status for status, _ in answers} == {200}
    assert {text for _, text in answers} == {"{'predictions': [[", "{'predictions': [{"}
