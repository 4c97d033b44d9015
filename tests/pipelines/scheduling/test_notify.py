import contextlib
import http.server
import json
import shlex
import socket
import sys
import threading
import time
from datetime import timedelta

import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.scheduling.notify import missed_event, run_events, tell
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START

TICK = time_tick("trips", START)
NOW = "2026-01-31T10:05:00+00:00"
WEBHOOK = "notify.webhook ended with exit code 1:"
CONTENT = {"schema": 1, "event": "failed", "text": "trips: no"}


def test_a_run_that_was_not_blessed_and_has_drifted(root, record):
    run = record(
        "run-1", status="not_blessed", reason="auc is worse", metrics={"auc": 0.5}, serving_version="3",
        report="/r.html", notes=("data: span 8", "anomaly: column 'miles': metres?"),
    )  # fmt: skip
    content, drifted = run_events(root, TICK, run, NOW)
    json.dumps(content, allow_nan=False)
    assert (content["event"], drifted["event"]) == ("not_blessed", "drifted")
    assert content["id"] == "trips-20260131T100000Z-not_blessed"
    assert content["text"] == "trips: run run-1 was not blessed: auc is worse"
    assert content["metrics"] == {"auc": 0.5}
    assert (content["serving_version"], content["report"]) == ("3", "/r.html")
    assert (content["schema"], content["root"], content["time"]) == (1, str(root), NOW)
    assert (content["tick"], content["due"]) == (TICK.key, "2026-01-31T10:00:00+00:00")
    assert drifted["notes"] == ["column 'miles': metres?"]
    assert drifted["text"] == "trips: the data have changed: column 'miles': metres?"
    assert set(drifted) == set(content)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"status": "pushed", "version": "4"}, "pushed version 4"),
        ({"status": "pushed"}, "pushed"),  # elsewhere
        ({"status": "finished"}, "finished"),
        ({"status": "failed", "reason": "no"}, "failed: no"),
        ({"status": "held", "reason": "labels"}, "holds its model until `approve` decides: labels"),
    ],
)
def test_the_sentence_for_people(root, record, fields, text):
    (content,) = run_events(root, TICK, record("run-1", **fields), NOW)
    assert content["text"] == f"trips: run run-1 {text}"


def test_a_metric_that_is_no_number_is_null(root, record):
    metrics = {"auc": float("nan"), "loss": float("inf"), "n": 0}
    (content,) = run_events(root, TICK, record("run-1", status="pushed", metrics=metrics), NOW)
    assert content["metrics"] == {"auc": None, "loss": None, "n": 0}


def test_missed_runs_are_reported_in_one_notification(root):
    later = time_tick("trips", START + timedelta(minutes=2))
    content = missed_event(root, (TICK, later), NOW)
    first, last = "2026-01-31T10:00:00+00:00", "2026-01-31T10:02:00+00:00"
    assert content["missed"] == {"count": 2, "first": first, "last": last}
    assert content["text"] == (
        f"trips: 2 runs were due between {first} and {last} and had not started by {NOW}"
    )
    one = missed_event(root, (TICK,), NOW)
    assert one["text"] == f"trips: a run was due at {first} and had not started by {NOW}"
    assert content["id"] == one["id"] == "trips-20260131T100000Z-missed"


def test_a_held_model_is_told_once(root, record):
    (content,) = run_events(root, TICK, record("run-1", status="held"), NOW)
    assert (content["event"], content["status"]) == ("held", "held")
    assert run_events(root, TICK, record("run-2", status="held", same_as="run-1"), NOW) == []
    rejected = record("run-3", status="not_blessed", same_as="run-1")
    assert run_events(root, TICK, rejected, NOW) == []


# Receivers


