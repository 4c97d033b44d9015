"""A scheduler's state for a schedule, besides its ticks: `ROOT/schedules/NAME/state.json`."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, write_json
from pipelines.errors import BadInputError


@dataclass(frozen=True)
class Memory:
    """State of a scheduler for one schedule.

    Attributes:
      told_missed: Key of the newest tick in a notification about missed ticks; empty without one.
      told_spans: Keys of the spans in the last notification about missed spans.
      problem: Reason why the due ticks are unknown; None if they are known.
    """

    told_missed: str = ""
    told_spans: list[str] = field(default_factory=list)
    problem: str | None = None


def read_memory(folder: Path) -> Memory:
    """Returns the state for a schedule; an empty one if the file is damaged.

    Args:
      folder: Folder of the schedule.
    """
    try:
        fields = read_json(folder / "state.json")
        fields.pop("notify", None)  # written by a former version
        return Memory(**fields)
    except (FileNotFoundError, BadInputError, TypeError):
        return Memory()  # at worst, a notification is repeated


def remember(folder: Path, **changes: Any) -> None:
    """Changes fields of the state for a schedule."""
    known = read_memory(folder)
    changed = replace(known, **changes)
    if changed != known:
        write_json(folder / "state.json", asdict(changed))
