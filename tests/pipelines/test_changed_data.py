import pytest

from pipelines.changed_data import changed_data_note

THEN = {"auc": 0.9, "binary_crossentropy": 0.3, "recall": 0.5}
INTERVALS = {"auc": (0.88, 0.92), "binary_crossentropy": (0.25, 0.35)}


def note(metrics, intervals):
    return changed_data_note("7", THEN, INTERVALS, metrics, intervals)


def test_metrics_that_are_apart_are_named():
    found = note(
        {"auc": 0.6, "binary_crossentropy": 1.5},
        {"auc": (0.55, 0.65), "binary_crossentropy": (1.2, 1.8)},
    )
    assert found.startswith(
        "the data or what they mean have changed: of version 7, auc was 0.9 and is 0.6 and its "
        "binary_crossentropy was 0.3 and is 1.5,"
    )
    better = note({"auc": 0.99}, {"auc": (0.98, 0.999)})
    assert "auc was 0.9 and is 0.99, which" in better


@pytest.mark.parametrize(
    ("metrics", "intervals"),
    [
        ({"auc": 0.87}, {"auc": (0.85, 0.89)}),  # 0.88 to 0.89 is in both
        ({"auc": 0.6}, {"auc": (0.5, None)}),
        ({"auc": None}, {"auc": (0.1, 0.2)}),
        ({"recall": 0.1}, {"recall": (0.0, 0.2)}),  # nothing is known of it then
        ({}, {}),
    ],
)
def test_what_may_be_chance_is_not(metrics, intervals):
    assert note(metrics, intervals) is None
