import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from sklearn.metrics import roc_auc_score
from tensorflow.python.ops import metrics_impl

from estimator_core.heads import metrics


def measured(make_metric, *batches):
    """Returns a metric's value in a graph, after batches of (*values, weights)."""
    with tf.Graph().as_default():
        metric = make_metric()
        updates = iter(zip(*batches, strict=True))
        *values, weights = (
            tf1.placeholder(np.asarray(column[0]).dtype, name=f"value_{i}") if column[0] is not None else None
            for i, column in enumerate(updates)
        )
        update = metric.update_state(*values, sample_weight=weights)
        fed = [*values, *([] if weights is None else [weights])]
        with tf1.Session() as session:
            session.run(tf1.local_variables_initializer())
            for batch in batches:
                session.run(update, dict(zip(fed, batch, strict=False)))
            assert session.run(metric.as_pair()[0]) == session.run(metric.result())
            return session.run(metric.result())


def test_a_metric_has_no_value_before_the_first_batch_and_the_update_is_what_is_returned(graph):
    metric = metrics.mean("m")
    for value in (metric.result, metric.as_pair):
        with pytest.raises(ValueError, match="call update_state"):
            value()
    assert metric.update_state(tf.constant([1, 2])) is metric.as_pair()[1]
    assert metric.result() is metric.as_pair()[0]


CLASSES = ([1, 0, 2], np.array([1, 0, 0], np.int64))
FRACTIONS = (np.array([1.0, 0.4], np.float32), np.array([1.0, 0.0], np.float32))  # 0.4 equals no class
# One true positive; two are predicted, three are there. Weighted: 2 of 6, 2 of 4.
RETRIEVED, WEIGHTS = ([1, 1, 1, 0], [1, 0, 0, 1]), [2.0, 1.0, 1.0, 4.0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("metric", "batches", "expected"),
    [
        (metrics.mean, [([1, 2], None), ([6], None)], 3.0),
        (metrics.mean, [([1.0, 5.0], [3.0, 1.0]), ([7.0], [0.0])], 2.0),  # (1 * 3 + 5 * 1 + 7 * 0) / 4
        (metrics.accuracy, [(*CLASSES, None)], 2 / 3),
        (metrics.accuracy, [(*CLASSES, [1.0, 2.0, 5.0])], 3 / 8),
        (metrics.accuracy, [(*FRACTIONS, None)], 0.5),
        # That of the more frequent class.
        (metrics.accuracy_baseline, [([1, 0, 0, 0], None)], 0.75),
        (metrics.accuracy_baseline, [([1, 1, 0], None)], 2 / 3),
        (metrics.accuracy_baseline, [([1, 0], [1.0, 3.0])], 0.75),
        (metrics.accuracy_baseline, [([1, 0], [0.0, 0.0])], 0.0),
        (metrics.precision, [(*RETRIEVED, None)], 1 / 2),
        (metrics.precision, [(*RETRIEVED, WEIGHTS)], 1 / 3),
        (metrics.recall, [(*RETRIEVED, None)], 1 / 3),
        (metrics.recall, [(*RETRIEVED, WEIGHTS)], 1 / 2),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_weighted_metrics_over_all_batches(metric, batches, expected):
    assert measured(lambda: metric("m"), *batches) == pytest.approx(expected)


@pytest.fixture
def scored():
    """Labels, noisy scores in (0, 1) and weights of 500 examples."""
    random = np.random.default_rng(5)
    labels = random.integers(0, 2, 500)
    scores = 1 / (1 + np.exp(-random.normal(labels - 0.5, 1.0)))
    return labels, scores.astype(np.float32), random.uniform(0.5, 2.0, 500).astype(np.float32)


@pytest.mark.parametrize(
    ("arguments", "curve", "summation"),
    # As Keras calls it: the trapezoidal rule for ROC, careful interpolation for PR.
    [({}, "ROC", "interpolation"), ({"curve": "PR"}, "PR", "interpolation")],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_auc_is_that_of_keras_over_200_thresholds(scored, arguments, curve, summation, weighted):
    labels, scores, weights = scored
    weights = weights if weighted else None
    keras_auc = keras.metrics.AUC(num_thresholds=200, curve=curve, summation_method=summation)
    keras_auc.update_state(labels, scores, weights)
    found = measured(lambda: metrics.auc("auc", **arguments), (labels, scores, weights))
    assert found == pytest.approx(keras_auc.result(), rel=1e-6)
    if curve == "ROC":
        assert found == pytest.approx(roc_auc_score(labels, scores, sample_weight=weights), abs=1e-3)


def test_the_areas_of_pr_differ_by_their_rule(scored):
    labels, scores, _ = scored
    rules = [
        functools.partial(metrics.auc, "auc", "PR", rule) for rule in ("trapezoidal", "careful_interpolation")
    ]
    found = [measured(make, (labels, scores, None)) for make in rules]
    assert found[0] == pytest.approx(found[1], abs=1e-2)
    assert found[0] != pytest.approx(found[1], abs=1e-6)


def test_the_variables_of_a_metric_have_its_name(graph):
    names = ("mean", "accuracy", "accuracy_baseline", "precision", "recall", "auc")
    for name in names:
        metric = getattr(metrics, name)(f"my_{name}")
        values = [tf.constant([1.0])] * (1 if name in ("mean", "accuracy_baseline") else 2)
        metric.update_state(*values)
    scopes = {variable.op.name.split("/")[0] for variable in tf1.local_variables()}
    assert scopes == {f"my_{name}" for name in names}


@pytest.mark.parametrize("curve", ["ROC", "PR"])
def test_who_replaces_the_counts_of_tensorflow_can_measure_nan(monkeypatch, curve):
    """AdaNet evaluates candidates that diverged: it switches off the assertion in these counts."""
    batch = ([0.0, 1.0, 1.0], [0.2, np.nan, 0.8], None)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must be in \[0, 1\]"):
        measured(lambda: metrics.auc("auc", curve), batch)
    counts = metrics_impl._confusion_matrix_at_thresholds

    def without_assertions(*args):
        with monkeypatch.context() as patch:
            for name in ("assert_greater_equal", "assert_less_equal"):
                patch.setattr(metrics_impl.check_ops, name, lambda *args, **kwargs: tf.no_op())
            return counts(*args)

    monkeypatch.setattr(metrics_impl, "_confusion_matrix_at_thresholds", without_assertions)
    # NaN is above no threshold: the curve ends where one of the two positives is found.
    assert measured(lambda: metrics.auc("auc", curve), batch) == pytest.approx(0.5, abs=1e-2)
