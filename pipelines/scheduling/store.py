"""The schedules of a root: `ROOT/schedules/NAME.json`; those of format 1 are rewritten."""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from components.nearest import nearest_first
from pipelines.atomic_files import read_json, read_model, remove, write_json
from pipelines.config.load import explain
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.lock import FileLock, RootBusyError
from pipelines.root.records import Time
from pipelines.scheduling.schedule import NAME_PATTERN, Schedule

FORMAT_1 = 1
_FOLDERS = ("ticks", "output", "backfills")
_FILES = ("totals.json", "state.json", "spans.json")


@dataclass(frozen=True)
class _Format1Tick:
    key: str
    due: Time
    state: str


@dataclass(frozen=True)
class _Format1Spans:
    known: tuple[str, ...] | None = None


def in_new_format(fields: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the fields of a schedule of format 1 in the present format: ticks that are done are not due."""
    done, handled = [], None
    for file in sorted((folder / "ticks").glob("*.json")):
        with contextlib.suppress(BadInputError, FileNotFoundError):
            if (tick := read_model(file, _Format1Tick)).state in ("done", "skipped"):
                done.append(tick)
    changed = {name: value for name, value in fields.items() if name != "notify"}
    if not fields.get("on_new_span"):
        times = (str(fields.get("since", "")), *(tick.due for tick in done))
        return {**changed, "since": max(times)}
    with contextlib.suppress(BadInputError, FileNotFoundError):
        handled = read_model(folder / "spans.json", _Format1Spans).known
    passed = None if handled is None else sorted({*handled, *(tick.key for tick in done)})
    return {**changed, "passed_spans": passed}


def has_format_1_state(folder: Path) -> bool:
    """Returns whether format 1 has left files about ticks."""
    return any((folder / name).exists() for name in (*_FOLDERS, *_FILES))


def remove_format_1_state(folder: Path) -> None:
    """Removes the files that format 1 kept about ticks."""
    for path in (folder / name for name in (*_FOLDERS, *_FILES)):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)  # of a pipe, it would wait for a writer
        else:
            with contextlib.suppress(OSError):
                remove(path)


_FORMAT = 2
_CHANGE_LOCK = ".change.lock"
_SCHEDULER_LOCK = ".scheduler.lock"
_LOCK_WAIT_SECS = 10


class ScheduleStore:
    """The schedules of a root. What cannot be read, found or changed raises BadInputError."""

    def __init__(self, root: Root):
        self.root = root
        self.folder = root.schedules

    def locks(self) -> list[FileLock]:
        return [FileLock(self.folder / name) for name in (_CHANGE_LOCK, _SCHEDULER_LOCK)]

    def names(self) -> list[str]:
        return [file.stem for file in self._files("*.json") if _is_schedule(file)]

    def strangers(self) -> list[Path]:
        """Returns the other files in the folder, such as copies made by a file manager or an editor."""
        return [file for file in self._files("*") if not (_is_schedule(file) or file.is_dir())]

    def _files(self, pattern: str) -> list[Path]:
        return sorted(file for file in self.folder.glob(pattern) if file.name[0] != ".")

    def read(self, name: str) -> Schedule:
        file = self.file(name)
        try:
            fields = read_json(file)
        except FileNotFoundError as error:
            raise BadInputError(self._unknown(name)) from error
        written_as = fields.pop("format", FORMAT_1)
        if written_as not in (FORMAT_1, _FORMAT):
            raise BadInputError(
                f"{file} is of a format that this version cannot read. Received: format = {written_as!r}. "
                "If a newer version of this program wrote it, update the program; otherwise remove the file."
            )
        if written_as == FORMAT_1:
            fields = in_new_format(fields, self.state(name))
        try:
            schedule = Schedule.model_validate(fields)
        except ValidationError as error:
            raise BadInputError(f"{explain(error, file)} Correct it, or remove it.") from error
        if schedule.name != name:
            raise BadInputError(
                f"{file} is the file of the schedule {schedule.name!r}. Rename it, or correct its `name`."
            )
        return schedule

    def read_all(self) -> tuple[list[Schedule], list[str]]:
        """Returns the schedules by name, and the errors of the files that cannot be read."""
        schedules, errors = [], []
        for name in self.names():
            try:
                schedules.append(self.read(name))
            except BadInputError as error:
                if os.path.lexists(self.file(name)):  # it was not just deleted
                    errors.append(str(error))
        return schedules, errors

    def chosen(self, name: str | None) -> Schedule:
        """Returns the named schedule, or the only one."""
        names = self.names()
        if name is None and len(names) > 1:
            raise BadInputError(
                f"There are {len(names)} schedules in {self.root}: {', '.join(names)}. Give --name."
            )
        if name is None and not names:
            raise BadInputError(self._unknown(None))
        return self.read(names[0] if name is None else name)

    def write(self, schedule: Schedule) -> None:
        fields = schedule.model_dump(mode="json", exclude_defaults=True)
        write_json(self.file(schedule.name), {"format": _FORMAT, **fields})

    def change(self, name: str, **changes: Any) -> None:
        """Changes fields of a schedule as it is stored now."""
        with self.changing():
            schedule = self.read(name)
            changed = schedule.model_copy(update=changes)
            if changed != schedule:
                self.write(changed)

    def migrate(self) -> None:
        """Rewrites schedules of format 1, and removes the files that it kept about their runs."""
        for name in self.names():
            # Reading the schedule reports an error; the old files are kept until it is fixed.
            with contextlib.suppress(BadInputError, OSError):
                if has_format_1_state(self.state(name)):
                    with self.changing():
                        self.write(self.read(name))
                    remove_format_1_state(self.state(name))

    def changing(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other commands from changing schedules until the end of the block; does not affect runs."""
        busy = f"Another command is changing the schedules in {self.root}. Try again."
        return _held(self.folder / _CHANGE_LOCK, _LOCK_WAIT_SECS, busy)

    def delete(self, name: str) -> None:
        """Removes a schedule; its runs stay, and a run in progress continues."""
        if name not in self.names():
            raise BadInputError(self._unknown(name))
        with self.changing():
            remove(self.file(name))
            if self.state(name).is_dir():  # of a pipe, it would wait for a writer
                shutil.rmtree(self.state(name), ignore_errors=True)

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def state(self, name: str) -> Path:
        """Returns the folder of a schedule: its receivers, and the output of its newest run."""
        return self.folder / name

    def _unknown(self, name: str | None) -> str:
        if not (names := self.names()):
            return f"There are no schedules in {self.root}. `schedule create` makes one."
        nearest = ", ".join(nearest_first(name or "", names))
        return f"There is no schedule {name!r} in {self.root}. Schedules: {nearest}."


def scheduler_lock(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Holds the lock of the root's only scheduler; the system releases it when the process ends."""
    busy = (
        f"Another scheduler is working in {folder.parent}. It runs all schedules of the root; to "
        "replace it, stop it first."
    )
    return _held(folder / _SCHEDULER_LOCK, 0, busy)


def is_scheduled(folder: Path) -> bool:
    """Returns whether a scheduler is working in a root."""
    return FileLock(folder / _SCHEDULER_LOCK).is_held()


@contextlib.contextmanager
def _held(file: Path, wait_secs: float, busy: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(FileLock(file).held(wait_secs))
        except RootBusyError as error:
            raise BadInputError(busy) from error
        yield


def _is_schedule(file: Path) -> bool:
    return file.suffix == ".json" and re.fullmatch(NAME_PATTERN, file.stem) is not None
