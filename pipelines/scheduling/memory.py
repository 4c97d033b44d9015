"""What a scheduler remembers of a schedule besides its ticks: `ROOT/schedules/NAME/state.json`."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, write_json
from pipelines.errors import BadInputError


@dataclass(frozen=True)
class Memory:
    """What is remembered.

    Attributes:
      told_missed: Key of the newest tick that was told to be missed; empty without one.
      told_spans: Keys of the spans that were told to be missed the last time.
      problem: Why the scheduler cannot tell what is due; None if it can.
    """

    told_missed: str = ""
    told_spans: list[str] = field(default_factory=list)
    problem: str | None = None


def read_memory(folder: Path) -> Memory:
    """Returns what is remembered of a schedule; nothing, if the file is damaged.

    Args:
      folder: Of the schedule.
    """
    try:
        fields = read_json(folder / "state.json")
        fields.pop("notify", None)  # of a former version
        return Memory(**fields)
    except (FileNotFoundError, BadInputError, TypeError):
        return Memory()  # at worst, something is told a second time


def remember(folder: Path, **changes: Any) -> None:
    """Changes what is remembered of a schedule."""
    known = read_memory(folder)
    changed = replace(known, **changes)
    if changed != known:
        write_json(folder / "state.json", asdict(changed))
