from dataclasses import replace

import pytest

from components.evaluator.gate.check import Check
from pipelines.config.evaluator import ThresholdConfig
from pipelines.root.check_records import against_text, check_line, check_records, interval_text, shown

CHECK = Check(
    metric="mean_squared_error", against="baseline", value=3.0, reference=2.0, bound=2.1,
    higher_is_better=False, difference=1.0, low=0.5, high=1.5, confidence=0.95, num_examples=77,
    passed=False, message="3 is worse than 2",
)  # fmt: skip


def records(*thresholds, checks=(), intervals=None):
    metrics = {"auc": 0.7, "mean_squared_error": 3.0, "recall": None}
    baseline = {"auc": 0.75, "mean_squared_error": 2.0}
    return check_records(
        checks, thresholds, {"Overall": metrics}, {"Overall": baseline}, {"Overall": intervals or {}}
    )


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        ({"metric": "auc", "lower": 0.6}, [("lower", 0.7, None, 0.6, True)]),
        ({"metric": "auc", "lower": 0.8}, [("lower", 0.7, None, 0.8, False)]),
        ({"metric": "auc", "upper": 0.8}, [("upper", 0.7, None, 0.8, True)]),
        ({"metric": "auc", "lower": 0.7}, [("lower", 0.7, None, 0.7, True)]),
        ({"metric": "auc", "upper": 0.6}, [("upper", 0.7, None, 0.6, False)]),
        (
            {"metric": "mean_squared_error", "upper": 4, "max_regression": 0.5},
            [("upper", 3.0, None, 4, True), ("max_regression", 3.0, 2.0, 2.5, False)],
        ),
        ({"metric": "auc", "max_regression": 0.06}, [("max_regression", 0.7, 0.75, 0.69, True)]),
        ({"metric": "auc", "max_regression": 0.05}, [("max_regression", 0.7, 0.75, 0.7, True)]),
        ({"metric": "recall", "lower": 0.1}, [("lower", None, None, 0.1, False)]),
        ({"metric": "recall", "max_regression": 0.1}, []),  # no baseline has it
    ],
)
def test_thresholds_become_checks(threshold, expected):
    found = [
        (c["against"], c["value"], c["reference"], pytest.approx(c["bound"]), c["passed"])
        for c in records(ThresholdConfig(**threshold))
    ]
    assert found == expected


def test_a_threshold_has_the_interval_that_is_known_of_its_metric():
    bounds = ThresholdConfig(metric="mean_squared_error", upper=4, max_regression=0.5)
    found = records(bounds, checks=[CHECK], intervals={"mean_squared_error": (2.5, None)})
    assert [c["against"] for c in found] == ["baseline", "upper", "max_regression"]
    assert [interval_text(c) for c in found] == ["+0.5 to +1.5", "2.5 to no bound", "+0.5 to +1.5"]
    assert [against_text(c) for c in found] == ["baseline", "upper", "max_regression"]


def test_bounds_of_a_class_and_a_slice():
    oslo = {"city": "Oslo", "day": "Mon"}
    bounds = [
        ThresholdConfig(metric="recall@late", lower=0.7, max_regression=0.1, slice=values)
        for values in (oslo, {"city": "Rome"})
    ]
    bounds.append(ThresholdConfig(metric="mean_squared_error", max_regression=0.5, slice=oslo))
    slice_name = "city_X_day:Oslo_X_Mon"
    metrics = {"Overall": {"recall@late": 0.9}, slice_name: {"recall@late": 0.61, "mean_squared_error": 3.0}}
    baseline = {"Overall": {"recall@late": 0.9}, slice_name: {"recall@late": 0.7, "mean_squared_error": 2.0}}
    intervals = {"Overall": {"recall@late": (0.8, 1.0)}, slice_name: {"recall@late": (0.5, 0.7)}}
    found = check_records([CHECK], bounds, metrics, baseline, intervals)
    assert [(c["against"], c["value"], c["passed"], c.get("slice")) for c in found[1:]] == [
        ("lower", 0.61, False, oslo),
        ("max_regression", 0.61, True, oslo),
        ("lower", None, False, {"city": "Rome"}),  # no example is there
        ("max_regression", 3.0, False, oslo),
    ]
    # The interval of a difference is known of all rows only.
    assert [(c["low"], c["high"]) for c in found[1:]] == [(0.5, 0.7), *[(None, None)] * 3]
    assert check_line(found[1]) == (
        "✗ recall of 'late' where city = 'Oslo' and day = 'Mon' 0.61 >= 0.7, lower (interval 0.5 to 0.7)"
    )


def test_lines_of_text():
    below, regression = records(
        ThresholdConfig(metric="auc", lower=0.8, max_regression=0.1), intervals={"auc": (0.65, 0.75)}
    )
    assert check_line(below) == "✗ auc 0.7 >= 0.8, lower (interval 0.65 to 0.75)"
    assert check_line(regression) == (
        "✓ auc 0.7 >= 0.65, max_regression from the baseline's 0.75 (interval not known)"
    )
    assert check_line(vars(CHECK)) == "✗ 3 is worse than 2"
    unbound = vars(replace(CHECK, low=None, high=None))
    assert interval_text(unbound) == "no bounds"
    assert shown(None) == "not a number"
