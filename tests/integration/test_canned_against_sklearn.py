"""Each canned type learns as well as scikit-learn's model of the same kind."""

import pytest

from benchmarks import canned_against_sklearn as benchmark

# The same models as the Classifiers', with the head given.
SLOW = [name for name in benchmark.NAMES if name.endswith("Estimator")]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in benchmark.NAMES
    ],
)
def test_the_score_is_within_two_percent(name):
    result = benchmark.compare(name)
    assert abs(result.difference) <= benchmark.TOLERANCE, result
