"""The ticks of one schedule and their outcomes: a file for each, but only counts of the old ones."""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipelines.atomic_files import read_json, remove, write_json
from pipelines.errors import BadInputError
from pipelines.scheduling.ticks import Tick

KEPT = 200
"""Number of ticks with a file of their own; older ones are only counted."""

_TOTALS = "totals.json"


class Ledger:
    """The ticks of a schedule, or of a backfill.

    Args:
      folder: Folder of their files.
      schedule: Name of the schedule.
    """

    def __init__(self, folder: Path, schedule: str):
        self.folder = folder
        self.schedule = schedule

    def write(self, tick: Tick) -> None:
        """Stores a tick; it survives a crash from then on."""
        write_json(self._file(tick.key), dataclasses.asdict(tick))

    def read(self, key: str) -> Tick | None:
        """Returns a tick; None if it was never claimed, or no longer has a file.

        Raises:
          BadInputError: Its file is damaged.
        """
        file = self._file(key)
        try:
            return Tick(**read_json(file))
        except FileNotFoundError:
            return None
        except TypeError as error:
            raise BadInputError(f"{file} is no tick: {error}. Correct it, or remove it.") from error

    def keys(self, prefix: str = "") -> list[str]:
        """Returns the keys of the ticks that have a file, in ascending order.

        Args:
          prefix: Prefix of the keys.
        """
        ticks = self.folder / "ticks"
        stems = (file.stem for file in ticks.glob("*.json") if file.name[0] != ".")
        return sorted(stem for stem in stems if stem.startswith(prefix))

    def ticks(self) -> Iterator[Tick]:
        """Yields the ticks that have a file, by key."""
        return (tick for key in self.keys() if (tick := self.read(key)) is not None)

    def newest(self) -> Tick | None:
        """Returns the tick with the highest key; None without one."""
        keys = self.keys()
        return self.read(keys[-1]) if keys else None

    def unfinished(self) -> Tick | None:
        """Returns the oldest tick that was claimed but has no outcome; None without one."""
        return next((tick for tick in self.ticks() if tick.state == "claimed"), None)

    def last_run(self) -> Tick | None:
        """Returns the newest tick that was not skipped; None without one."""
        for key in reversed(self.keys()):
            tick = self.read(key)
            if tick is not None and tick.state != "skipped":
                return tick
        return None

    def last_ended(self) -> tuple[Tick | None, Tick | None]:
        """Returns the tick that ended last, and the last one that did not fail; None if there is none."""
        done = [tick for tick in self._by_end() if tick.state == "done"]
        good = [tick for tick in done if tick.status != "failed"]
        return next(reversed(done), None), next(reversed(good), None)

    def counts(self) -> Counter[str]:
        """Returns the number of ticks that ended in each status, and of those skipped, from the beginning."""
        totals = self._totals()
        counts = Counter(totals["counts"])
        for tick in self.ticks():
            if tick.key not in totals["counted"]:
                counts += _count(tick)
        return counts

    def fold(self, kept: int = KEPT) -> None:
        """Counts ticks that ended long ago, and removes their files and output."""
        totals = self._totals()
        ended = self._by_end()
        # A crash after counting has left the files of these behind.
        counted = [tick for tick in ended if tick.key in totals["counted"]]
        num_over = len(ended) - len(counted) - kept
        old = [tick for tick in ended if tick not in counted][: max(0, num_over)]
        folded = [*counted, *old]
        if not folded:
            return
        counts = sum(map(_count, old), Counter(totals["counts"]))
        # The counts are written first, with the ticks they include: a crash here counts none twice.
        fields = {"counted": [tick.key for tick in folded], "counts": dict(counts)}
        write_json(self.folder / _TOTALS, fields)
        for tick in folded:
            remove(self._file(tick.key))
            for file in self.output_files(tick):
                remove(file)

    def output_file(self, tick: Tick, suffix: str) -> Path:
        """Returns the output file of the newest start of a tick's run.

        Args:
          tick: Tick of the run.
          suffix: `out` or `err`.
        """
        return self.folder / "output" / f"{tick.key}.{tick.starts}.{suffix}"

    def output_files(self, tick: Tick) -> list[Path]:
        """Returns all output files of a tick's run."""
        return sorted((self.folder / "output").glob(f"{tick.key}.*"))

    def _file(self, key: str) -> Path:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", key):
            raise ValueError(f"A key is the name of a file. Received: key={key!r}")
        return self.folder / "ticks" / f"{key}.json"

    def _totals(self) -> dict[str, Any]:
        try:
            return {"counted": [], **read_json(self.folder / _TOTALS)}
        except FileNotFoundError:
            return {"counted": [], "counts": {}}

    def _by_end(self) -> list[Tick]:
        """Returns the ticks that are done or skipped, in the order in which they ended.

        That may differ from the order of the keys: a span may arrive after a later one.
        """
        ended = (tick for tick in self.ticks() if tick.state != "claimed")
        return sorted(ended, key=lambda tick: (tick.finished or tick.due, tick.key))


def _count(tick: Tick) -> Counter[str]:
    if tick.state == "claimed":
        return Counter()
    return Counter({tick.status or tick.state: tick.count})
