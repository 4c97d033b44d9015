"""Handles SIGINT and SIGTERM, so that no work of a run is lost, and it always prints its last line.

During a run, a signal records its request in `components.interruption`, which each component and the push
check, and raises an exception. If that is dropped on its way, it is raised again.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from components.interruption import RunInterruptedError, interruption
from pipelines.terminal.ending import remove_temporary_files

EXIT_INTERRUPTED = 130

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_EVERY_SECS = 0.5
_MAX_HELD_SECS = 20.0  # for a training to finish its step and to save
_SAME_SECS = 0.3  # `timeout`, and programs that forward signals to their children, send one twice


def line_without_run(status: str) -> dict[str, Any]:
    """Returns the last line of a run that has no record yet."""
    return {"run_id": None, "status": status, "version": None, "metrics": {}, "report": None}


def end_at_signals(has_last_line: bool) -> None:
    """Makes a signal end the process, as long as nothing needs to be cleaned up."""
    text = json.dumps(line_without_run("interrupted")) + "\n" if has_last_line else ""
    stdout = os.dup(1)  # the descriptor may point to a log when the signal arrives

    def end(signum: int, frame: FrameType | None) -> NoReturn:
        os.write(stdout, text.encode())
        os._exit(EXIT_INTERRUPTED)

    _handle(end)


class _Interrupter:
    """Raises `RunInterruptedError` in the main thread at a signal, and again if the exception is dropped."""

    def __init__(self, at_once: Callable[[], None] | None) -> None:
        self.is_over = False
        self._at_once = at_once
        self._has_come = threading.Event()
        self._first = self._newest = 0.0
        self._is_own = False  # True if the next signal is sent by this class

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """Handles a signal; a second one ends the process."""
        now = time.monotonic()
        if self._is_own:
            self._is_own = False
        elif interruption.reason is None:
            self._first = now
        elif now - self._first < _SAME_SECS:
            return
        else:
            remove_temporary_files()
            os._exit(EXIT_INTERRUPTED)
        self._newest = now
        interruption.reason = interruption.reason or signal.Signals(signum).name
        self._has_come.set()
        if not self.is_over and not self._is_held():
            interruption.check()

    def watch(self) -> None:
        """Sends a signal again when its exception was dropped, or was held back for too long."""
        main_thread = threading.main_thread().ident or 0
        while not self.is_over:
            if self._at_once is None:
                time.sleep(_LOOK_EVERY_SECS)
            elif self._has_come.wait(_LOOK_EVERY_SECS):
                threading.Thread(target=self._at_once, daemon=True).start()
                self._at_once = None
            if self._is_lost(main_thread):
                self._is_own = True
                signal.pthread_kill(main_thread, signal.SIGTERM)

    def _is_held(self) -> bool:
        return interruption.is_held and time.monotonic() - self._first < _MAX_HELD_SECS

    def _is_lost(self, main_thread: int) -> bool:
        return (
            interruption.reason is not None
            and time.monotonic() - self._newest > _LOOK_EVERY_SECS / 2
            and not (self.is_over or self._is_own or self._is_held() or _is_ending(main_thread))
        )


def _is_ending(thread: int) -> bool:
    """Returns whether a thread is ending: it handles the exception, or one caused by it."""
    handled: Any = sys._current_exceptions().get(thread)  # noqa: SLF001  # documented all the same
    error = handled[1] if isinstance(handled, tuple) else handled  # a tuple before Python 3.12
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, RunInterruptedError):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


_interrupters: list[_Interrupter] = []


def raise_at_signals(at_once: Callable[[], None] | None = None) -> None:
    """Makes a signal raise `RunInterruptedError` in the main thread, and a second one end the process."""
    interrupter = _Interrupter(at_once)
    _interrupters.append(interrupter)
    # In advance: starting a thread in the handler could wait for a lock of the interrupted code.
    threading.Thread(target=interrupter.watch, name="signals", daemon=True).start()
    _handle(interrupter.handle)


def ignore_further_signals() -> None:
    """Lets the record of a run's end be written without interruption; a second signal ends the process."""
    for interrupter in _interrupters:
        interrupter.is_over = True
    _interrupters.clear()


def ignore_signals() -> None:
    """Makes signals do nothing: a run is over, and about to report its end."""
    ignore_further_signals()
    _handle(signal.SIG_IGN)


def signal_has_come() -> bool:
    """Returns whether a signal has asked this process to end, which then explains any error."""
    return interruption.reason is not None


def _handle(handler: Callable[[int, FrameType | None], Any] | signal.Handlers) -> None:
    for number in _SIGNALS:
        signal.signal(number, handler)
