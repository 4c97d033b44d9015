"""Notifications that are to be sent: files, until their receiver has taken them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, remove, write_json
from pipelines.config.notify import NotifyConfig
from pipelines.errors import BadInputError
from pipelines.scheduling.clock import Clock
from pipelines.scheduling.notify.delivery import Deliver, DeliveryError
from pipelines.scheduling.notify.notification import Notification
from pipelines.scheduling.ticks import iso

_LOGGER = logging.getLogger(__name__)

_FIRST_WAIT_SECS = 10.0
_LONGEST_WAIT_SECS = 3_600.0
_GIVEN_UP_AFTER_SECS = 7 * 86_400.0


@dataclass(frozen=True)
class Letter:
    """A notification that is to be sent.

    Attributes:
      file: Where it is kept.
      schedule: Whose settings say to whom.
      content: What is sent.
      attempts: How often that was tried.
      next_attempt: When it is tried again.
      error: Of the newest attempt.
    """

    file: Path
    schedule: str
    content: dict[str, Any]
    attempts: int
    next_attempt: datetime
    error: str | None


class Outbox:
    """The notifications of a root that are to be sent.

    Args:
      folder: Where they are kept.
      clock: The time.
      deliver: Sends one.
    """

    def __init__(self, folder: Path, clock: Clock, deliver: Deliver):
        self._folder = folder
        self._clock = clock
        self._deliver = deliver

    def put(self, notification: Notification, config: NotifyConfig) -> None:
        """Keeps a notification until it is sent, if its event is to be told."""
        if not config.tells or notification.event not in config.on:
            return
        content = notification.as_json()
        fields = {
            "schedule": notification.schedule,
            "content": content,
            "attempts": 0,
            "next_attempt": iso(self._clock.now()),
            "error": None,
        }
        write_json(self._folder / f"{notification.id}.json", fields)

    def pending(self) -> list[Letter]:
        """Returns what is to be sent, by name."""
        return list(filter(None, map(_read, sorted(self._folder.glob("[!.]*.json")))))

    def send_due(self, config_of: Callable[[str], NotifyConfig | None]) -> None:
        """Sends what is due; what is not taken is tried again later, and no error is raised.

        Args:
          config_of: Returns to whom, by the name of the schedule; None if that is not there any more.
        """
        for letter in self.pending():
            if letter.next_attempt <= self._clock.now():
                self._send(letter, config_of(letter.schedule))

    def _send(self, letter: Letter, config: NotifyConfig | None) -> None:
        if config is None or not config.tells:
            _LOGGER.warning("%s is not told: nobody is to be told any more", letter.file.stem)
            remove(letter.file)
            return
        try:
            self._deliver(config, letter.content)
        except DeliveryError as error:
            self._put_off(letter, str(error))
        else:
            _LOGGER.info("told: %s", letter.content["text"])
            remove(letter.file)

    def _put_off(self, letter: Letter, error: str) -> None:
        now = self._clock.now()
        age = (now - datetime.fromisoformat(letter.content["time"])).total_seconds()
        if age > _GIVEN_UP_AFTER_SECS:
            _LOGGER.error("%s was never told, and is given up: %s", letter.file.stem, error)
            remove(letter.file)
            return
        wait = min(_FIRST_WAIT_SECS * 2**letter.attempts, _LONGEST_WAIT_SECS)
        _LOGGER.warning(
            "%s is not told, and tried again in %.0f s: %s", letter.file.stem, wait, error
        )
        fields = {
            "schedule": letter.schedule,
            "content": letter.content,
            "attempts": letter.attempts + 1,
            "next_attempt": iso(now + timedelta(seconds=wait)),
            "error": error,
        }
        write_json(letter.file, fields)


def _read(file: Path) -> Letter | None:
    try:
        fields = read_json(file)
        return Letter(
            file,
            fields["schedule"],
            fields["content"],
            fields["attempts"],
            datetime.fromisoformat(fields["next_attempt"]),
            fields["error"],
        )
    except FileNotFoundError:  # it was just sent
        return None
    except (BadInputError, LookupError, ValueError) as error:
        _LOGGER.warning("%s is no notification and is left out: %s", file, error)
        return None
