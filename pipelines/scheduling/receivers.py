"""The receivers of a schedule's notifications: `ROOT/schedules/NAME/notify.json`, readable by its owner only.

An address, or the argument of a command, may be a secret. The file holds the `--set notify.key=value` of the
schedule, and the last `[notify]` of the configuration that could be read, for when that is broken.
"""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from pipelines.atomic_files import read_model, write_json
from pipelines.config.notify import NotifyConfig
from pipelines.config.tfx_pipeline import load_any_config
from pipelines.config.toml import split_setting
from pipelines.errors import BadInputError, DamagedFileError
from pipelines.scheduling.schedule import Schedule


class Receivers(BaseModel):
    """Content of `notify.json`: `[notify]`, and the values of `--set` that are part of it."""

    notify: NotifyConfig = NotifyConfig()
    settings: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> "Receivers":
        """Returns the receivers of a schedule; none if there is no file."""
        try:
            return read_model(folder / "notify.json", cls)
        except FileNotFoundError:
            return cls()

    def write(self, folder: Path) -> None:
        with contextlib.suppress(DamagedFileError):  # it is replaced
            if self == Receivers.read(folder):
                return
        fields = self.model_dump(mode="json", exclude_defaults=True)
        write_json(folder / "notify.json", fields, private=True)


def current_receivers(schedule: Schedule, folder: Path) -> NotifyConfig:
    """Returns `[notify]` of the configuration; or of its last readable state, if it is broken."""
    try:
        stored, is_damaged = Receivers.read(folder), False
    except DamagedFileError:
        stored, is_damaged = Receivers(), True
    try:
        settings = (*schedule.settings, *stored.settings)
        notify = load_any_config(schedule.config_file, settings).notify
    except (BadInputError, OSError):
        return stored.notify
    if not is_damaged:  # else `list` and `check` report it: it may have held settings
        is_deleted = not folder.with_name(f"{schedule.name}.json").exists()  # during its run
        with contextlib.suppress(OSError):  # only needed once the configuration is broken
            if not is_deleted:
                stored.model_copy(update={"notify": notify}).write(folder)
    return notify


def without_receivers(settings: Iterable[str]) -> tuple[str, ...]:
    """Returns the values of `--set` that are not for `[notify]`."""
    return tuple(setting for setting in settings if split_setting(setting)[0][0].strip() != "notify")
