import math

import pytest

from components.tuner.results import SearchResult, TrialResult
from components.tuner.search_space import Range, SearchSpace
from components.tuner.settings import TunerSettings

SPACE = SearchSpace((Range("rate", 0.0, 1.0),))


def trial(number, *folds):
    value = math.fsum(folds) / len(folds)
    return TrialResult(number, "finished", value, {}, is_first=number == 0, folds=folds)


def search(*trials, direction="minimize"):
    folds = len(trials[0].folds)
    settings = TunerSettings(SPACE, folds=folds, direction=direction)
    return SearchResult(settings, trials, {})


@pytest.mark.parametrize(
    ("folds", "chosen"),
    [
        # The defaults have 5, 7, 9. Differences 0, 1, 2: mean 1, standard deviation 1, so two standard
        # errors of the mean are 2 / sqrt(3) = 1.155. The mean is above one, but not above two of them.
        ((5.0, 6.0, 7.0), 0),
        # Differences 1, 1, 3: mean 5/3, variance (4/9 + 4/9 + 16/9) / 2 = 4/3, and two standard errors
        # are 2 * sqrt(4/3 / 3) = 4/3.
        ((4.0, 6.0, 6.0), 1),
        # The levels of the folds differ by 4, but the trial is better by 0.1 in each.
        ((4.9, 6.9, 8.9), 1),
    ],
)
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_defaults_stay_unless_the_folds_agree_that_a_trial_is_better(folds, chosen, direction):
    sign = 1 if direction == "minimize" else -1
    first, other = ([sign * one for one in values] for values in ((5.0, 7.0, 9.0), folds))
    result = search(trial(0, *first), trial(1, *other), direction=direction)
    assert result.best.number == 1
    assert result.chosen.number == chosen
    assert result.as_record()["chosen"] == chosen


@pytest.mark.parametrize(("value", "chosen"), [(0.4961, 0), (0.4949, 1)])
def test_with_one_fold_a_trial_has_to_be_better_by_a_hundredth(value, chosen):
    result = search(trial(0, 0.5), trial(1, value))
    assert result.margin == pytest.approx(0.005)
    assert result.chosen.number == chosen


def test_without_a_result_of_the_defaults_the_best_trial_is_chosen():
    failed = TrialResult(0, "failed", None, {}, is_first=True)
    result = SearchResult(TunerSettings(SPACE), (failed, trial(1, 0.5)), {})
    assert (result.chosen.number, result.margin) == (1, None)
    assert SearchResult(TunerSettings(SPACE), (failed,), {}).chosen is None
