"""The receivers of a schedule's notifications: `ROOT/schedules/NAME/notify.json`, readable by its owner only.

The file holds the last readable `[notify]` of the configuration, for times when that is broken, and the
`--set notify.key=value` of the schedule. An address, or the argument of a command, may be a secret.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.atomic_files import read_json, write_json
from pipelines.config.notify import NotifyConfig
from pipelines.config.toml import split_setting
from pipelines.errors import BadInputError
from pipelines.scheduling.schedule import Schedule


def is_of_notify(setting: str) -> bool:
    """Returns whether `section.key=value` is a setting of `[notify]`."""
    return split_setting(setting)[0][0].strip() == "notify"


class Receivers:
    """Receivers of a schedule's notifications.

    Args:
      folder: Folder of the schedule's state.
    """

    def __init__(self, folder: Path):
        self._file = folder / "notify.json"
        self._former_file = folder / "state.json"

    def added_to(self, schedule: Schedule) -> Schedule:
        """Returns a schedule as it was written, with its receivers."""
        known = self._read()
        if known is None:
            return schedule
        config, settings = known
        return schedule.model_copy(
            update={"notify": config, "settings": (*_others(schedule), *settings)}
        )

    @staticmethod
    def taken_from(schedule: Schedule) -> Schedule:
        """Returns a schedule without its receivers."""
        return schedule.model_copy(
            update={"notify": NotifyConfig(), "settings": tuple(_others(schedule))}
        )

    def write(self, schedule: Schedule) -> None:
        """Stores the receivers of a schedule, if they have changed."""
        settings = [setting for setting in schedule.settings if is_of_notify(setting)]
        now = (schedule.notify, settings)
        if now != (self._read() or (NotifyConfig(), [])):
            fields = schedule.notify.model_dump(mode="json", exclude_defaults=True)
            write_json(self._file, {"notify": fields, "settings": settings}, private=True)

    def are_visible(self, fields: Mapping[str, Any]) -> bool:
        """Returns whether a former version has written receivers into files that others can read.

        Args:
          fields: Fields of the schedule's own file.
        """
        settings = any(map(is_of_notify, fields.get("settings", ())))
        return settings or "notify" in fields or "notify" in self._remembered()

    def of_former_version(self, schedule: Schedule) -> Schedule:
        """Returns a schedule with the receivers from the state of a former version."""
        with contextlib.suppress(ValidationError):
            if (notify := self._remembered().get("notify")) is not None:
                config = NotifyConfig.model_validate(notify)
                return schedule.model_copy(update={"notify": config})
        return schedule

    def forget_former_version(self) -> None:
        """Removes the receivers from the state of a former version."""
        fields = self._remembered()
        if "notify" in fields:
            del fields["notify"]
            write_json(self._former_file, fields)

    def _remembered(self) -> dict[str, Any]:
        try:
            return read_json(self._former_file)
        except (FileNotFoundError, BadInputError):
            return {}

    def _read(self) -> tuple[NotifyConfig, list[str]] | None:
        """Returns the stored receivers; None if there are none, or they are not ours to read."""
        try:
            fields = read_json(self._file)
            return NotifyConfig.model_validate(fields["notify"]), list(fields["settings"])
        except (FileNotFoundError, BadInputError, ValidationError, LookupError, TypeError):
            return None


def _others(schedule: Schedule) -> list[str]:
    return [setting for setting in schedule.settings if not is_of_notify(setting)]
