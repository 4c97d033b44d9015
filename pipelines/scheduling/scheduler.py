"""Runs the due ticks of all schedules of a root, one after another.

The records of its runs are all that is stored about a tick, so a scheduler may be killed at any moment: its
run continues or is interrupted, and the record names the tick. A run whose tick is done is refused.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import new_run, unfinished_run
from pipelines.root.lock import RootBusyError
from pipelines.root.records import RunRecord
from pipelines.scheduling import notify
from pipelines.scheduling.clock import Clock, Stop
from pipelines.scheduling.due import Due, find_due, is_future, next_time, untold
from pipelines.scheduling.history import ENDED, History, Run, is_over, num_starts, unfinished_keys
from pipelines.scheduling.notify import Content, Tell, missed_event, run_events
from pipelines.scheduling.receivers import current_receivers
from pipelines.scheduling.run_process import Launch, RunProcess, last_line, output_tail, run_command
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.spans import FindArrivals, find_arrivals, span_name, tick_of_key
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import Tick, iso, time_of_key

_LOGGER = logging.getLogger(__name__)

MAX_STARTS_LEFT = 10
"""Starts, beyond the retries, of a run that never ends: it may be what kills the machine."""

_RETRY_WAIT_SECS = 60.0
_LONGEST_WAIT_SECS = 30.0
_SHORTEST_WAIT_SECS = 0.1
_POLL_SECS = 1.0
_BUSY_POLL_SECS = 5.0
_STOP_SECS = 120.0
_LOCK_WAIT_SECS = 60.0


class StoppedError(Exception):
    """The scheduler has to end; the next one resumes its run."""


@dataclass
class Scheduler:
    """Runs the schedules of a root."""

    root: Root
    clock: Clock
    stop: Stop
    on_change: Callable[[], None] = lambda: None
    start: Callable[[Launch], RunProcess] = RunProcess
    tell: Tell = notify.tell
    find: FindArrivals = find_arrivals

    def __post_init__(self) -> None:
        self.store = ScheduleStore(self.root)
        self.broken: set[str] = set()
        self._polled: dict[str, float] = {}
        self._logged: set[str] = set()
        self._told: dict[tuple[str, int], str] = {}
        self._changed = self.clock.monotonic()

    def run(self) -> None:
        """Runs due ticks until it is asked to stop. A full disk or a lost mount does not end it."""
        while not self.stop.requested:
            wait_secs = _LONGEST_WAIT_SECS
            try:
                self.run_due()
                wait_secs = self._wait_secs()
            except Exception as error:  # of the root; those of a schedule end in `_isolated`
                self._log_once(f"scheduler error, retrying in {wait_secs:.0f} s: {error}", error)
            self.clock.sleep(wait_secs)

    def run_due(self) -> list[Run]:
        """Runs all due ticks, and returns their runs.

        Runs that an earlier scheduler started come first. Times that become due during a run are left to the
        next call, because runs may take longer than the interval between them.
        """
        done: list[Run] = []
        until = self.clock.now()
        self.broken.clear()
        self.store.migrate()
        try:
            while not self.stop.requested and (run := self._run_next(until)) is not None:
                done.append(run)
        except StoppedError:
            _LOGGER.info("stopped; the next scheduler resumes the unfinished run")
        self.on_change()
        return done

    def run_tick(self, schedule: Schedule, tick: Tick, again: bool = False) -> Run:
        """Runs a tick until it is done, and returns its last run; one that is done only runs `again`."""
        fresh = False  # True if an interrupted run cannot be resumed
        retries = schedule.retries
        while True:
            self._wait_for_root(tick)
            runs = self._runs(tick)
            if again:
                retries += num_starts(runs)
            elif runs and is_over(runs, retries):
                self._tell_of_run(schedule, tick, runs[-1])
                return runs[-1]
            if num_starts(runs) >= retries + MAX_STARTS_LEFT:
                reason = f"started {num_starts(runs)} times without finishing"
                self._record_failure(tick, reason)
                continue
            again = False
            unfinished = unfinished_run(self.root)
            resume = unfinished is not None and unfinished.scheduled_by == tick.id and not fresh
            fresh = self._start_once(schedule, tick, runs, resume)
            runs = self._runs(tick)
            if runs and runs[-1].status == "failed" and not is_over(runs, retries):
                _LOGGER.warning("%s: %s; trying again", tick.id, _reason(runs[-1]))
                self._pause(_RETRY_WAIT_SECS)

    def _run_next(self, until: datetime) -> Run | None:
        """Runs one tick and returns its run; None if nothing is due."""
        history = History.read(self.root)
        schedules = self._schedules()
        for schedule in schedules:
            with self._isolated(schedule):
                runs = history.runs_by_tick(schedule.name, self.clock.now())
                for key, tick_runs in runs.items():
                    if is_over(tick_runs, schedule.retries):
                        due_time = time_of_key(key) or datetime.fromisoformat(tick_runs[-1].started)
                        self._tell_of_run(schedule, Tick(schedule.name, key, due_time), tick_runs[-1])
                unfinished = unfinished_keys(schedule, runs)
                if schedule.enabled and unfinished:
                    tick = tick_of_key(schedule, unfinished[0], self.clock.now())
                    return self._run(schedule, tick)
        waiting: list[tuple[datetime, Schedule, Tick, Due]] = []
        for schedule in schedules:
            with self._isolated(schedule):
                due = self._due(schedule, history)
                if due.tick is None or (due.tick.spans is None and due.tick.due > until):
                    continue
                self._polled.pop(schedule.name, None)  # searched again immediately
                # By the oldest late tick: a schedule whose runs take longer than its interval must not
                # always come before another schedule with the same due times.
                since = min(tick.due for tick in (due.tick, *due.late[:1]))
                waiting.append((since, schedule, due.tick, due))
        if not waiting:
            return None
        _, schedule, tick, due = min(waiting, key=lambda entry: entry[0])
        with self._isolated(schedule):
            self._tell_of_missed(schedule, due, history)
            return self._run(schedule, tick)
        return self._run_next(until)  # of the others

    @contextlib.contextmanager
    def _isolated(self, schedule: Schedule) -> Iterator[None]:
        """Keeps an error of one schedule from stopping the others; it is left out until the next look."""
        try:
            yield
        except StoppedError:
            raise
        except Exception as error:
            self.broken.add(schedule.name)
            text = f"{schedule.name}: error, retrying in {_LONGEST_WAIT_SECS:.0f} s: {error}"
            self._log_once(text, error)

    def _run(self, schedule: Schedule, tick: Tick) -> Run:
        self.on_change()
        run = self.run_tick(schedule, tick)
        self._polled.pop(schedule.name, None)
        reason = _reason(run)
        _LOGGER.info("%s: %s%s", tick.id, run.status, f" ({reason})" if reason else "")
        return run

    def _due(self, schedule: Schedule, history: History) -> Due:
        """Returns the due ticks of a schedule; stores which ones are not run, and tells of them."""
        if self._secs_to_poll(schedule) > 0:
            return Due()
        self._polled[schedule.name] = self.clock.monotonic()
        now = self.clock.now()
        due = find_due(schedule, history, now, self.find)
        if is_future(schedule.since, now) and schedule.enabled:
            self._log_once(
                f"{schedule.name}: nothing would be due until {iso(schedule.since)}, a time in the future. "
                "The clock was wrong when that was stored; it is ignored."
            )
        if due.start is not None:
            _LOGGER.warning("%s: the runs due until %s are skipped", schedule.name, iso(due.start))
            self._tell_of_missed(schedule, due, history)
            self.store.change(schedule.name, since=due.start)
        for tick in due.overtaken:
            name = span_name(tick.key)
            text = (
                f"span {name} arrived after a later span was run, and only newer spans are run; `schedule "
                f"backfill --name {schedule.name} --from {name} --to {name}` runs it"
            )
            _LOGGER.warning("%s: %s", schedule.name, text)
            self._send(schedule, missed_event(self.root, [tick], iso(now), text))
        if due.passed_spans is not None:
            if due.passed_spans:
                _LOGGER.warning("%s: %d spans are not run", schedule.name, len(due.passed_spans))
            passed = due.passed_spans.union(schedule.passed_spans or ())
            self.store.change(schedule.name, passed_spans=passed)
        return due

    def _start_once(self, schedule: Schedule, tick: Tick, runs: list[Run], resume: bool) -> bool:
        """Starts the run of a tick and waits for its end; returns True if it cannot be resumed."""
        folder = self.store.state(schedule.name)
        command = run_command(schedule, tick, self.root, resume)
        launch = Launch(command, schedule.working_dir, folder / "stdout", folder / "stderr")
        try:
            process = self.start(launch)
        # The folder or the interpreter is missing, there is no memory, or a setting has a NUL.
        except (OSError, ValueError) as error:
            self._record_failure(tick, f"its process could not be started: {error}")
            return False
        begun = "resumed" if resume else "begun"
        _LOGGER.info("%s: run %s, process %s", tick.id, begun, process.pid)
        code, is_over_time = self._await_end(schedule, tick, process)
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        now = self._runs(tick)
        if is_over_time:
            if not (now and now[-1].status in ENDED):  # else it ended all the same
                reason = f"stopped after its time limit, {schedule.timeout_secs:g} s"
                self._record_failure(tick, reason)
        elif _begun(now) == _begun(runs):  # its record does not tell how it ended
            line = last_line(launch.stdout) or {}
            is_bad_input = line.get("error") == "bad_input"
            if line.get("error") == "root_busy":
                return False
            if resume and is_bad_input:
                _LOGGER.warning("%s: it cannot be resumed: %s", tick.id, line.get("reason"))
                return True
            output = output_tail(launch.stderr) or "it printed nothing"
            reason = line.get("reason") or f"its process {ended} before its run began: {output}"
            self._record_failure(tick, reason, is_bad_input)
        elif now and now[-1].status == "interrupted" and not self.stop.requested:
            self._record_failure(tick, f"its process {ended} before its run ended")
        return False

    def _record_failure(self, tick: Tick, reason: str, is_bad_input: bool = False) -> None:
        """Records that a tick has failed: in the record of its run, or in a new record."""
        with self.root.lock.writing.held(_LOCK_WAIT_SECS):
            now = iso(self.clock.now())
            record = next(reversed(self._runs(tick)), None)
            if not isinstance(record, RunRecord) or record.status in ENDED:
                record = RunRecord(
                    **new_run(self.root, tick.id),
                    name=tick.schedule,
                    status="failed",
                    started=now,
                    config={},
                    data_fingerprint="",
                    log=str(self.store.state(tick.schedule) / "stderr"),
                    attempt=0,
                )
            failure = {"status": "failed", "reason": reason, "is_bad_input": is_bad_input}
            self.root.records.write(record.changed(**failure, finished=now))

    def _await_end(self, schedule: Schedule, tick: Tick, process: RunProcess) -> tuple[int, bool]:
        """Waits for the end of a run; returns its exit code, and True if it took too long."""
        begun = self.clock.monotonic()
        while (code := process.wait(_POLL_SECS)) is None:
            if self.stop.requested:
                _LOGGER.info("%s: stopping its run", tick.id)
                self._stop_process(process)
                raise StoppedError
            elapsed = self.clock.monotonic() - begun
            if schedule.timeout_secs is not None and elapsed > schedule.timeout_secs:
                _LOGGER.warning("%s: stopping its run, which exceeded the time limit", tick.id)
                return self._stop_process(process), True
            self._refresh()
        return code, False

    def _stop_process(self, process: RunProcess) -> int:
        process.stop()
        deadline = self.clock.monotonic() + _STOP_SECS
        while (code := process.wait(_POLL_SECS)) is None:
            if self.clock.monotonic() > deadline:
                process.kill()
        return code

    def _wait_for_root(self, tick: Tick) -> None:
        """Waits while a run holds the root: one started by hand, or one that a killed scheduler left."""
        if self.root.lock.is_held():
            _LOGGER.warning("%s: waiting for another run, which holds the root", tick.id)
        while self.root.lock.is_held():
            self._pause(_BUSY_POLL_SECS)
        if self.stop.requested:
            raise StoppedError

    def _pause(self, secs: float) -> None:
        self._refresh()
        self.clock.sleep(secs)
        if self.stop.requested:
            raise StoppedError

    def _refresh(self) -> None:
        if self.clock.monotonic() - self._changed >= _LONGEST_WAIT_SECS:
            self._changed = self.clock.monotonic()
            self.on_change()

    def _tell_of_missed(self, schedule: Schedule, due: Due, history: History) -> None:
        now = self.clock.now()
        if late := untold(schedule, due.late, history.runs_by_tick(schedule.name, now), now):
            content = missed_event(self.root, late, iso(now))
            _LOGGER.warning("%s", content["text"])
            self._send(schedule, content)

    def _tell_of_run(self, schedule: Schedule, tick: Tick, run: Run) -> None:
        """Tells of a tick that is done, and notes in its record that this was done, or why it failed."""
        if not isinstance(run, RunRecord) or run.notification != "pending":
            return
        key = run.run_id, run.attempt  # a run that failed may be resumed by hand
        if key not in self._told:
            contents = run_events(self.root, tick, run, iso(self.clock.now()))
            errors = filter(None, [self._send(schedule, content) for content in contents])
            self._told[key] = "; ".join(errors)
        with contextlib.suppress(RootBusyError), self.root.lock.writing.held():  # else next time
            record = self.root.records.read(run.run_id)
            if record is not None and record.attempt == run.attempt:  # else it was pruned or resumed
                self.root.records.write(record.changed(notification=self._told[key]))

    def _send(self, schedule: Schedule, content: Content) -> str:
        config = current_receivers(schedule, self.store.state(schedule.name))
        error = self.tell(config, content)
        if error:
            _LOGGER.error("%s: notification failed: %s (%s)", schedule.name, content["text"], error)
        return error

    def _runs(self, tick: Tick) -> list[Run]:
        history = History.read(self.root)
        return history.runs_by_tick(tick.schedule, self.clock.now()).get(tick.key, [])

    def _schedules(self) -> list[Schedule]:
        schedules, errors = self.store.read_all()
        for error in errors:
            self._log_once(error)
        return [schedule for schedule in schedules if schedule.name not in self.broken]

    def _log_once(self, text: str, error: Exception | None = None) -> None:
        if text not in self._logged:
            is_expected = error is None or isinstance(error, BadInputError | OSError)
            _LOGGER.error("%s", text, exc_info=None if is_expected else error)
        self._logged.add(text)

    def _secs_to_poll(self, schedule: Schedule) -> float:
        """Returns the seconds until new spans are searched again."""
        polled = self._polled.get(schedule.name)
        if not schedule.on_new_span or polled is None:
            return 0.0
        return polled + schedule.poll_secs - self.clock.monotonic()

    def _wait_secs(self) -> float:
        """Returns the seconds to wait. They are few, because commands may change the schedules."""
        now = self.clock.now()
        history = History.read(self.root)
        waits = [_LONGEST_WAIT_SECS]
        for schedule in self._schedules():
            if schedule.enabled and schedule.on_new_span:
                waits.append(self._secs_to_poll(schedule))
            time = next_time(schedule, history.runs_by_tick(schedule.name, now), now)
            if time is not None:
                waits.append((time - now).total_seconds())
        return max(_SHORTEST_WAIT_SECS, min(waits))


def _begun(runs: list[Run]) -> tuple[str, int] | None:
    """Returns the newest run of a tick and the number of its starts, which a new start changes."""
    newest = runs[-1] if runs else None
    return (newest.run_id, newest.attempt) if isinstance(newest, RunRecord) else None


def _reason(run: Run) -> str:
    return getattr(run, "reason", None) or ""
