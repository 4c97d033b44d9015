import time

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from components.evaluator.gate.intervals import (
    auc,
    auc_difference,
    mean_difference,
    rate_difference,
    root_mean_difference,
    wilson_interval,
)


@pytest.fixture
def draw():
    return np.random.default_rng(11)


def scored(draw, size, signal=1.0, ties=True):
    labels = (draw.uniform(size=size) < 0.3).astype(float)
    noise = draw.normal(size=(2, size))
    first, second = labels * signal + noise[0], labels * signal + 0.6 * noise[0] + 0.8 * noise[1]
    return (labels, first.round(1), second.round(1)) if ties else (labels, first, second)


def test_the_interval_of_a_mean_is_that_of_the_paired_t_test(draw):
    first, second = draw.exponential(size=(2, 40))
    found = mean_difference(first, second, np.ones(40), 0.9)
    expected = scipy.stats.ttest_rel(first, second).confidence_interval(0.9)
    assert found.value == pytest.approx(np.mean(first) - np.mean(second))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_auc_is_that_of_scikit_learn(draw):
    labels, scores, _ = scored(draw, 300)  # to a tenth: many ties
    weights = draw.uniform(0.5, 3, size=300)
    for given in (np.ones(300), weights):
        expected = sklearn.metrics.roc_auc_score(labels, scores, sample_weight=given)
        assert auc(labels, scores, given) == pytest.approx(expected, abs=1e-12)


def delong(labels, first, second):
    """Returns difference and standard error, from the definition: every pair is looked at."""
    parts = []
    for scores in (first, second):
        positive, negative = scores[labels == 1][:, None], scores[labels == 0][None, :]
        wins = (positive > negative) + 0.5 * (positive == negative)
        parts.append((wins.mean(axis=1), wins.mean(axis=0)))
    of_positives, of_negatives = (
        np.cov(np.stack([parts[0][side], parts[1][side]])) / parts[0][side].size for side in (0, 1)
    )
    contrast = np.array([1, -1])
    variance = contrast @ (of_positives + of_negatives) @ contrast
    return parts[0][0].mean() - parts[1][0].mean(), variance**0.5


def test_the_interval_of_an_auc_difference_is_delongs(draw):
    labels, first, second = scored(draw, 120)
    difference, error = delong(labels, first, second)
    reach = scipy.stats.t.ppf(0.975, labels.sum() - 1) * error
    found = auc_difference(labels, first, second, np.ones(120), 0.95)
    assert found.value == pytest.approx(difference)
    assert (found.low, found.high) == pytest.approx((difference - reach, difference + reach))


def test_whole_weights_are_as_many_copies_of_an_example(draw):
    labels, first, second = scored(draw, 400)
    copies = draw.integers(1, 4, size=400)
    repeated = [np.repeat(values, copies) for values in (labels, first, second)]
    weighted = auc_difference(labels, first, second, copies.astype(float), 0.95)
    assert weighted.value == pytest.approx(auc_difference(*repeated, np.ones(copies.sum()), 0.95).value)
    mean = mean_difference(first, second, copies.astype(float), 0.95)
    assert mean.value == pytest.approx(np.mean(repeated[1]) - np.mean(repeated[2]))


def bootstrap(function, arrays, draw):
    """Returns the standard error of `function(*arrays)` over examples that are drawn again."""
    size = len(arrays[0])
    samples = (draw.integers(size, size=size) for _ in range(1500))
    return np.std([function(*(array[index] for array in arrays)) for index in samples])


@pytest.mark.parametrize("name", ["auc", "mean", "rate", "root mean"])
def test_weighted_intervals_are_those_of_the_bootstrap(name, draw):
    labels, first, second = scored(draw, 400)
    weights = draw.exponential(size=400) + 0.2

    def rates(values):
        return (values > 0.5).astype(float)

    def average(values, weights):
        return float(np.average(values, weights=weights))

    def difference(a, b, w):
        return average(a, w) - average(b, w)

    def roots(a, b, w):
        return average(a, w) ** 0.5 - average(b, w) ** 0.5

    def areas(y, a, b, w):
        return auc(y, a, w) - auc(y, b, w)

    function, interval, arrays = {
        "auc": (areas, auc_difference, [labels, first, second, weights]),
        "mean": (difference, mean_difference, [first, second, weights]),
        "rate": (difference, rate_difference, [rates(first), rates(second), weights]),
        "root mean": (roots, root_mean_difference, [first**2, second**2, weights]),
    }[name]
    found = interval(*arrays, 0.95)
    assert found.value == pytest.approx(function(*arrays))
    error = bootstrap(function, arrays, draw)
    assert (found.high - found.low) / 2 / 1.96 == pytest.approx(error, rel=0.12)


