"""Measures the shift of a column's values between two data sets, from TFDV's statistics of both."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.parsed_columns import readings

Measure = Literal["l_infinity", "jensen_shannon"]

_Feature: TypeAlias = statistics_pb2.FeatureNameStatistics
_NUMERIC = (_Feature.INT, _Feature.FLOAT)
_NUM_BINS = 20
_MOST_CATEGORIES = 100
_MOST_DAYS_OUTSIDE = 3_652.5  # new dates are expected, but not of another decade
_Z = 4.5
"""Standard errors that chance explains: 1 of 150,000 comparisons of equal distributions exceeds them."""


@dataclass(frozen=True)
class Shift:
    # `l_infinity` is the largest difference of a share of values, for text; `jensen_shannon` the
    # Jensen-Shannon divergence in bits, for numbers. Both are from 0 to 1.
    measure: Measure
    value: float
    noise: float  # The shift that chance explains between samples of these sizes
    text: str  # The largest part of the shift, in words
    is_of_constant: bool = False  # True if the values were all equal, so that no model has learned from them

    def exceeds(self, threshold: float) -> bool:
        """Returns True if the shift is above a threshold, and larger than chance explains."""
        return self.value > max(threshold, self.noise)


def num_present(common: Any) -> int:
    """Returns the number of examples in which a column has a value.

    TFDV counts a feature with an empty list as not missing, and CsvExampleGen writes one for an empty
    cell. If examples can have several values, an empty list counts as a value here, too.
    """
    return int(common.tot_num_values if common.max_num_values == 1 else common.num_non_missing)


def common_stats(feature: _Feature) -> statistics_pb2.CommonStatistics:
    kind = feature.WhichOneof("stats")
    return getattr(feature, kind).common_stats if kind else statistics_pb2.CommonStatistics()


def compare_values(baseline: _Feature, now: _Feature) -> Shift | None:
    """Returns the shift of the values; None if either column has no values, or the types differ.

    Source: TFDV's drift comparators, which compare numbers by histograms of ten intervals of equal
    width; these differ between two samples of one distribution with a long tail. Here numbers are compared by
    quantiles, of which the statistics should have 100 (`StatsOptions(num_quantiles_histogram_buckets=100)`):
    with ten, TFDV's default, only large shifts exceed the noise.
    """
    if baseline.type in _NUMERIC and now.type in _NUMERIC:
        return _compare_numbers(baseline.num_stats, now.num_stats)
    if baseline.type == now.type == _Feature.STRING:
        return _compare_categories(baseline.string_stats, now.string_stats)
    return None


def compare_readings(baseline: _Feature, now: _Feature) -> dict[str, Shift]:
    """Returns the shifts of a parsed column by quantity; that of the cells that cannot be parsed is `unread`.

    Both columns are parsed in the format of the data to compare with, so that a column which is now
    written differently has shifted. The result is empty if there is no such format.
    """
    former, new = readings(baseline), readings(now)
    cells = [num_present(common_stats(feature)) for feature in (baseline, now)]
    description = next((name for name in former if name in new), None)
    if description is None or not all(cells):
        return {}
    unread = []
    for num_cells, reading in zip(cells, (former[description], new[description]), strict=True):
        values = next(iter(reading.values()))
        unread.append(1 - num_present(common_stats(values)) / num_cells)
    message = f"{percent(unread[1] - unread[0])} of the cells can no longer be parsed as {description}"
    more = max(0.0, unread[1] - unread[0])
    shifts = {"unread": Shift("l_infinity", more, _noise_of_share(unread[0], unread[1], *cells), message)}
    for quantity, values in former[description].items():
        if quantity not in new[description]:
            continue
        compare = _compare_days if quantity == "days" else _compare_numbers
        shift = compare(values.num_stats, new[description][quantity].num_stats)
        if shift is not None:
            message = f"hour of the day: {shift.text}" if quantity == "hours" else shift.text
            shifts[quantity] = replace(shift, text=message)
    return shifts


def new_values(baseline: _Feature, now: _Feature) -> dict[str, float]:
    """Returns the new values of a column of text, with their shares of all values.

    No value counts as new if there were more than 100 values before, or more than the statistics list,
    because unseen values are then to be expected.
    """
    if not (baseline.type == now.type == _Feature.STRING):
        return {}
    old_values = {bucket.label for bucket in baseline.string_stats.rank_histogram.buckets}
    total = num_present(now.string_stats.common_stats)
    if not old_values or len(old_values) > _MOST_CATEGORIES or baseline.string_stats.unique > len(old_values):
        return {}
    return {
        bucket.label: bucket.sample_count / total
        for bucket in now.string_stats.rank_histogram.buckets
        if bucket.label not in old_values
    }


def compare_missing(baseline: float, now: float, num_before: int, num_now: int) -> Shift:
    """Returns the shift of the share of missing values."""
    noise = _noise_of_share(baseline, now, num_before, num_now)
    message = f"{percent(baseline)} of the values were missing, now {percent(now)}"
    return Shift("l_infinity", abs(now - baseline), noise, message)


def _compare_categories(
    baseline: statistics_pb2.StringStatistics, now: statistics_pb2.StringStatistics
) -> Shift | None:
    totals = [num_present(stats.common_stats) for stats in (baseline, now)]
    if not all(totals):
        return None
    counts = [
        {bucket.label: bucket.sample_count for bucket in stats.rank_histogram.buckets}
        for stats in (baseline, now)
    ]
    # Statistics list the most frequent values only: any other value is at most as frequent as the last.
    names = sorted(counts[0].keys() | counts[1].keys())
    shares = [
        np.array([count.get(name, 0.0) / total for name in names])
        for count, total in zip(counts, totals, strict=True)
    ]
    moved = int(np.argmax(np.abs(shares[0] - shares[1])))
    was, is_now = (float(share[moved]) for share in shares)
    message = f"{names[moved]!r} was {percent(was)} of the values, now {percent(is_now)}"
    noise = _noise_of_share(was, is_now, *totals)
    return Shift("l_infinity", abs(was - is_now), noise, message)


def _compare_numbers(
    baseline: statistics_pb2.NumericStatistics, now: statistics_pb2.NumericStatistics
) -> Shift | None:
    quantiles = [histogram for stats in (baseline, now) if (histogram := _quantiles(stats)) is not None]
    if len(quantiles) < 2:
        return None
    # The last bin is open: the values between the last quantile and the maximum are mostly unknown.
    size = len(quantiles[0].high)
    ends = sorted({math.ceil(size * part / _NUM_BINS) - 1 for part in range(1, _NUM_BINS + 1)})
    highs, fills = np.unique(quantiles[0].high[ends], return_counts=True)
    # A value that a fifth of the examples have gets its own bin, or its replacement could go unnoticed.
    frequent = highs[fills >= _NUM_BINS / 5]
    edges = np.unique(np.concatenate([highs[:-1], frequent, np.nextafter(frequent, -np.inf)]))
    below = [histogram.cumulative_share(edges) for histogram in quantiles]
    shares = [np.diff(share, prepend=0.0, append=1.0) for share in below]
    value = _jensen_shannon(*shares)
    bins = int(np.sum(shares[0] + shares[1] > 0))
    sizes = [num_present(stats.common_stats) for stats in (baseline, now)]
    message = f"the median was {baseline.median:.6g}, now {now.median:.6g}"
    # The divergence if each bin of equal distributions is off by one bucket of a histogram. Frequent values
    # can cause this, as a bucket may hold two of them.
    coarseness = (bins * max(part.share.max() for part in quantiles)) ** 2 / (8 * math.log(2))
    noise = _noise_of_divergence(bins, *sizes) + coarseness
    return Shift("jensen_shannon", value, noise, message, bool(quantiles[0].low[0] == quantiles[0].high[-1]))


def _compare_days(
    baseline: statistics_pb2.NumericStatistics, now: statistics_pb2.NumericStatistics
) -> Shift | None:
    """Returns the share of dates far from all earlier dates, as newer dates alone are not a shift."""
    quantiles = _quantiles(now)
    sizes = [num_present(stats.common_stats) for stats in (baseline, now)]
    if quantiles is None or not all(sizes):
        return None
    edges = np.array([baseline.min - _MOST_DAYS_OUTSIDE, baseline.max + _MOST_DAYS_OUTSIDE])
    too_early, not_too_late = map(float, quantiles.cumulative_share(edges))
    share = min(max(too_early + 1 - not_too_late, 0.0), 1.0)  # rounded sums may lie outside
    first, last, median = (
        np.datetime64(math.floor(days), "D") for days in (baseline.min, baseline.max, now.median)
    )
    message = (
        f"{percent(share)} of the dates are more than ten years before or after all earlier ones ({first} to "
        f"{last}); the median is {median} now"
    )
    return Shift("l_infinity", share, _noise_of_share(0.0, share, *sizes), message)


@dataclass(frozen=True)
class _Quantiles:
    """A histogram whose buckets hold about equally many values."""

    low: np.ndarray
    high: np.ndarray
    share: np.ndarray

    def cumulative_share(self, edges: np.ndarray) -> np.ndarray:
        """Returns the share of the values at or below each edge."""
        width = self.high - self.low
        inside = edges[:, None] - self.low
        part = np.where(width > 0, np.clip(inside / np.where(width > 0, width, 1), 0, 1), inside >= 0)
        return part @ self.share


def _quantiles(stats: statistics_pb2.NumericStatistics) -> _Quantiles | None:
    for histogram in stats.histograms:
        if histogram.type == statistics_pb2.Histogram.QUANTILES and histogram.buckets:
            table = np.array([(b.low_value, b.high_value, b.sample_count) for b in histogram.buckets])
            total = table[:, 2].sum()
            if total > 0 and np.isfinite(table).all():
                return _Quantiles(table[:, 0], table[:, 1], table[:, 2] / total)
    return None


def _jensen_shannon(first: np.ndarray, second: np.ndarray) -> float:
    middle = (first + second) / 2

    def divergence(shares: np.ndarray) -> float:
        present = shares > 0
        return float(np.sum(shares[present] * np.log2(shares[present] / middle[present])))

    return max(0.0, (divergence(first) + divergence(second)) / 2)


def _noise_of_divergence(bins: int, first: int, second: int) -> float:
    """Returns the limit of the divergence between samples of one distribution, at `_Z` standard errors.

    8 ln 2 nm / (n + m) times the divergence is about chi-square with `bins - 1` degrees of freedom. Its
    quantile is that of Wilson and Hilferty (1931).
    """
    degrees = max(bins - 1, 1)
    spread = 2 / (9 * degrees)
    quantile = degrees * (1 - spread + _Z * math.sqrt(spread)) ** 3
    return quantile * (1 / first + 1 / second) / (8 * math.log(2))


def _noise_of_share(first: float, second: float, num_first: int, num_second: int) -> float:
    share = (first * num_first + second * num_second) / (num_first + num_second)
    return _Z * math.sqrt(share * (1 - share) * (1 / num_first + 1 / num_second))


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"
