"""Areas under curves: those of tf.compat.v1.metrics.auc, and by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.heads.curve_area import curve_area

KINDS = [("ROC", "trapezoidal"), ("PR", "careful_interpolation"), ("PR", "trapezoidal")]


def values(curve, method, batches, reference=False):
    """Returns the value of the update after each batch, and the final value."""
    with tf.Graph().as_default(), tf1.Session() as session:
        labels, predictions = tf1.placeholder(tf.float32, [None, 1]), tf1.placeholder(tf.float32)
        weights = tf1.placeholder(tf.float32) if batches[0][2] is not None else None
        if reference:
            pair = tf1.metrics.auc(labels, predictions, weights, curve=curve, summation_method=method)
        else:
            pair = curve_area(labels, predictions, weights, curve, method, "auc")
        value, update = pair
        session.run(tf1.local_variables_initializer())
        fed = [tensor for tensor in (labels, predictions, weights) if tensor is not None]
        found = [session.run(update, dict(zip(fed, batch, strict=False))) for batch in batches]
        return [*found, session.run(value)]


def batches(weights, on_thresholds=False):
    rng = np.random.default_rng(3)
    made = []
    for size in (40, 1, 23):
        labels = rng.integers(0, 2, (size, 1)).astype(np.float32)
        predictions = np.clip(rng.normal(0.4 + 0.2 * labels, 0.3), 0, 1).astype(np.float32)
        if on_thresholds:
            predictions = (np.round(predictions * 199) / 199).astype(np.float32)
        made.append((labels, predictions, weights(rng, size)))
    return made


WEIGHTS = {
    "none": lambda rng, size: None,
    "whole": lambda rng, size: rng.integers(0, 4, (size, 1)).astype(np.float32),
    "fractions": lambda rng, size: rng.random((size, 1)).astype(np.float32),
    "scalar": lambda rng, size: np.float32(2),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("on_thresholds", [False, True])
@pytest.mark.parametrize("weights", sorted(WEIGHTS))
@pytest.mark.parametrize(("curve", "method"), KINDS)
def test_the_areas_are_those_of_tensorflows_metric(curve, method, weights, on_thresholds):
    data = batches(WEIGHTS[weights], on_thresholds)
    expected = values(curve, method, data, reference=True)
    np.testing.assert_allclose(values(curve, method, data), expected, rtol=2e-6)
    assert 0.5 < expected[-1] < 1


def test_the_area_is_the_share_of_pairs_in_order():
    # Positives at 0.8 and 0.4, negatives at 0.6 and 0.2: 3 of the 4 pairs are in order.
    data = [([[1], [0], [1], [0]], [[0.8], [0.6], [0.4], [0.2]], None)]
    assert values("ROC", "trapezoidal", data)[-1] == pytest.approx(0.75, abs=1e-5)


@pytest.mark.parametrize(("curve", "method"), KINDS)
def test_without_a_batch_it_is_that_of_tensorflows_metric(curve, method, session):
    ours = curve_area(tf.zeros([1]), tf.zeros([1]), None, curve, method, "auc")
    other = tf1.metrics.auc(tf.zeros([1]), tf.zeros([1]), curve=curve, summation_method=method)
    session.run(tf1.local_variables_initializer())
    assert session.run(ours[0]) == session.run(other[0])


@pytest.mark.parametrize("bad", [-0.01, 1.01, np.nan])
def test_predictions_must_be_probabilities(bad):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be in \[0, 1\]"):
        values("ROC", "trapezoidal", [([[1], [0]], [[0.5], [bad]], None)])


def test_the_counts_are_a_local_variable_and_a_metric(graph):
    curve_area(tf.zeros([1]), tf.zeros([1]), None, "ROC", "trapezoidal", "auc")
    (variable,) = tf1.local_variables()
    assert variable.name == "auc/counts:0"
    assert tf1.get_collection(tf1.GraphKeys.METRIC_VARIABLES) == [variable]
    assert tf1.global_variables() == []


def test_curves_of_the_same_tensors_share_their_counts(session):
    labels, predictions = tf.constant([1.0, 0.0]), tf.constant([0.8, 0.3])
    roc = curve_area(labels, predictions, None, "ROC", "trapezoidal", "roc")
    pr = curve_area(labels, predictions, None, "PR", "careful_interpolation", "pr")
    curve_area(labels, predictions + 0.0, None, "ROC", "trapezoidal", "other")
    assert [each.name for each in tf1.local_variables()] == ["roc/counts:0", "other/counts:0"]
    session.run(tf1.local_variables_initializer())
    for _ in range(3):
        session.run([roc[1], pr[1]])
    shared = tf1.local_variables()[0]
    assert session.run(shared).sum() == 6  # two examples in each of three batches, counted once
    assert session.run([roc[0], pr[0]]) == pytest.approx([1.0, 1.0], abs=1e-4)
