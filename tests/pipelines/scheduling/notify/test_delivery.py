import contextlib
import http.server
import json
import shlex
import socket
import sys
import threading
import time

import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.scheduling.notify.delivery import deliver
from pipelines.scheduling.notify.delivery_error import DeliveryError

CONTENT = {"schema": 1, "event": "failed", "text": "trips: no"}


@pytest.fixture
def hook():
    """A receiver of webhooks: its requests, and its answers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        got, answer, headers_got = [], 204, []

        def do_POST(self):
            Handler.headers_got.append(dict(self.headers))
            body = self.rfile.read(int(self.headers["Content-Length"]))
            Handler.got.append(json.loads(body))
            if Handler.answer == "slow":
                time.sleep(1)
                return
            self.send_response(Handler.answer)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.url = f"http://127.0.0.1:{server.server_port}/secret-path"
    yield Handler
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_json(hook):
    deliver(NotifyConfig(webhook=hook.url), CONTENT)
    assert hook.got == [CONTENT]
    assert hook.headers_got[0]["Content-Type"] == "application/json"


@pytest.mark.parametrize("answer", [302, 307, 400, 500])
def test_a_webhook_that_refuses(hook, answer):
    hook.answer = answer
    with pytest.raises(DeliveryError, match=f"127.0.0.1 answered {answer}") as raised:
        deliver(NotifyConfig(webhook=hook.url), CONTENT)
    assert "secret-path" not in str(raised.value)


def test_a_webhook_that_is_slow_or_not_there(hook):
    hook.answer = "slow"
    with pytest.raises(DeliveryError, match="cannot be reached: "):
        deliver(NotifyConfig(webhook=hook.url, timeout_secs=0.2), CONTENT)
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1 cannot be reached: .*refused") as raised:
        deliver(NotifyConfig(webhook="http://127.0.0.1:1/secret-path"), CONTENT)
    assert "secret-path" not in str(raised.value)


def test_the_address_may_be_in_an_environment_variable(hook, monkeypatch):
    monkeypatch.setenv("HOOK", hook.url)
    deliver(NotifyConfig(webhook_env="HOOK"), CONTENT)
    assert hook.got == [CONTENT]
    monkeypatch.delenv("HOOK")
    with pytest.raises(DeliveryError, match="there is no address"):
        deliver(NotifyConfig(webhook_env="HOOK"), CONTENT)


def command(code):
    return NotifyConfig(command=f"{sys.executable} -c '{code}'", timeout_secs=20)


def test_a_command_gets_json(tmp_path):
    file = tmp_path / "got.json"
    code = f'import sys; open("{file}", "w").write(sys.stdin.read())'
    deliver(command(code), CONTENT)
    assert json.loads(file.read_text()) == CONTENT
    assert file.read_text().count("\n") == 1  # a line, for those who collect them


def test_a_command_that_fails_hangs_or_is_not_there():
    with pytest.raises(DeliveryError, match=r"exit code 3: no mail"):
        deliver(command('print("no mail"); raise SystemExit(3)'), CONTENT)
    slow = command('import subprocess; subprocess.run(["sleep", "60"])')
    begun = time.monotonic()
    with pytest.raises(DeliveryError, match=r"had not ended after 0\.5 s"):
        deliver(slow.model_copy(update={"timeout_secs": 0.5}), CONTENT)
    assert time.monotonic() - begun < 15
    with pytest.raises(DeliveryError, match="/no/such cannot be run: No such file"):
        deliver(NotifyConfig(command="/no/such program"), CONTENT)


def test_a_command_that_does_not_read_its_input_has_taken_the_notification(tmp_path):
    taken = tmp_path / "taken"
    deliver(command(f'open("{taken}", "w").close()'), {"text": "x" * 1_000_000})
    assert taken.exists()


def test_both_are_told_though_one_fails(hook):
    config = NotifyConfig(command="/no/such", webhook=hook.url)
    with pytest.raises(DeliveryError, match="/no/such"):
        deliver(config, CONTENT)
    assert hook.got == [CONTENT]


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


@pytest.mark.parametrize(
    "answer",
    [
        b"hello\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 abc /SECRET\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /SECRET\r\n\r\n",
        b"",
    ],
    ids=["text", "version", "status", "headers", "long header", "redirect", "nothing"],
)
def test_a_webhook_that_answers_no_http(receiver_that, answer):
    address = receiver_that(lambda connection: connection.sendall(answer))
    with pytest.raises(DeliveryError, match=r"^notify\.webhook: 127\.0\.0\.1 ") as raised:
        deliver(NotifyConfig(webhook=address), CONTENT)
    assert "SECRET" not in str(raised.value)


def test_a_webhook_whose_answer_never_ends_is_left_after_the_time_limit(receiver_that):
    ended = threading.Event()

    def answer(connection):
        try:
            while True:  # each of them is in time
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        except OSError:
            ended.set()

    with pytest.raises(DeliveryError, match=r"had not answered after 0\.3 s"):
        deliver(NotifyConfig(webhook=receiver_that(answer), timeout_secs=0.3), CONTENT)
    assert ended.wait(20)  # the connection is closed, not left behind


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1/SEC RET",
        "http://127.0.0.1/SECRET\x01",
        "http://127.0.0.1/SECRET\n",
        "http://127.0.0.1/SECRETä",
        "http://127.0.0.1:SECRET/",
        "http://user:SECRET/x@127.0.0.1/",
        "http://[::1/SECRET",
        f"http://{'a' * 70}.example/SECRET",
        "http://a..b/SECRET",
        "ftp://127.0.0.1/SECRET",
        "SECRET",
        "",
    ],
)
def test_an_address_that_cannot_be_used(address, monkeypatch):
    monkeypatch.setenv("HOOK", address) if address else monkeypatch.delenv("HOOK", raising=False)
    with pytest.raises(DeliveryError, match=r"^notify\.webhook: ") as raised:
        deliver(NotifyConfig(webhook_env="HOOK"), CONTENT)
    assert "SEC" not in str(raised.value)


def test_a_user_in_the_address_becomes_basic_authentication(hook):
    deliver(NotifyConfig(webhook=hook.url.replace("//", "//me:a%40b@")), CONTENT)
    # base64 of "me:a@b"
    assert hook.headers_got[0]["Authorization"] == "Basic bWU6YUBi"
    hook.answer = 401
    with pytest.raises(DeliveryError) as raised:
        deliver(NotifyConfig(webhook=hook.url.replace("//", "//me:SECRET@")), CONTENT)
    assert str(raised.value) == "notify.webhook: 127.0.0.1 answered 401"


def test_a_command_that_leaves_something_running_has_ended():
    code = 'import subprocess; subprocess.Popen(["sleep", "5"], start_new_session=True)'
    deliver(command(code), CONTENT)  # the pipe of its output stays open


def test_a_command_that_talks_without_end_is_killed():
    config = NotifyConfig(command="yes", timeout_secs=0.5)
    with pytest.raises(DeliveryError, match="yes had not ended"):
        deliver(config, CONTENT)


def test_what_a_command_says_is_told_without_its_arguments():
    code = (
        "import sys; print(sys.argv[1], b'\\x1b[2J'.decode(), 'https://u:p@h/SECRET'); sys.exit(3)"
    )
    words = shlex.join([sys.executable, "-c", code, "--token=SECRET"])
    with pytest.raises(DeliveryError) as raised:
        deliver(NotifyConfig(command=words), CONTENT)
    assert str(raised.value).endswith("exit code 3: ... [2J https://h/...")


def test_a_command_with_a_character_that_none_has():
    with pytest.raises(DeliveryError, match="cannot be run: it holds a character"):
        deliver(NotifyConfig(command="a\0b"), CONTENT)


def test_an_error_says_who_has_taken_it():
    with pytest.raises(DeliveryError) as raised:
        deliver(NotifyConfig(command="true", webhook="http://127.0.0.1:1/x"), CONTENT)
    assert raised.value.taken == ("command",)
