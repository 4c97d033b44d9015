"""Runs the due ticks of all schedules of a root, one after another."""

import contextlib
import logging
from collections.abc import Callable
from datetime import datetime

from pipelines.config.notify import NotifyConfig
from pipelines.config.tfx_pipeline import load_any_config
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.scheduling.clock import Clock, Stop
from pipelines.scheduling.due import Due, find_due, next_time
from pipelines.scheduling.known_spans import KnownSpans
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.memory import read_memory, remember
from pipelines.scheduling.notify.delivery import Deliver, deliver
from pipelines.scheduling.notify.notification import of_missed, of_outcome, of_overtaken
from pipelines.scheduling.notify.outbox import Outbox
from pipelines.scheduling.run_process import Command, Launch, Process, run_command, start_process
from pipelines.scheduling.schedule import Schedule
from pipelines.scheduling.span_arrival import PREFIX, FindArrivals, find_arrivals, note_old_spans
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.tick_runner import StoppedError, TickRunner
from pipelines.scheduling.ticks import Tick, iso

_LOGGER = logging.getLogger(__name__)

_LONGEST_WAIT_SECS = 30.0
_SHORTEST_WAIT_SECS = 0.1
_WATCH_SECS = 10.0


class Scheduler:
    """Runs the schedules of a root.

    Args:
      root: Root of the runs.
      clock: Clock that determines due times.
      stop: Request to stop.
      on_change: Function called after each change, for example to write metrics.
      command: Function that returns the command of a run.
      start: Function that starts it.
      deliver: Function that sends a notification.
      find: Function that finds the spans of a schedule's data.
    """

    def __init__(
        self,
        root: Root,
        clock: Clock,
        stop: Stop,
        on_change: Callable[[], None] = lambda: None,
        command: Command = run_command,
        start: Callable[[Launch], Process] = start_process,
        deliver: Deliver = deliver,
        find: FindArrivals = find_arrivals,
    ):
        self.root = root
        self.store = ScheduleStore(root)
        self.outbox = Outbox(self.store.folder / "outbox", clock, deliver)
        self._clock = clock
        self._stop = stop
        self._on_change = on_change
        self._find = find
        self._runner = TickRunner(root, clock, stop, self, command, start)
        self._watched = clock.monotonic()
        self._polled: dict[str, float] = {}
        self._said: set[str] = set()

    def run(self) -> None:
        """Runs due ticks until it is asked to stop. A full disk or a lost mount does not end it."""
        while not self._stop.requested:
            wait_secs = _LONGEST_WAIT_SECS
            try:
                self.run_due()
                wait_secs = self._wait_secs()
            except (BadInputError, OSError) as error:
                _LOGGER.error("it is tried again in %.0f s: %s", wait_secs, error)
            self._clock.sleep(wait_secs)

    def run_due(self) -> list[Tick]:
        """Runs all ticks that are due now, and returns them with their outcomes.

        Runs that an earlier scheduler has started come first. Ticks that become due meanwhile are included.
        """
        done: list[Tick] = []
        self.store.hide_receivers()
        try:
            while not self._stop.requested and (tick := self._run_next()) is not None:
                done.append(tick)
        except StoppedError:
            _LOGGER.info("stopped; the next scheduler resumes the unfinished run")
        self.send()
        return done

    def waiting(self) -> None:
        """Sends notifications and looks for late ticks while a run is in progress; called regularly."""
        if self._clock.monotonic() - self._watched >= _WATCH_SECS:
            self._watched = self._clock.monotonic()
            for schedule in self._schedules():
                self._due(schedule)
            self.send()

    def ended(self, schedule: Schedule, ledger: Ledger, tick: Tick) -> None:
        """Stores the notifications about a tick that has ended."""
        output = ledger.output_file(tick, "err")
        config = self._notify_config(schedule)
        for notification in of_outcome(self.root, tick, iso(self._clock.now()), output):
            self.outbox.put(notification, config)

    def send(self) -> None:
        """Sends the notifications that are due; failed ones are kept for later."""

        def config_of(name: str) -> NotifyConfig | None:
            if name not in self.store.names():
                return None
            return self._notify_config(self.store.read(name))

        self.outbox.send_due(config_of)
        self._on_change()

    def _run_next(self) -> Tick | None:
        """Runs one tick and returns it; None if nothing is due."""
        schedules = self._schedules()
        for schedule in schedules:
            ledger = self.store.ledger(schedule.name)
            if schedule.enabled and (unfinished := ledger.unfinished()) is not None:
                return self._run_tick(schedule, ledger, unfinished)
        first: tuple[Schedule, Tick] | None = None
        for schedule in schedules:
            due = self._due(schedule)
            self._skip(schedule, due)
            if due.ticks:  # searched again at once: another schedule may come first now
                self._polled.pop(schedule.name, None)
            if due.ticks and (first is None or due.ticks[0].due < first[1].due):
                first = (schedule, due.ticks[0])
        if first is None:
            return None
        return self._run_tick(first[0], self.store.ledger(first[0].name), first[1])

    def _run_tick(self, schedule: Schedule, ledger: Ledger, tick: Tick) -> Tick:
        self._on_change()
        done = self._runner.run(schedule, ledger, tick)
        self._polled.pop(schedule.name, None)
        self._fold(ledger)
        self.send()
        return done

    def _skip(self, schedule: Schedule, due: Due) -> None:
        """Records the ticks that are not run, and stores notifications about overtaken spans."""
        if not due.skipped:
            return
        ledger = self.store.ledger(schedule.name)
        for tick in due.overtaken:  # the notification first: a crash in between cannot suppress it
            _LOGGER.warning("%s: %s", schedule.name, tick.reason)
            self.outbox.put(
                of_overtaken(self.root, tick, iso(self._clock.now())),
                self._notify_config(schedule),
            )
        if num_others := sum(tick.count for tick in due.skipped) - len(due.overtaken):
            _LOGGER.warning("%s: %d ticks are skipped", schedule.name, num_others)
        for tick in due.skipped:
            ledger.write(tick)
        self._fold(ledger)

    @staticmethod
    def _fold(ledger: Ledger) -> None:
        """Removes old ticks; their spans stay known."""
        if spans := ledger.keys(PREFIX):
            known = KnownSpans(ledger.folder)
            if known.read() is None:  # the spans that existed before are not recorded yet
                return
            known.add(spans)
        ledger.fold()

    def _due(self, schedule: Schedule) -> Due:
        """Returns the due ticks of a schedule, and stores a notification about late ones."""
        ledger = self.store.ledger(schedule.name)
        now = self._clock.now()
        if self._secs_to_poll(schedule) > 0:
            return Due()
        self._polled[schedule.name] = self._clock.monotonic()
        try:
            if schedule.on_new_span and schedule.enabled:
                self._note_old_spans(schedule, ledger)
            due = find_due(schedule, ledger, now, self.root, self._find)
        except (BadInputError, OSError) as error:
            if read_memory(ledger.folder).problem != str(error):
                _LOGGER.warning("%s: its due runs are unknown: %s", schedule.name, error)
            remember(ledger.folder, problem=str(error))
            return Due()
        remember(ledger.folder, problem=None)
        self._notify_missed(schedule, ledger, due, now)
        return due

    def _note_old_spans(self, schedule: Schedule, ledger: Ledger) -> None:
        num_old = note_old_spans(schedule, ledger, self.root, self._find)
        if num_old:
            _LOGGER.warning(
                "%s: %d spans that were there before are not run; `schedule backfill` does that",
                schedule.name,
                num_old,
            )

    def _notify_missed(self, schedule: Schedule, ledger: Ledger, due: Due, now: datetime) -> None:
        """Stores one notification about late ticks, and no other until all of these are handled."""
        if not due.late:
            return
        memory = read_memory(ledger.folder)
        if schedule.on_new_span:
            keys = [tick.key for tick in due.late]
            if not set(keys).isdisjoint(memory.told_spans):
                return
            notified: dict[str, object] = {"told_spans": keys}
        else:
            if due.late[0].key <= memory.told_missed:
                return
            notified = {"told_missed": due.late[-1].key}
        missed = of_missed(self.root, due.late, iso(now))
        _LOGGER.warning("%s", missed.text)
        self.outbox.put(missed, self._notify_config(schedule))
        remember(ledger.folder, **notified)

    def _secs_to_poll(self, schedule: Schedule) -> float:
        """Returns the seconds until new spans are searched again."""
        polled = self._polled.get(schedule.name)
        if not schedule.on_new_span or polled is None:
            return 0.0
        return polled + schedule.poll_secs - self._clock.monotonic()

    def _schedules(self) -> list[Schedule]:
        found = []
        for name in self.store.names():
            try:
                schedule = self.store.read(name)
                self.store.ledger(name).unfinished()  # reads all files
            except BadInputError as error:  # damaged, or just deleted: the others continue
                if str(error) not in self._said:
                    _LOGGER.error("%s", error)
                self._said.add(str(error))
            else:
                found.append(schedule)
        return found

    def _notify_config(self, schedule: Schedule) -> NotifyConfig:
        """Returns `[notify]` of the configuration file, or its last readable state."""
        try:
            config = load_any_config(schedule.config_file, schedule.settings).notify
        except (BadInputError, OSError):
            return schedule.notify
        # A full disk is no error: the copy is only needed when the file is broken.
        with contextlib.suppress(OSError):
            now = schedule.model_copy(update={"notify": config})
            self.store.receivers(schedule.name).write(now)
        return config

    def _wait_secs(self) -> float:
        """Returns the seconds to wait. They are few, because commands may change the schedules."""
        now = self._clock.now()
        waits = [_LONGEST_WAIT_SECS]
        if (next_attempt := self.outbox.next_attempt()) is not None:
            waits.append((next_attempt - now).total_seconds())
        for schedule in self._schedules():
            ledger = self.store.ledger(schedule.name)
            if schedule.enabled and schedule.on_new_span:
                waits.append(self._secs_to_poll(schedule))
            time: datetime | None = next_time(schedule, ledger, now)
            if time is not None:
                waits.append((time - now).total_seconds())
        return max(_SHORTEST_WAIT_SECS, min(waits))
