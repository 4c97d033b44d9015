import numpy as np
import pytest

from components.serving_check.comparison import compare, excess

ROWS = np.arange(4)


def test_the_tolerance_is_relative_to_the_value_and_to_the_typical_one():
    judged = np.array([[0.0], [1.0], [1.0], [100.0]])  # the median is 1
    # Allowed: 0.1 * (0 + 1), 0.1 * (1 + 1), and 0.1 * (100 + 1).
    served = judged + np.array([[0.05], [0.1], [0.4], [20.2]])
    assert excess(served, judged, 0.1)[:, np.newaxis] == pytest.approx(np.array([[0.5], [0.5], [2.0], [2.0]]))

    small = np.array([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]])  # of many classes
    assert (excess(small + 1e-7, small, 1e-4) < 1).all()


def test_numbers_that_are_not_finite_equal_themselves_alone_as_all_do_without_a_tolerance():
    judged = np.array([[np.nan], [np.inf], [np.nan], [1.0]])
    served = np.array([[np.nan], [np.inf], [1.0], [np.nan]])
    assert excess(served, judged, 0.1).tolist() == [0, 0, np.inf, np.inf]
    assert excess(np.array([[1.0], [2.0]]), np.array([[1.0], [2.1]]), 0.0).tolist() == [0, np.inf]


def test_outputs_are_compared_by_name_and_by_the_names_of_canned_heads():
    judged = {"logistic": np.c_[[0.1, 0.2, 0.3, 0.4]], "two/logistic": np.c_[[0.9, 0.8, 0.7, 0.6]]}
    outputs = {"outputs": judged["logistic"][:, 0]}
    found, without = compare("regression", (ROWS, outputs), (ROWS, judged), 1e-4)
    assert [(one.output, one.prediction, one.num_different) for one in found] == [("outputs", "logistic", 0)]
    found, _ = compare("two/regression", (ROWS, {"outputs": judged["logistic"]}), (ROWS, judged), 1e-4)
    assert [(one.prediction, one.num_different) for one in found] == [("two/logistic", 4)]
    assert without == []


def test_an_output_of_another_name_counts_if_it_has_the_values_of_a_prediction():
    judged = {"a": np.array([1.0, 2.0, 3.0, 4.0]), "b": np.array([5.0, 6.0, 7.0, 8.0])}
    outputs = {"mine": judged["b"], "other": judged["b"] + 1, "text": np.array([b"x"] * 4, object)}
    found, without = compare("s", (ROWS, outputs), (ROWS, judged), 1e-4)
    assert [(one.output, one.prediction) for one in found] == [("mine", "b")]
    assert without == ["other", "text"]


def test_only_rows_that_both_have_are_compared_and_the_worst_come_first():
    served = (np.array([1, 3]), {"a": np.array([2.5, 9.0])})
    judged = (ROWS, {"a": np.array([1.0, 2.0, 3.0, 4.0])})
    ((found,), _) = compare("s", served, judged, 1e-4)
    assert (found.num_rows, found.num_different) == (2, 2)
    worst, other = found.worst
    assert worst == {"row": 3, "served": [9.0], "judged": [4.0]}
    assert other == {"row": 1, "served": [2.5], "judged": [2.0]}


@pytest.mark.parametrize(("others", "different"), [(2, 0), (3, 3)])
def test_a_class_may_differ_in_two_rows_of_a_thousand(others, different):
    judged = np.array([b"yes"] * 1000, object)
    served = judged.copy()
    served[:others] = b"no"
    rows = np.arange(1000)
    ((found,), _) = compare("s", (rows, {"c": served}), (rows, {"c": judged}), 1e-4)
    assert found.num_different == different


def test_one_by_one_only_numbers_are_compared():
    outputs = {"c": np.array([1, 2, 3, 4]), "p": np.array([0.1, 0.2, 0.3, 0.4])}
    found, without = compare("s", (ROWS, outputs), (ROWS, outputs), 1e-4, one_by_one=True)
    assert [(one.output, one.one_by_one) for one in found] == [("p", True)]
    assert without == []