TRIALS = 400


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "signal"), [(40, 0.8), (300, 0.8), (300, 0.05)])
@pytest.mark.parametrize("metric", ["auc", "auc of a constant", "loss", "rate", "root mean"])
def test_an_interval_covers_the_true_difference_as_often_as_it_says(metric, size, signal):
    """400 trials at 95 %: a standard error of 1.1 points; 92 % is almost three of them away."""
    draw = np.random.default_rng(5)

    def values(count):
        labels, first, second = scored(draw, count, signal, ties=False)
        ones = np.ones(count)
        interval, *arrays = {
            "auc": (auc_difference, labels, first, second),
            "auc of a constant": (auc_difference, labels, first, None),
            "loss": (mean_difference, (first - labels) ** 2, np.abs(second)),
            "rate": (rate_difference, (first > 0.4) * 1.0, (second > 0.9) * 1.0),
            "root mean": (root_mean_difference, (first - labels) ** 2, (second - 0.3) ** 2),
        }[metric]
        return interval(*arrays, ones, 0.95)

    truth = values(200_000).value
    covered = np.mean([i.low <= truth <= i.high for i in (values(size) for _ in range(TRIALS))])
    assert 0.92 < covered < (0.99 if size == 300 else 1.01)


def test_too_few_examples_have_no_bounds():
    one = np.ones(1)
    for found in (
        mean_difference(one, 0 * one, one, 0.95),
        root_mean_difference(one, 0 * one, one, 0.95),
        auc_difference(np.array([1.0, 0, 0]), np.array([3.0, 2, 1]), None, np.ones(3), 0.95),
    ):
        assert (found.low, found.high) == (-np.inf, np.inf)
    assert np.isnan(auc(np.ones(3), np.ones(3), np.ones(3)))
    # One right answer more, of one: it may as well have been the other way round.
    assert rate_difference(one, 0 * one, one, 0.95).low < 0


@pytest.mark.parametrize(("size", "is_proof"), [(3, False), (6, True)])
def test_a_few_examples_in_the_right_order_are_no_proof(size, is_proof):
    # 3 of each class are in order by chance in 1 of 20 cases, 6 of each in 1 of 924.
    labels = np.repeat([0.0, 1.0], size)
    found = auc_difference(labels, np.arange(2.0 * size), None, np.ones(2 * size), 0.95)
    assert found.value == 0.5
    assert (found.low > 0) is is_proof


@pytest.mark.more
def test_a_million_examples_take_seconds(draw):
    labels, first, second = scored(draw, 1_000_000, ties=False)
    start = time.process_time()
    auc_difference(labels, first, second, np.ones(1_000_000), 0.95)
    mean_difference(first, second, np.ones(1_000_000), 0.95)
    assert time.process_time() - start < 10


def test_a_model_without_errors_has_an_interval():
    squares = np.array([1.0, 4.0, 9.0, 2.0])
    found = root_mean_difference(0 * squares, squares, np.ones(4), 0.95)
    assert found.value == -2
    assert found.low < -2 < found.high
    assert root_mean_difference(squares, squares, np.ones(4), 0.95).low == 0


def test_the_interval_of_a_share_by_hand():
    """Wilson's interval of 1 of 10 at 95 %, as in the literature: 0.0179 to 0.4042."""
    assert wilson_interval(1, 10, 0.95) == pytest.approx((0.01788, 0.40415), abs=1e-5)
    assert wilson_interval(0, 10, 0.95)[0] == pytest.approx(0, abs=1e-12)
    assert wilson_interval(10, 10, 0.95)[1] == pytest.approx(1)
    assert wilson_interval(0, 0, 0.95) == (0, 1)
