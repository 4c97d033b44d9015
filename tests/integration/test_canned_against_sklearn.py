"""Each canned type learns as well as scikit-learn's model of the same kind."""

import pytest

from benchmarks import canned_against_sklearn as benchmark
from tests.slow_params import with_slow

QUICK = {"DNNClassifier", "LinearRegressor", "RNNClassifier"}


@pytest.mark.parametrize("name", with_slow(benchmark.NAMES, set(benchmark.NAMES) - QUICK))
def test_the_score_is_within_two_percent(name):
    result = benchmark.compare(name)
    assert abs(result.difference) <= benchmark.TOLERANCE, result
