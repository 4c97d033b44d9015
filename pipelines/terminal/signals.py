"""What SIGINT and SIGTERM do: nothing is lost of a run, and it always has its last line."""

import json
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

EXIT_INTERRUPTED = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class RunInterruptedError(KeyboardInterrupt):
    """A signal has come; a class of its own, as the user's code may raise KeyboardInterrupt, too."""


def line_without_run(status: str) -> dict[str, Any]:
    """Returns the last line of a run that has no record yet."""
    return {"run_id": None, "status": status, "version": None, "metrics": {}, "report": None}


def end_at_signals(has_last_line: bool) -> None:
    """Makes a signal end the process, while there is nothing yet to put in order.

    Args:
      has_last_line: Whether the command ends in a line of JSON.
    """
    text = json.dumps(line_without_run("interrupted")) + "\n" if has_last_line else ""
    stdout = os.dup(1)  # the descriptor may point to a log when the signal comes

    def end(signum: int, frame: FrameType | None) -> NoReturn:
        os.write(stdout, text.encode())
        os._exit(EXIT_INTERRUPTED)

    _handle(end)


def raise_at_signals() -> None:
    """Makes a signal raise `RunInterruptedError` in the main thread."""

    def interrupt(signum: int, frame: FrameType | None) -> NoReturn:
        raise RunInterruptedError(signal.Signals(signum).name)

    _handle(interrupt)


def ignore_signals() -> None:
    """Makes signals do nothing: a run is over, and about to say so."""
    _handle(signal.SIG_IGN)


def came_from_signal(error: BaseException | None) -> bool:
    """Returns whether a signal has led to an error, whatever was raised in its place."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, RunInterruptedError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _handle(handler: Callable[[int, FrameType | None], Any] | signal.Handlers) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)
