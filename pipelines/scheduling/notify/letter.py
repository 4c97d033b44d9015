"""A notification that waits to be sent, in a file."""

from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, write_json
from pipelines.errors import BadInputError
from pipelines.scheduling.ticks import iso


@dataclass(frozen=True)
class Letter:
    """A notification that waits to be sent.

    Attributes:
      file: File that holds it.
      schedule: Name of the schedule whose settings name the receivers.
      content: Content of the notification.
      written: Time of the event, UTC.
      next_attempt: Time of the next attempt.
      attempts: Number of attempts so far.
      error: Error of the newest attempt.
      taken: Names of the receivers that have accepted it, while others have not.
    """

    file: Path
    schedule: str
    content: dict[str, Any]
    written: datetime
    next_attempt: datetime
    attempts: int = 0
    error: str | None = None
    taken: tuple[str, ...] = field(default=())

    def write(self) -> None:
        """Writes the file."""
        write_json(
            self.file,
            {
                "schedule": self.schedule,
                "content": self.content,
                "attempts": self.attempts,
                "next_attempt": iso(self.next_attempt),
                "error": self.error,
                "taken": self.taken,
            },
        )


def read_letter(file: Path) -> Letter | None:
    """Returns the letter in a file, also of a former version; None if it was just sent.

    Raises:
      BadInputError: The file holds no notification, or cannot be read.
    """
    try:
        fields = read_json(file)
        content = fields["content"]
        written = _time(content["time"])
        return Letter(
            file,
            schedule=str(content["schedule"]),
            content={**content, "text": str(content["text"])},
            written=written,
            next_attempt=_time(fields.get("next_attempt", content["time"])),
            attempts=int(fields.get("attempts", 0)),
            error=fields.get("error"),
            taken=tuple(fields.get("taken", ())),
        )
    except FileNotFoundError:
        return None
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, BadInputError):
            raise
        raise BadInputError(f"{file} cannot be read ({type(error).__name__}: {error}).") from error


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time
