"""Makes the table of ratios from single measurements: medians, spread, verdicts."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.speed_works import BEST_KERAS, Work

HEADER = ("", "compared with", "ours", "theirs", "time ratio", "processor ratio", "aim")
LOSS_TOLERANCE = 0.15
"""Share of a loss, or of a fifth of the untrained one if that is more, by which losses may differ."""


@dataclasses.dataclass(frozen=True)
class Run:
    """One measurement: seconds of a unit of work.

    Attributes:
      contestant: Name of the contestant.
      secs: Wall time.
      processor_secs: Time of all threads on processors.
    """

    contestant: str
    secs: float
    processor_secs: float


@dataclasses.dataclass(frozen=True)
class Ratios:
    """A contestant's time over ours, alternation by alternation.

    Attributes:
      median: Median, which is compared with the aim.
      least: Smallest ratio.
      most: Largest ratio.
    """

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, ours: Sequence[float], its: Sequence[float]) -> "Ratios":
        """Returns the ratios of measurements that were made in turn.

        Raises:
          ValueError: Their numbers differ.
        """
        if len(ours) != len(its) or not ours:
            raise ValueError(
                "A ratio needs as many measurements of both, at least one. Received: "
                f"{len(ours)} of ours, {len(its)} of it"
            )
        values = [other / own for own, other in zip(ours, its, strict=True)]
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{self.median:.2f}x ({self.least:.2f}-{self.most:.2f})"


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table: a piece of work, and a contestant.

    Attributes:
      work: The piece of work.
      peer: Name of the contestant.
      ours: Our median seconds of a unit, and our processor seconds.
      its: Median seconds of a unit of the peer, and its processor seconds.
      time: Ratios of the time.
      processor: Ratios of the processor time.
      target: Minimum of the ratio to aim at; None for no aim.
    """

    work: Work
    peer: str
    ours: tuple[float, float]
    its: tuple[float, float]
    time: Ratios
    processor: Ratios
    target: float | None

    def is_met(self, by_processor: bool) -> bool | None:
        """True if the median ratio reaches the aim; None without an aim."""
        if self.target is None:
            return None
        return (self.processor if by_processor else self.time).median >= self.target


def rows_of(work: Work, runs: Sequence[Run], by_processor: bool) -> list[Row]:
    """Returns the lines of a piece of work: all contestants but the first, with Keras at its best first.

    Args:
      work: The piece of work.
      runs: Runs of all contestants, in the order of the alternations.
      by_processor: True if Keras's best is the one with the least processor time.
    """
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.contestant, []).append(run)
    first = work.contestants[0].name
    names = [one.name for one in work.contestants[1:] if one.name in found]
    rows = [_row(work, name, found[first], found[name], work.targets.get(name)) for name in names]
    keras = {one.name for one in work.contestants if one.kind == "keras"}
    fits = [row for row in rows if row.peer in keras]
    if fits and BEST_KERAS in work.targets:
        best = min(fits, key=lambda row: row.its[by_processor])
        target = work.targets[BEST_KERAS]
        rows[rows.index(best)] = dataclasses.replace(
            best, target=target, peer=f"{best.peer} (its best)"
        )
    return rows


def _row(
    work: Work, peer: str, ours: Sequence[Run], its: Sequence[Run], target: float | None
) -> Row:
    times = [[run.secs for run in runs] for runs in (ours, its)]
    processor = [[run.processor_secs for run in runs] for runs in (ours, its)]
    own, other = (
        (statistics.median(times[side]), statistics.median(processor[side])) for side in (0, 1)
    )
    return Row(work, peer, own, other, Ratios.of(*times), Ratios.of(*processor), target)


def table(works: Sequence[Work], results: Mapping[str, Any], by_processor: bool) -> list[Row]:
    """Returns the lines of all works that have results: see `speed_runs.load_results`."""
    return [
        row
        for work in works
        if work.letter in results
        for row in rows_of(
            work, [Run(**run) for run in results[work.letter]["measured"]], by_processor
        )
    ]


def lines(rows: Sequence[Row], by_processor: bool) -> list[list[str]]:
    """Returns the cells of the rows, in the order of HEADER; the first row of a work names it."""
    made = []
    for above, row in zip([None, *rows], rows, strict=False):
        is_first = above is None or above.work != row.work
        aim = "" if row.target is None else f"{row.target:g}x"
        if (met := row.is_met(by_processor)) is not None:
            aim += ", met" if met else ", short"
        title = f"({row.work.letter}) {row.work.title}"
        ours = f"{_both(row.ours)} per {row.work.unit}"
        own = [title, row.peer, ours] if is_first else ["", row.peer, ""]
        made.append([*own, _both(row.its), str(row.time), str(row.processor), aim])
    return made


def _both(secs: tuple[float, float]) -> str:
    time, processor = map(duration, secs)
    amount, unit = time.split()
    return f"{amount if processor.endswith(f' {unit}') else time} / {processor}"


def duration(secs: float) -> str:
    """Returns a time with three digits and its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if secs >= size:
            return f"{secs / size:.3g} {unit}"
    return f"{secs / 1e-6:.3g} us"


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Returns lines of cells as a table of Markdown, with HEADER."""
    table = [HEADER, ["---"] * 2 + ["--:"] * (len(HEADER) - 2), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in table)


def differences(work: Work, checks: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Returns differences in the work that the contestants have done; empty if there are none.

    Args:
      work: The piece of work.
      checks: Output of `contestant.py --check` by the name of the contestant.
    """
    found = []
    (first, expected), *others = checks.items()
    for name, check in others:
        for key in sorted({*expected, *check} - {"loss"}):
            if expected.get(key) != check.get(key):
                found.append(f"{key}: {expected.get(key)} of {first}, {check.get(key)} of {name}")
    if work.untrained_loss is None:
        return found
    losses = {name: check["loss"] for name, check in checks.items()}
    finite = [loss for loss in losses.values() if math.isfinite(loss)]
    median = statistics.median(finite) if finite else math.nan
    allowed = LOSS_TOLERANCE * max(median, work.untrained_loss / 3)
    for name, loss in losses.items():
        if not abs(loss - median) <= allowed:
            found.append(f"loss: {loss:.4g} of {name}, with a median of {median:.4g}")
        if not loss < 0.95 * work.untrained_loss:
            found.append(f"loss: {loss:.4g} of {name} is no better than that of an untrained model")
    return found
