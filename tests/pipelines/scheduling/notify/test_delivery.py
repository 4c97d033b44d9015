import contextlib
import http.server
import json
import sys
import threading
import time

import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.scheduling.notify.delivery import DeliveryError, deliver

CONTENT = {"schema": 1, "event": "failed", "text": "trips: no"}


@pytest.fixture
def hook():
    """A receiver of webhooks: what it got, and what it answers."""

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


def test_a_command_that_does_not_read_its_input():
    with contextlib.suppress(DeliveryError):
        deliver(command("pass"), {"text": "x" * 1_000_000})


def test_both_are_told_though_one_fails(hook):
    config = NotifyConfig(command="/no/such", webhook=hook.url)
    with pytest.raises(DeliveryError, match="/no/such"):
        deliver(config, CONTENT)
    assert hook.got == [CONTENT]
