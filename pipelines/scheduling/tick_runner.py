"""Takes a tick to its outcome: claim, run, record; continues from wherever a scheduler was killed.

The order of writes keeps a tick from being lost or run twice:
1. the tick is claimed, in a file;
2. the number of the start is written, then the process is started. It holds a lock as long as it lives, and
   the record of its run has the id of the tick;
3. the process ends, after writing its end to its output and its record;
4. notifications are written, then the outcome.

Killed before 2, the tick is run. Killed in 3, the run is awaited if it is alive, read if it has ended, and
resumed if it was killed, too. Killed in 4, the same notifications are written again, under the same names.
"""

import contextlib
import logging
import os
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from pipelines.root import Root
from pipelines.scheduling.clock import Clock, Stop
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.locks import take_run_lock
from pipelines.scheduling.outcome import Outcome, can_resume, outcome_of
from pipelines.scheduling.run_process import (
    Command,
    Launch,
    Process,
    end_of,
    run_command,
    start_process,
)
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.ticks import Tick, iso

_LOGGER = logging.getLogger(__name__)

MAX_STARTS_LEFT = 10
"""Starts, beyond the retries, of a run that never ends: it may be the one that kills the machine."""

RETRY_WAIT_SECS = 60.0
_POLL_SECS = 1.0
_BUSY_POLL_SECS = 5.0
_STOP_SECS = 120.0


class StoppedError(Exception):
    """The scheduler has to end; the tick stays claimed, and the next scheduler resumes its run."""


class Listener(Protocol):
    """Listener to the events of running a tick."""

    def waiting(self) -> None:
        """Called about every second while a run is active or awaited."""
        ...

    def ended(self, schedule: Schedule, ledger: Ledger, tick: Tick) -> None:
        """Called with the outcome before it is stored; twice if the process is killed in between."""
        ...


