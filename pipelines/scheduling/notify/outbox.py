"""Notifications that wait to be sent: files, until their receiver has accepted them.

No error here ends a scheduler. A notification that cannot be written, such as on a full disk, is kept in
memory. One that is invalid, or that no receiver accepts for a week, is put aside; `schedule list` shows it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from components.file_systems import sync
from pipelines.atomic_files import remove
from pipelines.config.notify import NotifyConfig
from pipelines.errors import BadInputError
from pipelines.scheduling.clock import Clock
from pipelines.scheduling.notify.delivery import Deliver
from pipelines.scheduling.notify.delivery_error import DeliveryError
from pipelines.scheduling.notify.letter import Letter, read_letter
from pipelines.scheduling.notify.notification import Notification

_LOGGER = logging.getLogger(__name__)

_FIRST_WAIT_SECS = 10.0
_LONGEST_WAIT_SECS = 3_600.0
_MOST_DOUBLINGS = 20
_GIVEN_UP_AFTER_SECS = 7 * 86_400.0
_REST_SECS = 60.0
"""Longest wait of a schedule's other notifications after a failure: each attempt may use its whole time."""


@dataclass(frozen=True)
class Undelivered:
    """A notification that was put aside.

    Attributes:
      file: Path of the file.
      schedule: Name of the schedule; empty if unreadable.
      reason: Reason why no receiver has accepted it.
    """

    file: Path
    schedule: str
    reason: str


class Outbox:
    """The notifications of a root that wait to be sent.

    Args:
      folder: Folder of their files.
      clock: Clock for the attempts.
      deliver: Function that sends one.
    """

    def __init__(self, folder: Path, clock: Clock, deliver: Deliver):
        self._folder = folder
        self._aside = folder / "undelivered"
        self._clock = clock
        self._deliver = deliver
        # By file, a letter that could not be written; None if it is done but its file could not be removed.
        self._unwritten: dict[Path, Letter | None] = {}
        self._rests_until: dict[str, datetime] = {}  # by schedule

    def put(self, notification: Notification, config: NotifyConfig) -> None:
        """Keeps a notification until it is sent, if its event is configured in `notify.on`."""
        if not config.tells or notification.event not in config.on:
            return
        now = self._clock.now()
        self._keep(
            Letter(
                self._folder / f"{notification.id}.json",
                notification.schedule,
                notification.as_json(),
                datetime.fromisoformat(notification.time),
                next_attempt=now,
            )
        )

    def pending(self) -> list[Letter]:
        """Returns the notifications to send, by name."""
        return self._pending(put_aside=False)

    def undelivered(self) -> list[Undelivered]:
        """Returns the notifications that were put aside, or are about to be, by name."""
        found = []
        for folder in (self._aside, self._folder):
            for file in _files(folder):
                try:
                    letter = read_letter(file)
                except BadInputError as error:
                    found.append(Undelivered(file, "", str(error)))
                else:
                    if letter is not None and folder == self._aside:
                        found.append(
                            Undelivered(file, letter.schedule, letter.error or "not known")
                        )
        return found

    def next_attempt(self) -> datetime | None:
        """Returns the time of the next attempt; None if nothing waits."""
        return min(map(self._time_of, self.pending()), default=None)

    def send_due(self, config_of: Callable[[str], NotifyConfig | None]) -> None:
        """Sends the notifications that are due; failed ones are tried again later, and no error is raised.

        Args:
          config_of: Function from a schedule's name to its receivers; None if it no longer exists.
        """
        # Letters that were refused before come last: their content may be the cause.
        for letter in sorted(self._pending(put_aside=True), key=lambda one: one.attempts):
            if self._time_of(letter) <= self._clock.now():
                self._send(letter, config_of)

    def _pending(self, put_aside: bool) -> list[Letter]:
        found = {file: letter for file, letter in self._unwritten.items() if letter is not None}
        for file in _files(self._folder):
            if file not in self._unwritten:
                try:
                    letter = read_letter(file)
                except BadInputError as error:
                    if put_aside:
                        self._put_aside(file, f"{file.name} is no notification: {error}")
                else:
                    if letter is not None:
                        found[file] = letter
        return [found[file] for file in sorted(found)]

    def _time_of(self, letter: Letter) -> datetime:
        rest = self._rests_until.get(letter.schedule, letter.next_attempt)
        return max(letter.next_attempt, rest)

    def _send(self, letter: Letter, config_of: Callable[[str], NotifyConfig | None]) -> None:
        try:
            config = config_of(letter.schedule)
            if config is None or not config.tells:
                reason = "the schedule is gone, or no receiver is configured any more"
                self._give_up(replace(letter, error=letter.error or reason))
                return
            self._deliver(config.without(letter.taken), letter.content)
        except DeliveryError as error:
            taken = (*letter.taken, *error.taken)
            self._put_off(replace(letter, error=str(error), taken=taken))
        except BadInputError as error:
            self._put_off(replace(letter, error=str(error)))
        except Exception as error:
            # An error of ours, or of the configuration, must not stop the runs. Its text may hold an address.
            self._put_off(replace(letter, error=f"it cannot be sent ({type(error).__name__})"))
        else:
            _LOGGER.info("sent: %s", letter.content["text"])
            self._forget(letter)

    def _put_off(self, letter: Letter) -> None:
        now = self._clock.now()
        name, error = letter.file.stem, letter.error
        if (now - letter.written).total_seconds() > _GIVEN_UP_AFTER_SECS:
            self._give_up(letter)
            return
        doublings = min(letter.attempts, _MOST_DOUBLINGS)
        wait = min(_FIRST_WAIT_SECS * 2**doublings, _LONGEST_WAIT_SECS)
        self._rests_until[letter.schedule] = now + timedelta(seconds=min(wait, _REST_SECS))
        _LOGGER.warning("%s is not sent, and tried again in %.0f s: %s", name, wait, error)
        self._keep(
            replace(
                letter, attempts=letter.attempts + 1, next_attempt=now + timedelta(seconds=wait)
            )
        )

    def _give_up(self, letter: Letter) -> None:
        self._keep(letter)
        self._put_aside(letter.file, f"it was never delivered, and is given up: {letter.error}")

    def _keep(self, letter: Letter) -> None:
        try:
            letter.write()
        except OSError as error:
            if letter.file not in self._unwritten:
                text = letter.content["text"]
                _LOGGER.error("kept in memory, as it cannot be written: %s (%s)", text, error)
            self._unwritten[letter.file] = letter
        else:
            self._unwritten.pop(letter.file, None)

    def _forget(self, letter: Letter) -> None:
        self._unwritten.pop(letter.file, None)
        try:
            remove(letter.file)
        except OSError as error:
            _LOGGER.error("%s was sent and cannot be removed: %s", letter.file, error)
            self._unwritten[letter.file] = None

    def _put_aside(self, file: Path, reason: str) -> None:
        _LOGGER.error("%s is put aside, in %s: %s", file.stem, self._aside, reason)
        try:
            self._aside.mkdir(parents=True, exist_ok=True)
            file.rename(self._aside / file.name)
            sync(self._aside)
            self._unwritten.pop(file, None)
        except OSError as error:
            _LOGGER.error("%s cannot be put aside: %s", file, error)
            self._unwritten[file] = None


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[!.]*.json"))
