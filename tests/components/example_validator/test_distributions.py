import itertools

import numpy as np
import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.example_validator.distributions import (
    compare_missing,
    compare_readings,
    compare_values,
    new_values,
)
from components.parsed_columns import add_reading

FLOAT, STRING = (statistics_pb2.FeatureNameStatistics.FLOAT, statistics_pb2.FeatureNameStatistics.STRING)


def numbers(values, buckets=100):
    """Returns statistics as TFDV has them of a column of numbers."""
    feature = statistics_pb2.FeatureNameStatistics(type=FLOAT)
    stats = feature.num_stats
    stats.common_stats.num_non_missing = len(values)
    stats.median = float(np.median(values))
    edges = np.quantile(values, np.linspace(0, 1, buckets + 1), method="inverted_cdf")
    histogram = stats.histograms.add(type=statistics_pb2.Histogram.QUANTILES)
    for low, high in itertools.pairwise(edges):
        histogram.buckets.add(low_value=low, high_value=high, sample_count=len(values) / buckets)
    return feature


def words(**counts):
    feature = statistics_pb2.FeatureNameStatistics(type=STRING)
    feature.string_stats.common_stats.num_non_missing = sum(counts.values())
    for name, count in counts.items():
        feature.string_stats.rank_histogram.buckets.add(label=name, sample_count=count)
    return feature


def divergence(first, second):
    """Jensen-Shannon divergence in bits, from its definition by entropies."""

    def entropy(shares):
        shares = np.array([share for share in shares if share])
        return -np.sum(shares * np.log2(shares))

    middle = (np.array(first) + np.array(second)) / 2
    return entropy(middle) - (entropy(first) + entropy(second)) / 2


def test_text_is_compared_by_the_share_that_moved_most_beyond_the_noise():
    shift = compare_values(words(a=500, b=300, c=200), words(a=240, b=140, d=20))
    assert shift.measure == "l_infinity"
    assert shift.value == pytest.approx(0.2)  # of c, that is gone
    assert shift.text == "'c' was 20 % of the values, now 0 %"
    # 1,400 values of which 200 are c: 4.5 * sqrt(1/7 * 6/7 * (1/1000 + 1/400))
    assert shift.noise == pytest.approx(4.5 * np.sqrt(6 / 49 * (1 / 1000 + 1 / 400)))
    assert shift.exceeds(0.1)
    assert not shift.exceeds(0.21)
    # A difference within the noise is none.
    shift = compare_values(words(a=5, b=5), words(a=8, b=2))
    assert shift.value == pytest.approx(0.3)
    assert shift.noise > 0.3
    assert not shift.exceeds(0.1)


def test_numbers_of_few_values_have_the_divergence_of_their_shares():
    before = np.repeat([0.0, 1.0, 7.0], [5100, 2900, 2000])
    now = np.repeat([0.0, 1.0, 7.0], [2000, 3100, 4900])
    shift = compare_values(numbers(before), numbers(now))
    assert shift.measure == "jensen_shannon"
    assert shift.value == pytest.approx(divergence([0.51, 0.29, 0.2], [0.2, 0.31, 0.49]), abs=0.01)
    assert shift.text == "the median was 0, now 1"


def test_numbers_that_have_nothing_in_common_diverge_but_for_the_last_bin():
    random = np.random.default_rng(1)
    before = random.normal(size=4000)
    expected = divergence([0.05] * 20, [0.0] * 19 + [1.0])
    value = compare_values(numbers(before), numbers(before + 100)).value
    assert value == pytest.approx(expected, abs=1e-3)
    assert compare_values(numbers(before), numbers(before)).value == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("size", [60, 1000, 20_000])
@pytest.mark.parametrize("draw", ["lognormal", "integers", "zeros"])
def test_samples_of_one_distribution_are_within_the_noise(draw, size):
    random = np.random.default_rng(3)
    draws = {
        "lognormal": lambda size: random.lognormal(2, 2, size),
        "integers": lambda size: random.poisson(1.5, size).astype(float),
        "zeros": lambda size: random.lognormal(0, 1, size) * (random.random(size) < 0.4),
    }
    base = numbers(draws[draw](5000))
    for _ in range(40):
        shift = compare_values(base, numbers(draws[draw](size)))
        assert not shift.exceeds(0.001)


@pytest.mark.parametrize(("size", "deviations"), [(300, 1.0), (20_000, 0.4)])
def test_a_shift_is_more_than_noise(size, deviations):
    random = np.random.default_rng(4)
    base = numbers(random.lognormal(2, 1, 5000))
    for _ in range(10):
        shift = compare_values(base, numbers(random.lognormal(2 + deviations, 1, size)))
        assert shift.exceeds(0.001)