@pytest.fixture
def hook():
    """A receiver of webhooks: its requests, and its answers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        bodies, answer, all_headers = [], 204, []

        def do_POST(self):
            Handler.all_headers.append(dict(self.headers))
            Handler.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(Handler.answer)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.url = f"http://127.0.0.1:{server.server_port}/SECRET"
    yield Handler
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_json_and_only_what_is_asked_for(hook, monkeypatch):
    assert tell(NotifyConfig(webhook=hook.url, on=("pushed",)), CONTENT) == ""
    assert tell(NotifyConfig(), CONTENT) == ""
    assert hook.bodies == []
    assert tell(NotifyConfig(webhook=hook.url), CONTENT) == ""
    monkeypatch.setenv("HOOK", hook.url.replace("//", "//me:a%40b@"))
    assert tell(NotifyConfig(webhook_env="HOOK"), CONTENT) == ""
    assert hook.bodies == [CONTENT, CONTENT]
    assert hook.all_headers[0]["Content-Type"] == "application/json"
    # base64 of "me:a@b"
    assert hook.all_headers[1]["Authorization"] == "Basic bWU6YUBi"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("answer", [302, 500])
def test_a_webhook_that_refuses(hook, answer):
    hook.answer = answer
    error = tell(NotifyConfig(webhook=hook.url.replace("//", "//me:SECRET@")), CONTENT)
    assert error == f"{WEBHOOK} 127.0.0.1 answered {answer}"


@pytest.fixture
def receiver_that():
    """Returns a function that makes a receiver of its own answer to one request, and returns its address."""
    with contextlib.ExitStack() as stack:

        def make(answer):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve():
                with contextlib.suppress(OSError):
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(65_536)
                        answer(connection)

            threading.Thread(target=serve, daemon=True).start()
            return f"http://127.0.0.1:{server.getsockname()[1]}/SECRET"

        yield make


@pytest.mark.parametrize("answer", [b"hello\r\n\r\n", b"HTTP/1.1 abc /SECRET\r\n\r\n", b""])
def test_a_webhook_that_answers_no_http(receiver_that, answer):
    address = receiver_that(lambda connection: connection.sendall(answer))
    error = tell(NotifyConfig(webhook=address), CONTENT)
    assert error.startswith(f"{WEBHOOK} 127.0.0.1 cannot be reached: ")
    assert "SECRET" not in error


@pytest.mark.more
def test_a_webhook_whose_answer_never_ends_is_left_after_the_time_limit(receiver_that):
    ended = threading.Event()

    def answer(connection):
        try:
            while True:  # each of them is in time
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        except OSError:
            ended.set()

    error = tell(NotifyConfig(webhook=receiver_that(answer), timeout_secs=1), CONTENT)
    assert error == "notify.webhook had not ended after 1 s"
    assert ended.wait(20)  # the connection is closed, not left behind


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:1/SECRET", "127.0.0.1 cannot be reached: Connection refused"),
        ("http://127.0.0.1/SEC RET", ""),
        ("http://127.0.0.1:SECRET/", ""),
        ("http://[::1/SECRET", ""),
        ("http://a..b/SECRET", ""),
        ("ftp://127.0.0.1/SECRET", ""),
        ("SECRET", ""),
        ("", ""),
    ],
)
def test_an_address_that_cannot_be_used(address, reason, monkeypatch):
    monkeypatch.setenv("HOOK", address)
    error = tell(NotifyConfig(webhook_env="HOOK"), CONTENT)
    assert error.startswith(f"{WEBHOOK} {reason}")
    assert "SEC" not in error


def command(code):
    return NotifyConfig(command=f"{sys.executable} -c '{code}'", timeout_secs=20)


def test_a_command_gets_json_which_it_need_not_read_and_may_leave_something_running(tmp_path):
    file = tmp_path / "content.json"
    code = f'import sys; open("{file}", "w").write(sys.stdin.read())'
    assert tell(command(code), CONTENT) == ""
    assert json.loads(file.read_text()) == CONTENT
    assert file.read_text().count("\n") == 1  # a line, for those who collect them
    taken = tmp_path / "taken"
    content = {"event": "failed", "text": "x" * 1_000_000}
    assert tell(command(f'open("{taken}", "w").close()'), content) == ""
    assert taken.exists()
    code = 'import subprocess; subprocess.Popen(["sleep", "5"], start_new_session=True)'
    assert tell(command(code), CONTENT) == ""  # the pipe of its output stays open


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("sh -c 'echo no mail; exit 3'", "notify.command ended with exit code 3: no mail"),
        ("sh -c 'sleep 60; true'", "notify.command had not ended after 0.5 s"),  # with its child
        ("yes", "notify.command had not ended after 0.5 s"),  # it talks without end
        ("/no/such x", "notify.command: /no/such cannot be run: No such file or directory"),
        ("a\0b", "notify.command: a\0b cannot be run: it contains a NUL"),
    ],
)
def test_a_command_that_fails_hangs_or_is_not_there(words, error):
    begun = time.monotonic()
    secs = 0.5 if "not ended" in error else 20
    assert tell(NotifyConfig(command=words, timeout_secs=secs), CONTENT) == error
    assert time.monotonic() - begun < 15


def test_both_are_told_though_one_fails_and_commands_without_their_arguments(hook):
    assert "/no/such" in tell(NotifyConfig(command="/no/such", webhook=hook.url), CONTENT)
    assert hook.bodies == [CONTENT]
    code = "import sys; print(sys.argv[1], b'\\x1b[2J'.decode(), 'https://u:p@h/SECRET'); sys.exit(3)"
    words = shlex.join([sys.executable, "-c", code, "--token=SECRET"])
    assert tell(NotifyConfig(command=words), CONTENT).endswith("code 3: ... [2J https://h/...")
