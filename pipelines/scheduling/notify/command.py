"""Runs the user's command with a notification as its input."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
from typing import IO

from pipelines.scheduling.notify.delivery_error import DeliveryError

_LAST_WORDS = 300
_SECS_FOR_LAST_WORDS = 1.0
_KEPT_BYTES = 65_536


def run(command: str, body: bytes, timeout_secs: float) -> None:
    """Runs a command and waits for its end, but not for processes that it leaves running.

    Args:
      command: Program and its arguments.
      body: Standard input of the program.
      timeout_secs: Time after which it is killed with its child processes.

    Raises:
      DeliveryError: It failed. The message holds none of its arguments.
    """
    words = shlex.split(command)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it holds a character that no command has"
        raise DeliveryError(
            f"notify.command: {_printable(words[0])} cannot be run: {reason}"
        ) from error
    output = _Output(process.stdout)
    threading.Thread(target=_write, args=(process.stdin, body), daemon=True).start()
    try:
        process.wait(timeout_secs)
    except subprocess.TimeoutExpired as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its child processes
        process.wait()
        raise DeliveryError(
            f"notify.command: {words[0]} had not ended after {timeout_secs:g} s"
        ) from error
    if process.returncode:
        text = _without_secrets(output.end(), words[1:])
        raise DeliveryError(
            f"notify.command: {words[0]} ended with exit code {process.returncode}: {text}"
        )


class _Output:
    """The end of a process's output, which may be endless, or held open by a child process."""

    def __init__(self, stream: IO[bytes] | None):
        self._stream = stream
        self._end = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def end(self) -> str:
        """Returns the last output on one line, of a process that has ended."""
        self._thread.join(_SECS_FOR_LAST_WORDS)
        return _printable(self._end.decode(errors="replace"))

    def _read(self) -> None:
        if self._stream is not None:
            with self._stream as stream:
                while chunk := os.read(stream.fileno(), _KEPT_BYTES):
                    self._end = (self._end + chunk)[-_KEPT_BYTES:]


def _write(stream: IO[bytes] | None, body: bytes) -> None:
    with contextlib.suppress(OSError):  # the command need not read all
        if stream is not None:
            with stream:
                stream.write(body + b"\n")  # one line


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _without_secrets(text: str, arguments: list[str]) -> str:
    """Returns a command's output without its arguments, and without parts of addresses but the host."""
    for argument in sorted(arguments, key=len, reverse=True):
        for secret in (argument, argument.partition("=")[2]):
            if len(secret) > 3:
                text = text.replace(secret, "...")
    return re.sub(r"(https?://)(?:[^\s/@]*@)?([^\s/?#'\"]*)[^\s'\"]*", r"\1\2/...", text)[
        -_LAST_WORDS:
    ]
