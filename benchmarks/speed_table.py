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
    """One measurement: seconds of a unit of work."""

    contestant: str
    secs: float  # Wall time
    processor_secs: float  # Time of all threads on processors


@dataclasses.dataclass(frozen=True)
class Ratios:
    """A contestant's time over ours, alternation by alternation."""

    median: float  # compared with the aim
    least: float
    most: float

    @classmethod
    def of(cls, ours: Sequence[float], its: Sequence[float]) -> "Ratios":
        """Returns the ratios of measurements that were made in turn."""
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
    """A line of the table: a piece of work, and a contestant."""

    work: Work
    peer: str
    ours: tuple[float, float]  # Our median seconds of a unit, and our processor seconds
    its: tuple[float, float]  # Median seconds of a unit of the peer, and its processor seconds
    time: Ratios
    processor: Ratios
    target: float | None  # Minimum of the ratio to aim at; None for no aim

    def is_met(self, by_processor: bool) -> bool | None:
        """True if the median ratio reaches the aim; None without an aim."""
        if self.target is None:
            return None
        return (self.processor if by_processor else self.time).median >= self.target


def table_rows(work: Work, runs: Sequence[Run], by_processor: bool) -> list[Row]:
    """Returns the lines of a piece of work: all contestants but the first, with Keras at its best first."""
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        by_name.setdefault(run.contestant, []).append(run)
    first = work.contestants[0].name
    names = [contestant.name for contestant in work.contestants[1:] if contestant.name in by_name]
    rows = [_row(work, name, by_name[first], by_name[name], work.targets.get(name)) for name in names]
    keras = {contestant.name for contestant in work.contestants if contestant.kind == "keras"}
    fits = [row for row in rows if row.peer in keras]
    if fits and BEST_KERAS in work.targets:
        best = min(fits, key=lambda row: row.its[by_processor])
        target = work.targets[BEST_KERAS]
        rows[rows.index(best)] = dataclasses.replace(best, target=target, peer=f"{best.peer} (its best)")
    return rows


def _row(work: Work, peer: str, ours: Sequence[Run], its: Sequence[Run], target: float | None) -> Row:
    times = [[run.secs for run in runs] for runs in (ours, its)]
    processor = [[run.processor_secs for run in runs] for runs in (ours, its)]
    own, other = ((statistics.median(times[side]), statistics.median(processor[side])) for side in (0, 1))
    return Row(work, peer, own, other, Ratios.of(*times), Ratios.of(*processor), target)


def table(works: Sequence[Work], results: Mapping[str, Any], by_processor: bool) -> list[Row]:
    """Returns the lines of all works that have results: see `speed_runs.load_results`."""
    return [
        row
        for work in works
        if work.letter in results
        for row in table_rows(work, [Run(**run) for run in results[work.letter]["measured"]], by_processor)
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
    """Returns differences in the work that the contestants have done; empty if there are none."""
    messages = []
    (first, expected), *others = checks.items()
    for name, check in others:
        for key in sorted({*expected, *check} - {"loss"}):
            if expected.get(key) != check.get(key):
                messages.append(f"{key}: {expected.get(key)} of {first}, {check.get(key)} of {name}")
    if work.untrained_loss is None:
        return messages
    losses = {name: check["loss"] for name, check in checks.items()}
    finite = [loss for loss in losses.values() if math.isfinite(loss)]
    median = statistics.median(finite) if finite else math.nan
    allowed = LOSS_TOLERANCE * max(median, work.untrained_loss / 3)
    for name, loss in losses.items():
        if not abs(loss - median) <= allowed:
            messages.append(f"loss: {loss:.4g} of {name}, with a median of {median:.4g}")
        if not loss < 0.95 * work.untrained_loss:
            messages.append(f"loss: {loss:.4g} of {name} is no better than that of an untrained model")
    return messages
