"""The schedules of a root: `ROOT/schedules/NAME.json`, and their state in `ROOT/schedules/NAME/`."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from components.nearest import nearest_first
from pipelines.atomic_files import read_json, remove, write_json
from pipelines.config.load import explain
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.lock import FileLock, RootBusyError
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.locks import is_run_going_on
from pipelines.scheduling.receivers import Receivers
from pipelines.scheduling.schedule import Schedule

_FORMAT = 1
_LOCK = ".change.lock"
_LOCK_WAIT_SECS = 10


class ScheduleStore:
    """The schedules of a root."""

    def __init__(self, root: Root):
        self.root = root
        self.folder = root.schedules

    def names(self) -> list[str]:
        """Returns the names of the schedules, sorted."""
        return sorted(file.stem for file in self.folder.glob("*.json") if file.name[0] != ".")

    def read(self, name: str) -> Schedule:
        """Returns a schedule.

        Raises:
          BadInputError: No schedule has this name, or its file is damaged.
        """
        file = self.file(name)
        try:
            fields = read_json(file)
        except FileNotFoundError as error:
            raise BadInputError(self._unknown(name)) from error
        if fields.pop("format", _FORMAT) != _FORMAT:
            raise BadInputError(f"{file} was written by a newer version of this program.")
        try:
            schedule = Schedule.model_validate(fields)
        except ValidationError as error:
            raise BadInputError(f"{explain(error, file)} Correct it, or remove it.") from error
        return self.receivers(name).added_to(schedule)

    def read_all(self) -> list[Schedule]:
        """Returns all schedules by name.

        Raises:
          BadInputError: The file of one is damaged.
        """
        found = []
        for name in self.names():
            with contextlib.suppress(FileNotFoundError):  # it was just deleted
                if self.file(name).exists():
                    found.append(self.read(name))
        return found

    def chosen(self, name: str | None) -> Schedule:
        """Returns the named schedule, or the only one.

        Raises:
          BadInputError: There is none, or there are several to choose from.
        """
        if name is not None:
            return self.read(name)
        names = self.names()
        if len(names) != 1:
            raise BadInputError(
                f"There are {len(names)} schedules in {self.root}: {', '.join(names)}. Give --name."
                if names
                else self._unknown(None)
            )
        return self.read(names[0])

    def write(self, schedule: Schedule) -> None:
        """Stores a schedule, and its receivers in a separate file that only its owner can read."""
        receivers = self.receivers(schedule.name)
        receivers.write(schedule)
        fields = receivers.taken_from(schedule).model_dump(mode="json", exclude_defaults=True)
        write_json(self.file(schedule.name), {"format": _FORMAT, **fields})

    def hide_receivers(self) -> None:
        """Removes receivers from the files of a former version, which others can read."""
        for name in self.names():
            # Damage is reported elsewhere; a full disk is only temporary.
            with contextlib.suppress(BadInputError, OSError):
                if self._has_visible_receivers(name):
                    with self.changing():
                        receivers = self.receivers(name)
                        self.write(receivers.of_former_version(self.read(name)))
                        receivers.forget_former_version()

    def _has_visible_receivers(self, name: str) -> bool:
        return self.receivers(name).are_visible(read_json(self.file(name)))

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """Keeps other commands from changing schedules meanwhile; does not affect runs.

        Raises:
          BadInputError: Another command holds the lock for long.
        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(FileLock(self.folder / _LOCK).held(_LOCK_WAIT_SECS))
            except RootBusyError as error:
                raise BadInputError(
                    f"Another command is changing the schedules in {self.root}. Try again."
                ) from error
            yield

    def receivers(self, name: str) -> Receivers:
        """Returns the receivers of a schedule's notifications."""
        return Receivers(self.folder / name)

    def delete(self, name: str) -> None:
        """Removes a schedule and its ticks; runs and versions stay.

        Raises:
          BadInputError: There is none, or its run is active.
        """
        if name not in self.names():
            raise BadInputError(self._unknown(name))
        with self.changing():
            self._delete(name)

    def _delete(self, name: str) -> None:
        unfinished = self.ledger(name).unfinished()
        if unfinished is not None and is_run_going_on(self.folder):
            raise BadInputError(
                f"A run of the schedule {name!r} is going on (process {unfinished.pid}). Stop the scheduler, "
                "or wait for the run; `schedule disable` keeps it from starting another one."
            )
        remove(self.file(name))
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def ledger(self, name: str) -> Ledger:
        """Returns the ledger of a schedule's ticks."""
        return Ledger(self.folder / name, name)

    def file(self, name: str) -> Path:
        """Returns the path of a schedule's file."""
        return self.folder / f"{name}.json"

    def _unknown(self, name: str | None) -> str:
        names = self.names()
        if not names:
            return f"There are no schedules in {self.root}. `schedule create` makes one."
        return (
            f"There is no schedule {name!r} in {self.root}. Schedules: "
            f"{', '.join(nearest_first(name or '', names))}."
        )