class TickRunner:
    """Runs ticks, one after another.

    Args:
      root: Root of the runs.
      clock: Clock for time limits and waiting.
      stop: Request to end the scheduler.
      listener: Listener to waiting and to outcomes.
      command: Function that returns the command of a run.
      start: Function that starts it.
    """

    def __init__(
        self,
        root: Root,
        clock: Clock,
        stop: Stop,
        listener: Listener,
        command: Command = run_command,
        start: Callable[[Launch], Process] = start_process,
    ):
        self._root = root
        self._folder = root.schedules
        self._clock = clock
        self._stop = stop
        self._listener = listener
        self._command = command
        self._start = start

    def run(self, schedule: Schedule, ledger: Ledger, tick: Tick) -> Tick:
        """Runs a tick, or continues one that was claimed, and returns it with its outcome.

        Raises:
          StoppedError: The scheduler has to end.
        """
        claimed = ledger.read(tick.key)
        if claimed is None:
            ledger.write(tick)
            return self._run(schedule, ledger, tick)
        if claimed.state != "claimed":
            return claimed
        return self._run(schedule, ledger, self._await_former(schedule, ledger, claimed))

    def _run(self, schedule: Schedule, ledger: Ledger, tick: Tick) -> Tick:
        """Starts the run of a tick until it has an outcome. None of its processes is alive."""
        fresh = False  # True if it must start from the beginning
        outcome = self._outcome(ledger, tick) if tick.starts else None
        while True:
            if outcome is not None:
                step = _next_step(schedule, tick, outcome)
                if step == "done":
                    return self._end(schedule, ledger, tick, outcome)
                if step == "retry":
                    tick = tick.changed(failures=tick.failures + 1, run_id=outcome.run_id)
                    ledger.write(tick)
                    _LOGGER.warning("%s: %s; it is tried again", tick.id, outcome.reason)
                    self._pause(RETRY_WAIT_SECS)
                fresh = step == "anew"
            lock = self._wait_for_root(tick)
            tick, outcome = self._start_once(schedule, ledger, tick, fresh, lock)

    def _outcome(self, ledger: Ledger, tick: Tick) -> Outcome:
        return outcome_of(self._root, tick, ledger.output_file(tick, "out"))

    def _end(self, schedule: Schedule, ledger: Ledger, tick: Tick, outcome: Outcome) -> Tick:
        reason = outcome.reason
        if tick.is_over_time and outcome.ending == "killed":
            reason = f"stopped after the time limit of {schedule.timeout_secs:g} s"
        elif outcome.ending == "killed":
            reason = f"started {tick.starts} times without coming to an end; {reason}"
        elif outcome.status == "failed":
            reason = reason or end_of(ledger.output_file(tick, "err")) or "it has printed nothing"
        done = tick.changed(
            state="done",
            pid=None,
            finished=iso(self._clock.now()),
            status=outcome.status,
            run_id=outcome.run_id or tick.run_id,
            reason=reason,
            version=outcome.version,
            drifted=outcome.drifted,
        )
        _LOGGER.info("%s: %s%s", done.id, done.status, f" ({reason})" if reason else "")
        self._listener.ended(schedule, ledger, done)
        ledger.write(done)
        return done

    def _start_once(
        self, schedule: Schedule, ledger: Ledger, tick: Tick, fresh: bool, lock: int
    ) -> tuple[Tick, Outcome]:
        """Starts the run of a tick, waits for its end, and returns the outcome."""
        try:
            resume = not fresh and can_resume(self._root, tick)
            now = iso(self._clock.now())
            tick = tick.changed(
                starts=tick.starts + 1,
                resumed=resume,
                is_over_time=False,
                pid=None,
                started=tick.started or now,
                newest_start=now,
            )
            ledger.write(tick)
            process = self._start(
                Launch(
                    tuple(self._command(schedule, tick, self._root, resume)),
                    schedule.working_dir,
                    ledger.output_file(tick, "out"),
                    ledger.output_file(tick, "err"),
                    lock,
                )
            )
        except OSError as error:  # the folder or the interpreter is gone; or there is no memory
            return tick, Outcome("failed", reason=f"its process could not be started: {error}")
        finally:
            os.close(lock)  # the process has its own
        _LOGGER.info(
            "%s: run %s, process %s", tick.id, "resumed" if resume else "begun", process.pid
        )
        tick = tick.changed(pid=process.pid)
        ledger.write(tick)
        tick, code = self._wait_for(schedule, ledger, tick, process)
        outcome = self._outcome(ledger, tick)
        if outcome.ending == "killed" and not tick.is_over_time:
            reason = f"its process was killed by signal {-code}"
            if code >= 0:
                output = end_of(ledger.output_file(tick, "err")) or "it has printed nothing"
                reason = (
                    f"its process ended with exit code {code} before the run had ended: {output}"
                )
            return tick, Outcome("failed", run_id=outcome.run_id, reason=reason)
        return tick, outcome

    def _wait_for(
        self, schedule: Schedule, ledger: Ledger, tick: Tick, process: Process
    ) -> tuple[Tick, int]:
        begun = self._clock.monotonic()
        while (code := process.wait(_POLL_SECS)) is None:
            if self._stop.requested:
                _LOGGER.info("%s: its run is stopped, and resumed by the next scheduler", tick.id)
                self._stop_process(process)
                raise StoppedError
            elapsed = self._clock.monotonic() - begun
            if schedule.timeout_secs is not None and elapsed > schedule.timeout_secs:
                tick = tick.changed(is_over_time=True)
                ledger.write(tick)
                _LOGGER.warning("%s: over its time limit, it is stopped", tick.id)
                return tick, self._stop_process(process)
            self._listener.waiting()
        return tick, code

    def _stop_process(self, process: Process) -> int:
        process.stop()
        deadline = self._clock.monotonic() + _STOP_SECS
        while (code := process.wait(_POLL_SECS)) is None:
            if self._clock.monotonic() > deadline:
                process.kill()
        return code

    def _await_former(self, schedule: Schedule, ledger: Ledger, tick: Tick) -> Tick:
        """Waits for the run that a killed scheduler has left behind, if it is alive."""
        logged, sent = False, 0
        while (lock := take_run_lock(self._folder)) is None:
            if not logged:
                _LOGGER.warning(
                    "%s: its run is alive (process %s) and waited for", tick.id, tick.pid
                )
                logged = True
            over = _secs_over_time(schedule, tick, self._clock.now())
            if over > 0:
                tick = tick.changed(is_over_time=True)
                ledger.write(tick)
                number = signal.SIGTERM if over < _STOP_SECS else signal.SIGKILL
                if number != sent:  # a second SIGTERM would end it before it has saved
                    _signal_left_behind(tick, number)
                sent = number
            self._pause(_BUSY_POLL_SECS)
        os.close(lock)
        return tick

    def _wait_for_root(self, tick: Tick) -> int:
        """Waits while another run holds the root, and returns the lock for this one."""
        logged = False
        while True:
            if self._stop.requested:
                raise StoppedError
            if not self._root.lock.is_held():
                lock = take_run_lock(self._folder)
                if lock is not None:
                    return lock
            if not logged:
                _LOGGER.warning("%s: another run has the root and is waited for", tick.id)
                logged = True
            self._pause(_BUSY_POLL_SECS)

    def _pause(self, secs: float) -> None:
        self._listener.waiting()
        self._clock.sleep(secs)
        if self._stop.requested:
            raise StoppedError


def _next_step(
    schedule: Schedule, tick: Tick, outcome: Outcome
) -> Literal["done", "again", "retry", "anew"]:
    """Returns the next step for a tick after one start of its run."""
    if outcome.ending == "bad_input":
        # The interrupted run no longer fits: start from the beginning.
        return "anew" if tick.resumed else "done"
    if outcome.ending == "busy":
        return "again"
    if outcome.ending == "failed":
        return "retry" if tick.failures < schedule.retries else "done"
    if outcome.ending == "killed" and not tick.is_over_time:
        return "again" if tick.starts < schedule.retries + MAX_STARTS_LEFT else "done"
    return "done"


def _secs_over_time(schedule: Schedule, tick: Tick, now: datetime) -> float:
    """Returns the seconds that the newest start of a run has exceeded its time limit; 0 if it has not."""
    if schedule.timeout_secs is None or tick.newest_start is None:
        return 0.0
    elapsed = (now - datetime.fromisoformat(tick.newest_start)).total_seconds()
    return max(0.0, elapsed - schedule.timeout_secs)


def _signal_left_behind(tick: Tick, number: int) -> None:
    """Sends a signal to the process of a tick's run, whose scheduler was killed.

    Its id may belong to another process by now; the command line tells them apart.
    """
    if tick.pid is None:
        return
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{tick.pid}/cmdline").read_bytes().split(b"\0")
        if tick.id.encode() in words:
            os.kill(tick.pid, number)
