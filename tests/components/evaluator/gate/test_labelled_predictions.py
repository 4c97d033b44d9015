import numpy as np
import pytest

from components.evaluator.gate.labelled_predictions import (
    LabelledPredictions,
    LabelTally,
    concatenate,
    head_problem_type,
    losses,
    trivial_answers,
)


def batch(labels, predictions, problem_type, weights=None):
    predictions = {"m": np.array(predictions)}
    return LabelledPredictions.from_batch(np.array(labels), predictions, weights, problem_type)


def test_the_predictions_of_a_canned_head_tell_the_problem_type():
    names = ("logistic", "head/probabilities", "predictions", "", "scores")
    found = [head_problem_type(name) for name in names]
    assert found == ["binary", "multi-class", "regression", None, None]


def test_binary_answers_and_losses():
    given = batch([1, 0, 1], [0.75, 0.5, 0.0], "binary")
    assert given.answers["m"].tolist() == [[0.75], [0.5], [0.0]]
    # -ln 0.75, -ln 0.5, and -ln of the smallest probability, 1e-7.
    assert losses(given, given.answers["m"]) == pytest.approx([0.287682, 0.693147, 16.118096])
    two = batch([1, 0], [[0.25, 0.75], [0.5, 0.5]], "binary")
    assert two.answers["m"].tolist() == [[0.75], [0.5]]


def test_multi_class_answers():
    probabilities = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.4, 0.3, 0.3]]
    given = batch([1, 2, 3], probabilities, "multi-class", np.array([1, 2, 3]))
    # The third label is a class that the model does not have.
    assert given.answers["m"].tolist() == [[0.5, 1], [0.1, 0], [0, 0]]
    assert given.weights.tolist() == [1, 2, 3]
    assert losses(given, given.answers["m"])[:2] == pytest.approx([0.693147, 2.302585])


def test_a_trivial_model_predicts_the_label_shares_or_the_mean():
    multi = batch([1, 1, 0, 2], np.full((4, 3), 1 / 3), "multi-class")
    first = LabelTally.from_labels(np.array([0, 0, 0, 1]), np.array([1.0, 1, 1, 4]), "multi-class")
    tally = first + LabelTally.from_labels(np.array([0, 3]), np.array([2.0, 1]), "multi-class")
    assert tally.by_class == {0: 5, 1: 4, 3: 1}
    answers = trivial_answers(tally, multi)
    assert answers.tolist() == [[0.4, 0], [0.4, 0], [0.5, 1], [0, 0]]
    numbers = batch([1.0, 5], np.zeros(2), "regression")
    mean = LabelTally.from_labels(np.array([2.0, 6]), np.array([3.0, 1]), "regression")
    assert trivial_answers(mean, numbers).tolist() == [[3], [3]]
    prior = LabelTally.from_labels(np.array([0, 1]), np.array([3.0, 1]), "binary")
    binary = batch([1], np.zeros(1), "binary")
    assert trivial_answers(prior, binary).tolist() == [[0.25]]
    for problem_type in ("binary", "multi-class", "regression"):  # a head with two labels
        assert LabelTally.from_labels(np.ones((3, 2)), np.ones(3), problem_type) == LabelTally()


def test_parts_come_together_and_what_is_unusable_in_one_is_so_in_all():
    def part(labels, baseline):
        size = len(labels)
        predictions = {"c": np.full(size, 0.5), "b": np.array(baseline)}
        return LabelledPredictions.from_batch(np.array(labels), predictions, None, "binary")

    good = concatenate([part([0, 1], [0.2, 0.3]), concatenate([]), part([1], [0.4])])
    assert good.labels.tolist() == [0, 1, 1]
    assert good.answers["b"].tolist() == [[0.2], [0.3], [0.4]]
    mixed = concatenate([part([0, 1], [0.2, 0.3]), part([1], [4.0])])
    assert list(mixed.answers) == ["c"]
    assert mixed.unusable == {"b": "its predictions are not probabilities between 0 and 1"}
    assert concatenate([]).problem_type is None


@pytest.mark.parametrize(
    ("problem_type", "labels", "predictions", "reason"),
    [
        ("binary", [0, 2], [0.1, 0.2], "neither 0 nor 1"),
        ("binary", [0, 1], [[0.1, 0.2, 0.7]] * 2, r"one probability; the model has .*\[None, 3\]"),
        ("binary", [0, 1], [-3.0, 3.0], "not probabilities between 0 and 1"),
        ("binary", [[0, 1], [1, 0]], [0.1, 0.2], "2 labels per example"),
        ("multi-class", [0, 1.5], [[0.5, 0.5]] * 2, "not class ids"),
        ("multi-class", [0, 1], [0.5, 0.5], "a probability for each class"),
        ("multi-class", [0, 1], [[3.0, 0.1]] * 2, "add up to 1"),
        ("regression", [0, float("nan")], [0.5, 0.5], "not finite"),
        ("regression", [0, 1], [[0.5, 0.5]] * 2, "one number per example"),
        ("regression", ["a", "b"], [0.5, 0.5], "labels are not numbers"),
        ("regression", [0, 1], ["a", "b"], "predictions are not numbers"),
        (None, [0, 1], [0.5, 0.5], r"Set data\.problem_type"),
    ],
)
def test_what_does_not_fit_the_problem_has_a_reason(problem_type, labels, predictions, reason):
    given = batch(labels, predictions, problem_type)
    assert given.answers == {}
    with pytest.raises(ValueError, match=reason):
        raise ValueError(given.unusable["m"])


@pytest.mark.parametrize("problem_type", ["binary", "multi-class"])
def test_nan_among_probabilities_is_judged(problem_type):
    given = batch([1, 0], [[0.2, 0.8], [np.nan, np.nan]], problem_type)
    assert np.isnan(losses(given, given.answers["m"])).tolist() == [False, True]


def test_some_of_the_examples():
    given = batch([0, 1, 1], [0.25, 0.5, 0.75], "binary", np.arange(3.0))
    some = given.take(np.array([0, 2]))
    assert (some.labels.tolist(), some.weights.tolist()) == ([0, 1], [0, 2])
    assert some.answers["m"].tolist() == [[0.25], [0.75]]
    assert some.problem_type == "binary"
