"""Makes TFDV compute histograms of numbers with arrays, in a twentieth of the time.

TFDV makes the histogram of a column from 10,000 quantiles (100 for each of the 100 that the statistics
have), in Python, one message and one comparison after the other: 30 ms a column, most of StatisticsGen's
time in a table with many columns. The functions here return the same histograms.
"""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


def bin_weights(boundaries: Floats, cumulative: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns the lower bounds, the upper bounds and the weights of the bins between boundaries.

    Bins with the same upper bound share their weight evenly. The weight of the smallest value is added to the
    first bin, or evenly to the bins that equal it.
    """
    low, high = boundaries[:-1], boundaries[1:]
    weights = np.diff(cumulative.astype(np.float64))
    if not low.size:
        return low, high, weights
    begins = np.flatnonzero(np.concatenate([[True], high[1:] != high[:-1]]))
    sizes = np.diff(np.concatenate([begins, [high.size]]))
    weights = np.repeat(np.add.reduceat(weights, begins) / sizes, sizes)
    equals_first = (low == low[0]) & (high == high[0])
    num_equal = low.size if equals_first.all() else int(np.argmin(equals_first))
    weights[:num_equal] += float(cumulative[0]) / num_equal
    return low, high, weights


def overlaps(low: Floats, high: Floats, begin: float, end: float, is_first: bool) -> Floats:
    """Returns the share of each bin in an interval; a point on a left edge is in the first bin only."""
    is_point = (low == high) & (low == begin)
    within = np.minimum(high, end) - np.maximum(low, begin)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = within / (high - low)
    shares[(begin <= low) & (end >= high)] = 1.0
    shares[(high < begin) | (low > end)] = 0.0
    shares[is_point] = float(is_first)
    return shares


def mend(quantiles_util: Any) -> None:
    quantiles_util._get_bin_weights = bin_weights  # noqa: SLF001
    quantiles_util.generate_equi_width_histogram = _equal_widths(quantiles_util.generate_equi_width_histogram)


def _equal_widths(stock: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a replacement of TFDV's function, which calls `stock` for infinite numbers."""
    from tensorflow_metadata.proto.v0 import statistics_pb2

    def generate_equi_width_histogram(
        quantiles: Floats,
        cumulative_counts: Floats,
        finite_min: float,
        finite_max: float,
        num_buckets: int,
        num_pos_inf: float,
    ) -> Any:
        bounds = np.linspace(finite_min, finite_max, num_buckets + 1)
        if (
            finite_min == finite_max
            or not np.isfinite(bounds).all()
            or not np.isfinite(quantiles).all()
            or num_pos_inf
        ):
            return stock(quantiles, cumulative_counts, finite_min, finite_max, num_buckets, num_pos_inf)
        low, high, weights = bin_weights(quantiles, cumulative_counts)
        histogram = statistics_pb2.Histogram(type=statistics_pb2.Histogram.STANDARD)
        for index, (begin, end) in enumerate(itertools.pairwise(bounds)):
            parts = overlaps(low, high, begin, end, index == 0) * weights
            count = np.cumsum(parts)[-1]  # added in order, as TFDV does
            histogram.buckets.add(low_value=begin, high_value=end, sample_count=count)
        return histogram

    return generate_equi_width_histogram
