import pytest
import tensorflow as tf

from estimator_core.heads import thresholds


def test_no_thresholds_give_no_metrics():
    assert thresholds.check_thresholds(None) == ()
    assert thresholds.threshold_metrics(()) == {}


def test_thresholds_are_kept_in_their_order():
    assert thresholds.check_thresholds([0.75, 0.25]) == (0.75, 0.25)


@pytest.mark.parametrize("outside", [0.0, 1.0, -0.1, 1.5])
def test_thresholds_lie_between_0_and_1(outside):
    with pytest.raises(ValueError, match=r"in \(0, 1\)"):
        thresholds.check_thresholds([0.5, outside])


def test_three_metrics_for_each_threshold():
    assert sorted(thresholds.threshold_metrics([0.25, 0.5])) == [
        "accuracy/positive_threshold_0.25",
        "accuracy/positive_threshold_0.5",
        "precision/positive_threshold_0.25",
        "precision/positive_threshold_0.5",
        "recall/positive_threshold_0.25",
        "recall/positive_threshold_0.5",
    ]


def test_only_probabilities_above_the_threshold_count():
    labels = tf.constant([[1.0], [0.0], [1.0]])
    found = list(thresholds.threshold_values([0.5], labels, tf.constant([[0.25], [0.5], [0.75]])))
    assert [name for name, _, _ in found] == [
        "accuracy/positive_threshold_0.5",
        "precision/positive_threshold_0.5",
        "recall/positive_threshold_0.5",
    ]
    for _, its_labels, predictions in found:
        assert its_labels is labels
        assert predictions.numpy().tolist() == [[0.0], [0.0], [1.0]]
