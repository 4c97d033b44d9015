"""Finds columns that are the label in other words, by predicting the label from each column alone.

A column's values count as a leak only if they leave almost no error, because an honest column can also be
very good. For its gaps, removing half of the error is enough: a column filled in after the event is empty
wherever the event did not happen.
A leak that neither shows is found by the model's importances (`components.evaluator.gate.leak_doubts`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.data.formats.arrow_reading import read_numbers, read_times
from pipelines.data.kinds import ColumnKind, to_date_format
from pipelines.data.missing import find_missing
from pipelines.data.profile import CsvProfile

MAX_ERROR_RATIO = 0.02
"""A column that leaves less than this share of the most frequent class's error is a near-copy."""

MIN_CORRELATION = 0.9995
"""Correlation of the numbers, or of their ranks, with the label of a regression."""

MAX_ERROR_RATIO_OF_GAPS = 0.5
"""Like `MAX_ERROR_RATIO`, for predicting the label from whether the cell is empty.

This is a share of the squared error for a regression.
"""

_MAX_CLASSES = 50
_MIN_OTHER_ROWS = 20  # rows of other classes than the most frequent one
_NUM_BINS = 200


@dataclass(frozen=True)
class Leak:
    """A column that predicts the label on its own (target leakage)."""

    column: str
    evidence: str  # Quality of the prediction, in words
    is_copy: bool  # True if it is the label itself, each value under another name


def find_leaks(
    profile: CsvProfile,
    kinds: Mapping[str, ColumnKind],
    label: str,
    is_regression: bool,
    candidates: tuple[str, ...],
) -> list[Leak]:
    """Returns the columns that are near-copies of the label, or whose gaps tell most of it.

    Of a large table, the sample of the profile is used, at most 50,000 rows spread over the files. A rule is
    judged by leave-one-out: the rule for a row is made without it.
    """
    table = _sample(profile, (label, *candidates))
    has_label = ~table[label][1]
    names, is_missing = table[label]
    if is_regression:
        target = _numbers(names, is_missing, kinds[label])
        has_label &= np.isfinite(target)
        find, find_in_gaps = _correlation, _gaps_of_numbers
    else:
        target = _codes(names, is_missing)
        find, find_in_gaps = _rule, _gaps_of_classes
    if has_label.sum() < _MIN_OTHER_ROWS:
        return []
    leaks = []
    for name in candidates:
        cells, missing = table[name]
        leak = find(name, cells, missing, kinds[name], target, has_label, label)
        leak = leak or find_in_gaps(name, missing[has_label], target[has_label], label)
        if leak is not None:
            leaks.append(leak)
    return leaks


def _sample(profile: CsvProfile, names: tuple[str, ...]) -> dict[str, tuple[Any, Any]]:
    """Returns the cells (pyarrow) of each column, and a mask (NumPy) of the missing ones."""
    if profile.sample is None:
        raise ValueError("The profile has no sample of the rows any more.")
    positions = {name: position for position, name in enumerate(profile.columns)}
    sample = {}
    for name in names:
        cells, missing = find_missing(profile.sample.column(positions[name]))
        sample[name] = (cells, missing.to_numpy(zero_copy_only=False))
    return sample


def _codes(cells: Any, missing: Any) -> Any:
    """Returns a number for each distinct text; all missing cells share one number."""
    import pyarrow.compute as pc

    filled = pc.if_else(pa.array(missing), "", cells)
    return filled.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(cells: Any, missing: Any, kind: ColumnKind) -> Any:
    """Returns the numbers or times of cells as float64, NaN elsewhere."""
    date_format = to_date_format(kind)
    if date_format is not None:
        times = read_times(cells, date_format)
        return np.where(times.is_valid & ~missing, times.utc_secs.astype(np.float64), np.nan)
    return np.where(missing, np.nan, read_numbers(cells, kind.number_format))


def _rule(
    name: str, cells: Any, missing: Any, kind: ColumnKind, target: Any, has_label: Any, label: str
) -> Leak | None:
    """Returns the leak of a column whose value alone determines the class."""
    classes = np.unique(target[has_label], return_inverse=True)[1]
    if not _has_enough_classes(classes):
        return None
    values = _codes(cells, missing)
    if kind.name in ("number", "date"):
        numbers = _numbers(cells, missing, kind)
        if np.unique(numbers[np.isfinite(numbers)]).size > _NUM_BINS:
            values = _bins(numbers)
    values = np.unique(values[has_label], return_inverse=True)[1]
    counts = _counts(values, classes)
    error, base_error = _errors(values, classes, counts)
    if error > MAX_ERROR_RATIO * base_error:
        return None
    num_classes = counts.shape[1]
    is_copy = len(counts) == num_classes and np.count_nonzero(counts) == num_classes
    evidence = f"column {name!r} alone {_score(label, classes, error, base_error)}"
    return Leak(name, evidence, bool(is_copy))