@pytest.mark.parametrize(("was", "is_now"), [(0.0, -1.0), (5.0, 3.0), (9.0, 99.0)])
def test_a_frequent_number_that_becomes_another_has_shifted(was, is_now):
    others = np.random.default_rng(1).uniform(1, 8, 2000)
    before, now = (numbers(np.append(others, [value] * 1000)) for value in (was, is_now))
    shift = compare_values(before, now)
    assert shift.value > 0.25  # one bit for a third of the values, if no other value is like the new one
    assert not shift.is_of_constant


def test_coarse_histograms_are_known_to_be_coarse():
    random = np.random.default_rng(5)
    values = random.poisson(1.5, 4000).astype(float)
    fine, coarse = (compare_values(numbers(values, n), numbers(values + 1, n)) for n in (100, 10))
    assert fine.exceeds(0.1)
    assert coarse.noise > 10 * fine.noise


def test_missing_values_are_a_share():
    shift = compare_missing(0.1, 0.35, 1000, 3000)
    assert shift.value == pytest.approx(0.25)
    assert shift.text == "10 % of the values were missing, now 35 %"
    assert shift.exceeds(0.1)
    assert compare_missing(0.35, 0.1, 1000, 3000).value == pytest.approx(0.25)


def test_what_can_not_be_compared():
    assert compare_values(words(a=3), numbers([1.0, 2.0])) is None
    assert compare_values(words(), words(a=3)) is None
    assert compare_values(numbers([1.0, 2.0]), statistics_pb2.FeatureNameStatistics(type=FLOAT)) is None


def test_values_that_were_not_there():
    assert new_values(words(a=3, b=1), words(b=6, c=3, d=1)) == {"c": 0.3, "d": 0.1}
    assert new_values(words(a=3), words(a=1)) == {}
    assert new_values(numbers([1.0, 2.0]), words(a=1)) == {}
    # Of many values, or of some that are not listed, none counts as new.
    many = words(**{f"v{number}": 1 for number in range(101)})
    assert new_values(many, words(other=3)) == {}
    unlisted = words(a=3, b=1)
    unlisted.string_stats.unique = 7
    assert new_values(unlisted, words(other=3)) == {}


def cells(count, **formats):
    """Returns statistics of so many cells, and of their values by format and quantity."""
    feature = words(cell=count)
    for description, quantities in formats.items():
        for quantity, values in quantities.items():
            found = numbers(values)
            found.num_stats.min, found.num_stats.max = min(values), max(values)
            add_reading(feature, description, quantity, found)
    return feature


def test_parsed_columns_are_compared_in_the_format_of_the_former_data():
    before = cells(1000, dollars={"numbers": range(1000)})
    now = cells(500, euros={"numbers": range(500)}, dollars={"numbers": [1000 * at for at in range(300)]})
    shifts = compare_readings(before, now)
    assert list(shifts) == ["unread", "numbers"]
    assert shifts["unread"].value == pytest.approx(0.4)
    assert shifts["unread"].text == "40 % of the cells can no longer be parsed as dollars"
    # Of 1,500 cells, 200 could not be read.
    noise = 4.5 * np.sqrt(200 / 1500 * 1300 / 1500 * (1 / 1000 + 1 / 500))
    assert shifts["unread"].noise == pytest.approx(noise)
    assert shifts["numbers"].exceeds(0.7)
    assert shifts["numbers"].text.startswith("the median was 499.5, now 149500")


def test_cells_that_read_again_or_have_no_common_format_are_no_shift():
    worse, better = cells(100, a={"numbers": range(60)}), cells(100, a={"numbers": range(90)})
    assert compare_readings(worse, better)["unread"].value == 0
    one = cells(9, dollars={"numbers": range(9)})
    assert compare_readings(one, cells(9, euros={"numbers": range(9)})) == {}
    assert compare_readings(words(a=9), one) == {}
    assert compare_readings(one, words()) == {}


def test_newer_dates_have_not_drifted_but_those_of_another_decade():
    # 2000-01-01 is day 10,957. All but a tenth are in the year after, the others ten years and a day later.
    before = cells(366, iso={"days": range(10_957, 10_957 + 366), "hours": [9.0] * 183 + [15.0] * 183})
    year = [10_957 + 366 + at for at in range(360)]
    far = [11_322 + 3_654] * 40
    shift = compare_readings(before, cells(400, iso={"days": year + far}))["days"]
    assert shift.measure == "l_infinity"
    assert shift.value == pytest.approx(0.1, abs=0.01)
    assert "more than ten years before or after all earlier ones (2000-01-01 to 2000-12-31)" in shift.text
    assert compare_readings(before, cells(360, iso={"days": year}))["days"].value == 0


def test_times_of_day_are_compared_as_hours():
    before = cells(400, iso={"days": [1] * 400, "hours": [8 + at / 50 for at in range(400)]})
    now = cells(400, iso={"days": [9] * 400, "hours": [1 + at / 50 for at in range(400)]})
    shift = compare_readings(before, now)["hours"]
    assert shift.exceeds(0.5)
    assert shift.text == "hour of the day: the median was 11.99, now 4.99"
