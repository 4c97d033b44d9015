from dataclasses import replace

import pytest

from components.evaluator.gate.check import Check, describe, interval_text, number

CHECK = Check(
    metric="auc", against="trivial", value=0.55, reference=0.5, bound=0.5, higher_is_better=True,
    difference=0.05, low=-0.01, high=0.11, confidence=0.9, num_examples=80, passed=False, message="",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "fewest", "expected"),
    [
        (
            {},
            9,
            "auc 0.55 is better by less than the interval than the trivial model's 0.5 (difference "
            "+0.05, 90 % interval -0.01 to +0.11; 80 examples): too few examples (80, 9 of the rarer "
            "class) to tell the model from a constant",
        ),
        ({}, 80, "80 examples): too few examples (80) to tell the model from a constant"),
        ({"passed": True, "low": 0.01}, 9, "auc 0.55 is better than the trivial model's 0.5 ("),
        ({"passed": True}, 9, "auc 0.55 is not worse than the trivial model's 0.5 ("),
        ({"difference": -0.05}, 9, "auc 0.55 is not better than the trivial model's 0.5 ("),
        (
            {"against": "baseline", "reference": 0.6, "difference": -0.05, "bound": 0.595},
            9,
            "auc 0.55 is worse than the baseline's 0.6 (difference -0.05, 90 % interval -0.01 to "
            "+0.11; the bound is 0.595; 80 examples)",
        ),
        ({"against": "baseline", "passed": True}, 9, "auc 0.55 is not worse than the baseline's"),
        ({"value": None}, 9, "auc is not a number: the model predicts NaN or infinity, or a class"),
        (
            {"metric": "mean_squared_error", "higher_is_better": False, "difference": -0.05},
            80,
            "mean_squared_error 0.55 is better by less than the interval",
        ),
    ],
)
def test_a_check_in_words(changes, fewest, expected):
    assert expected in describe(replace(CHECK, **changes), fewest)


def test_an_interval_without_an_end():
    assert interval_text(replace(CHECK, low=None)) == "+0.05, 90 % interval no bound to +0.11"
    assert number(None) == "no number"
