import pytest
import tensorflow as tf

from estimator_core.heads import keras_metrics

LABELS, PREDICTIONS, WEIGHTS = [1.0, 0.0, 1.0, 1.0], [0.9, 0.6, 0.3, 0.7], [1.0, 2.0, 3.0, 4.0]


# By hand: above 0.5 are the 1st, 2nd and 4th; above 0.65 the 1st and 4th.
@pytest.mark.parametrize(
    ("metric", "values", "expected"),
    [
        (keras_metrics.mean("m"), (PREDICTIONS,), (0.9 + 1.2 + 0.9 + 2.8) / 10),
        (keras_metrics.accuracy("m"), (LABELS, [1.0, 0.0, 0.0, 0.0]), 3 / 10),
        (keras_metrics.accuracy("m", 0.65), (LABELS, PREDICTIONS), 7 / 10),
        (keras_metrics.accuracy_baseline("m"), (LABELS,), 8 / 10),
        (keras_metrics.accuracy_baseline("m"), ([0.0, 0.0, 1.0, 0.0],), 7 / 10),
        (keras_metrics.precision("m"), (LABELS, PREDICTIONS), 5 / 7),
        (keras_metrics.precision("m", 0.65), (LABELS, PREDICTIONS), 1.0),
        (keras_metrics.recall("m"), (LABELS, PREDICTIONS), 5 / 8),
        (keras_metrics.recall("m", 0.8), (LABELS, PREDICTIONS), 1 / 8),
        # Of the weight 8 * 2 of pairs of a positive and a negative, 5 * 2 are in the right order.
        (keras_metrics.auc("m", "ROC"), (LABELS, PREDICTIONS), 5 / 8),
    ],
)
def test_metrics_are_weighted_over_all_batches(metric, values, expected):
    assert metric.name == "m"
    # In two batches, of columns and of one row.
    first = [[[value] for value in column[:2]] for column in values]
    keras_metrics.update(metric, *first, sample_weight=tf.constant([[1.0], [2.0]]))
    keras_metrics.update(metric, *[column[2:] for column in values], sample_weight=WEIGHTS[2:])
    assert float(metric.result()) == pytest.approx(expected, abs=1e-6)


def test_one_weight_is_for_all_numbers_of_an_example():
    metric = keras_metrics.mean("m")
    keras_metrics.update(metric, [[1.0, 2.0], [3.0, 4.0]], sample_weight=tf.constant([[1.0], [3.0]]))
    assert float(metric.result()) == pytest.approx((1 + 2 + 9 + 12) / 8)