def _gaps_of_classes(name: str, missing: Any, target: Any, label: str) -> Leak | None:
    """Returns the leak of a column that is empty for some classes and filled for others."""
    classes = np.unique(target, return_inverse=True)[1]
    if missing.all() or not missing.any() or not _has_enough_classes(classes):
        return None
    values = missing.astype(np.int64)
    error, base_error = _errors(values, classes, _counts(values, classes))
    if error > MAX_ERROR_RATIO_OF_GAPS * base_error:
        return None
    evidence = f"whether column {name!r} is empty {_score(label, classes, error, base_error)}"
    return Leak(name, evidence, is_copy=False)


def _gaps_of_numbers(name: str, missing: Any, target: Any, label: str) -> Leak | None:
    """Returns the leak of a column that is empty where the number is another."""
    num_gaps = np.count_nonzero(missing)
    if min(num_gaps, missing.size - num_gaps) < _MIN_OTHER_ROWS or not np.ptp(target):
        return None
    within = sum(np.square(part - part.mean()).sum() for part in (target[missing], target[~missing]))
    ratio = within / np.square(target - target.mean()).sum()
    if ratio > MAX_ERROR_RATIO_OF_GAPS:
        return None
    evidence = (
        f"whether column {name!r} is empty explains {1 - ratio:.0%} of the variance of {label!r} in "
        f"{target.size} rows"
    )
    return Leak(name, evidence, is_copy=False)


def _has_enough_classes(classes: Any) -> bool:
    sizes = np.bincount(classes)
    return sizes.size <= _MAX_CLASSES and classes.size - sizes.max() >= _MIN_OTHER_ROWS


def _counts(values: Any, classes: Any) -> Any:
    """Returns the number of rows by value and class."""
    num_classes = int(classes.max()) + 1
    length = (int(values.max()) + 1) * num_classes
    return np.bincount(values * num_classes + classes, minlength=length).reshape(-1, num_classes)


def _errors(values: Any, classes: Any, counts: Any) -> tuple[float, float]:
    """Returns the error of the most frequent class of a row's value, and of that of all rows.

    The rule for a row is made without it.
    """
    own = counts[values, classes]
    rivals = counts.copy()
    best = counts.argmax(axis=1)
    rivals[np.arange(len(counts)), best] = 0
    others = np.where(best[values] == classes, rivals.max(axis=1)[values], counts.max(axis=1)[values])
    return 1 - float(np.mean(own - 1 > others)), 1 - counts.sum(axis=0).max() / classes.size


def _score(label: str, classes: Any, error: float, base_error: float) -> str:
    shown = f"{1 - error:.2%}" if error else "100 %"
    return (
        f"predicts {label!r} correctly in {shown} of {classes.size} rows (the most frequent class alone: "
        f"{1 - base_error:.1%})"
    )


def _bins(numbers: Any) -> Any:
    """Returns the bin of each number, among bins of equal row counts; missing numbers have their own bin."""
    is_finite = np.isfinite(numbers)
    bounds = np.unique(np.quantile(numbers[is_finite], np.linspace(0, 1, _NUM_BINS + 1)[1:-1]))
    return np.where(is_finite, np.searchsorted(bounds, numbers, side="right"), _NUM_BINS + 1)


def _correlation(
    name: str, cells: Any, missing: Any, kind: ColumnKind, target: Any, has_label: Any, label: str
) -> Leak | None:
    if kind.name not in ("number", "date"):
        return None
    numbers = _numbers(cells, missing, kind)
    has_both = has_label & np.isfinite(numbers)
    if has_both.sum() < max(_MIN_OTHER_ROWS, has_label.sum() / 2):
        return None
    first, second = numbers[has_both], target[has_both]
    is_copy = bool((first == second).all()) and bool(has_both[has_label].all())
    linear = _pearson(first, second)
    ranks = _pearson(_ranks(first), _ranks(second))
    if is_copy:
        evidence = f"column {name!r} equals {label!r} in all {first.size} rows"
    elif linear >= MIN_CORRELATION:
        evidence = f"column {name!r} is a linear function of {label!r} (correlation {linear:.5f})"
    elif ranks >= MIN_CORRELATION and np.unique(second).size > _MIN_OTHER_ROWS:
        evidence = f"column {name!r} orders the rows as {label!r} does (rank correlation {ranks:.5f})"
    else:
        return None
    return Leak(name, evidence, is_copy)


def _pearson(first: Any, second: Any) -> float:
    first, second = first - first.mean(), second - second.mean()
    norm = np.sqrt((first**2).sum() * (second**2).sum())
    return float(abs((first * second).sum()) / norm) if norm else 0.0


def _ranks(numbers: Any) -> Any:
    return np.unique(numbers, return_inverse=True)[1].astype(np.float64)
