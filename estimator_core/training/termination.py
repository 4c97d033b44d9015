"""Orderly end of a training on SIGTERM: it finishes the step, and the chief saves a checkpoint."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

from estimator_core import tf1
from estimator_core.logs import logger

SIGTERM_EXIT_CODE = 128 + int(signal.SIGTERM)
"""Exit code of a task of a cluster ended by SIGTERM, 143: the shell's code for that signal."""

_POLL_SECS = 0.5
_RETRY_SECS = 0.05


class Termination(NamedTuple):
    """The hooks and the exit function that end a training on SIGTERM.

    `exit_if_asked`: function to call after the training; raises SystemExit if they stopped it.
    """

    hooks: list[Any]
    exit_if_asked: Callable[[], None]


@contextlib.contextmanager
def ends_on_sigterm() -> Iterator[Termination]:
    """Yields the hooks that end a training on SIGTERM; raises SystemExit at the end if they did.

    There are no hooks if the program handles SIGTERM itself, and continues to do so, or in a thread other
    than the main thread, which can't handle signals.
    """
    is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if threading.current_thread() is not threading.main_thread() or not is_default:
        yield Termination([], lambda: None)
        return
    hook = _EndOnSigterm()
    with _sigterm_handler(hook.handle):
        yield Termination([hook], hook.exit_if_asked)
        hook.exit_if_asked()


def serve_until_sigterm(
    is_needed: Callable[[], bool], max_wait_secs: float = 25.0, sleep: Callable[[float], None] = time.sleep
) -> NoReturn:
    """Serves until SIGTERM, and then as long as tasks need it, so that the chief can save.

    A second SIGTERM ends the process immediately.

    `max_wait_secs`: maximum wait for them after SIGTERM. Kubernetes kills a process after 30 seconds.
    `sleep`: function that waits for a number of seconds.
    """
    asked = threading.Event()
    if threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    ):
        signal.signal(signal.SIGTERM, lambda number, frame: asked.set())
    # Server.join() would block Ctrl-C, and an endless wait would block a signal that another thread receives.
    while not asked.wait(_POLL_SECS):
        pass
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end = time.monotonic() + max_wait_secs
    if is_needed():
        logger.warning(
            "SIGTERM: this parameter server stops when the training tasks have ended, or after %g s.",
            max_wait_secs,
        )
    while is_needed() and time.monotonic() < end:
        sleep(_POLL_SECS)
    raise SystemExit(SIGTERM_EXIT_CODE)


@contextlib.contextmanager
def exits_on_sigterm() -> Iterator[None]:
    """Makes SIGTERM leave the context by SystemExit, as Ctrl-C does by KeyboardInterrupt.

    A program that handles SIGTERM itself continues to do so.
    """
    is_default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if threading.current_thread() is not threading.main_thread() or not is_default:
        yield
        return

    was_asked = False

    def handle() -> None:
        nonlocal was_asked
        was_asked = True
        raise SystemExit(SIGTERM_EXIT_CODE)

    with _sigterm_handler(handle):
        yield
        if was_asked:
            raise SystemExit(SIGTERM_EXIT_CODE)


@contextlib.contextmanager
def _sigterm_handler(handle: Callable[[], None]) -> Iterator[None]:
    """Installs a handler of SIGTERM, which may raise SystemExit, within a context.

    Python calls it between any two instructions, also within a destructor or a callback of the garbage
    collection (JAX has one), and drops the exception there; the handler is then called again.
    """
    main_thread = threading.get_ident()
    raised: list[SystemExit] = []
    timers: list[threading.Timer] = []
    report = sys.unraisablehook

    def on_signal(number: int, frame: Any) -> None:
        del number, frame
        try:
            handle()
        except SystemExit as error:
            raised.append(error)
            raise

    def on_dropped(unraisable: Any) -> None:
        if unraisable.exc_value not in raised:
            report(unraisable)
            return
        timer = threading.Timer(_RETRY_SECS, signal.pthread_kill, [main_thread, signal.SIGTERM])
        timer.daemon = True
        timers.append(timer)
        timer.start()

    signal.signal(signal.SIGTERM, on_signal)
    sys.unraisablehook = on_dropped
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        if sys.unraisablehook is on_dropped:
            sys.unraisablehook = report
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _EndOnSigterm(tf1.train.SessionRunHook):
    """Ends the training after the step in which SIGTERM arrives. All hooks end, and save, as usual.

    Without a session there is nothing to save, and it ends the process immediately.
    """

    def __init__(self) -> None:
        self._has_session = False
        self._was_asked = False

    def handle(self) -> None:
        self._was_asked = True
        if not self._has_session:
            raise SystemExit(SIGTERM_EXIT_CODE)
        logger.warning("SIGTERM: training ends after this step.")

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Records that there are variables to save."""
        del session, coord
        self._has_session = True

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if self._was_asked:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Records that there will be no more steps."""
        del session
        self._has_session = False

    def exit_if_asked(self) -> None:
        """Ends the process if SIGTERM came."""
        if self._was_asked:
            raise SystemExit(SIGTERM_EXIT_CODE)
