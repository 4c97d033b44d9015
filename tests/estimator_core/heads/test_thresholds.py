import pytest
import tensorflow as tf

from estimator_core.heads import thresholds


def test_thresholds_are_kept_in_their_order():
    assert thresholds.check_thresholds([0.75, 0.25]) == (0.75, 0.25)
    assert thresholds.check_thresholds(None) == ()


@pytest.mark.parametrize("outside", [0.0, 1.0, -0.1, 1.5])
def test_thresholds_lie_between_0_and_1(outside):
    with pytest.raises(ValueError, match=r"in \(0, 1\)"):
        thresholds.check_thresholds([0.5, outside])


def test_three_metrics_for_each_threshold_above_which_probabilities_count():
    assert thresholds.threshold_metrics(()) == {}
    names = ("accuracy", "precision", "recall")
    both = [f"{name}/positive_threshold_{threshold}" for name in names for threshold in (0.25, 0.5)]
    assert sorted(thresholds.threshold_metrics([0.25, 0.5])) == both
    labels = tf.constant([[1.0], [0.0], [1.0]])
    found = list(thresholds.threshold_values([0.5], labels, tf.constant([[0.25], [0.5], [0.75]])))
    assert [name for name, _, _ in found] == [f"{name}/positive_threshold_0.5" for name in names]
    for _, its_labels, predictions in found:
        assert its_labels is labels
        assert predictions.numpy().tolist() == [[0.0], [0.0], [1.0]]
