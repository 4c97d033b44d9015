import pytest

from components.evaluator.gate.default_checks import ValueThen
from pipelines.root import Root
from pipelines.root.baseline import baseline_when_pushed, changed_data_note
from tests.pushed_versions import serve_version

THEN = {"auc": 0.9, "binary_crossentropy": 0.3, "recall": 0.5}
INTERVALS = {"auc": (0.88, 0.92), "binary_crossentropy": (0.25, 0.35)}


def note(metrics, intervals):
    return changed_data_note("7", THEN, INTERVALS, metrics, intervals)


def test_metrics_that_are_apart_are_named():
    found = note(
        {"auc": 0.6, "binary_crossentropy": 1.5}, {"auc": (0.55, 0.65), "binary_crossentropy": (1.2, 1.8)}
    )
    assert found.startswith(
        "the data or their meaning have changed: version 7's auc was 0.9 and is 0.6 and its "
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


def test_what_the_served_version_reached_when_it_was_pushed(killed, tmp_path):
    root = tmp_path / "root"
    assert baseline_when_pushed(Root(root)) is None
    checks = (
        {"metric": "auc", "against": "trivial", "value": 0.9, "reference": 0.5},
        {"metric": "binary_crossentropy", "against": "trivial", "value": 0.3, "reference": 0.6},
    )
    for version, run_id, made in ((1, "20260101-000001", checks), (2, "20260101-000002", ())):
        Root(root).records.write(
            killed.changed(run_id=run_id, status="pushed", checks=made, intervals=INTERVALS)
        )
        serve_version(root / "serving", version, run_id)
        then = (
            ValueThen("auc", 0.9, 0.5, (0.88, 0.92)),
            ValueThen("binary_crossentropy", 0.3, 0.6, (0.25, 0.35)),
        )
        assert baseline_when_pushed(Root(root)) == (then if version == 1 else None)
