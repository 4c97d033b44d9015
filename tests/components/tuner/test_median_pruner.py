import optuna
import pytest

from components.tuner.study import MedianPruner


def study_of(direction, others):
    study = optuna.create_study(direction=direction)
    for number, values in enumerate(others):
        study.add_trial(trial(values, "odd" if number % 2 else "even", value=0.0))
    return study


def trial(values, model="even", **settings):
    attributes = {"values": {"model": model}}
    return optuna.trial.create_trial(intermediate_values=values, user_attrs=attributes, **settings)


def running(values):
    return trial(values, state=optuna.trial.TrialState.RUNNING)


def prunes(study, values, groups=()):
    return MedianPruner(groups, min_evaluations=2).prune(study, running(values))


# The best values up to evaluation 1 are 1, 2, 3 and 8: their median is 2.5. Evaluation 2 does not count.
OTHERS = [{0: 5.0, 1: 1.0}, {0: 2.0}, {0: 3.0, 1: 4.0, 2: 0.0}, {0: 9.0, 1: 8.0}]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({0: 9.0, 1: 2.6}, True),
        ({0: 9.0, 1: 2.5}, False),
        ({0: 2.4, 1: 9.0}, False),  # its best so far counts
        ({0: 9.0}, False),  # too early
        ({}, False),
    ],
)
def test_worse_than_the_median_is_pruned(values, expected):
    assert prunes(study_of("minimize", OTHERS), values) is expected


def test_higher_is_better_if_it_is_maximized():
    # The best values up to evaluation 1 are 5, 2, 4 and 9: their median is 4.5.
    study = study_of("maximize", OTHERS)
    assert prunes(study, {0: 4.4, 1: 4.4})
    assert not prunes(study, {0: 4.4, 1: 4.6})


def test_the_first_three_evaluations_end_no_trial():
    study = study_of("minimize", [{0: 1.0}] * 4)
    for number in range(5):
        begun = running(dict.fromkeys(range(number), 9.0))
        assert MedianPruner().prune(study, begun) is (number >= 4)


def test_three_others_are_too_few_and_those_of_another_group_do_not_count():
    assert not prunes(study_of("minimize", OTHERS[:3]), {0: 9.0, 1: 9.0})
    assert not prunes(study_of("minimize", OTHERS), {0: 9.0, 1: 9.0}, ("model",))
    doubled = study_of("minimize", OTHERS * 2)
    # Of the even ones, the best values are 1, 3, 1 and 3: their median is 2.
    assert prunes(doubled, {0: 9.0, 1: 2.1}, ("model",))
    assert not prunes(doubled, {0: 9.0, 1: 2.0}, ("model",))
