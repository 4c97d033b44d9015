"""Tells the user's command or webhook of an event."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from pipelines.config.notify import NotifyConfig

_AGENT = "estimator-pipelines"
_LAST_WORDS = 300


class DeliveryError(RuntimeError):
    """The receiver has not taken a notification."""


Deliver = Callable[[NotifyConfig, Mapping[str, Any]], None]
"""Sends the JSON of a notification; raises DeliveryError."""


def deliver(config: NotifyConfig, content: Mapping[str, Any]) -> None:
    """Sends a notification to all receivers.

    Args:
      config: Who they are.
      content: JSON.

    Raises:
      DeliveryError: One of them has not taken it; the message holds no address.
    """
    body = json.dumps(content, allow_nan=False).encode()
    problems = []
    for send, receiver in ((_run, config.command), (_post, _webhook(config))):
        if receiver is not None:
            try:
                send(receiver, body, config.timeout_secs)
            except DeliveryError as error:
                problems.append(str(error))
    if problems:
        raise DeliveryError("; ".join(problems))


def _webhook(config: NotifyConfig) -> str | None:
    if config.webhook_env is None:
        return config.webhook
    # An address that is not there is one that cannot be reached: it is said, and tried again.
    return os.environ.get(config.webhook_env, f"${config.webhook_env}")


def _run(command: str, body: bytes, timeout_secs: float) -> None:
    words = shlex.split(command)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise DeliveryError(
            f"notify.command: {words[0]} cannot be run: {error.strerror}"
        ) from error
    with process:
        try:
            output, _ = process.communicate(body + b"\n", timeout=timeout_secs)  # one line
        except subprocess.TimeoutExpired as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it has started
            raise DeliveryError(
                f"notify.command: {words[0]} had not ended after {timeout_secs:g} s"
            ) from error
    if process.returncode:
        said = output.decode(errors="replace").strip()[-_LAST_WORDS:]
        raise DeliveryError(
            f"notify.command: {words[0]} ended with exit code {process.returncode}: {said}"
        )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A POST that is redirected would become a GET without its content."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _post(address: str, body: bytes, timeout_secs: float) -> None:
    host = urlsplit(address).hostname
    if host is None:
        raise DeliveryError("notify.webhook: there is no address, or it has no host")
    headers = {"Content-Type": "application/json", "User-Agent": _AGENT}
    request = urllib.request.Request(address, body, headers, method="POST")
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=timeout_secs):
            return
    except urllib.error.HTTPError as error:
        error.close()
        raise DeliveryError(f"notify.webhook: {host} answered {error.code}") from error
    except (OSError, ValueError) as error:  # URLError is one of them, and so are timeouts
        reason = getattr(error, "reason", error)
        raise DeliveryError(f"notify.webhook: {host} cannot be reached: {reason}") from error
