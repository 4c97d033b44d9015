import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.heads.fresh_graph import evaluated, run

LOGITS = np.array([[0.0, -1.0, 1.0], [3.0, -4.0, 2.5], [6.0, -7.0, 4.0]], np.float32)
LABELS = np.array([[1], [0], [2]])
_SHIFTED = LOGITS - LOGITS.max(axis=1, keepdims=True)
LOG_PROBABILITIES = _SHIFTED - np.log(np.exp(_SHIFTED).sum(axis=1, keepdims=True))
LOSSES = -LOG_PROBABILITIES[np.arange(3), LABELS[:, 0]]
WEIGHTS = np.array([1.0, 2.0, 0.5], np.float32)


@pytest.mark.parametrize("labels", [LABELS, LABELS[:, 0], LABELS.astype(np.int32)])
def test_loss_is_the_mean_over_the_batch(labels):
    assert run(lambda: est.MultiClassHead(3).loss(labels, LOGITS)) == pytest.approx(LOSSES.mean(), rel=1e-6)
    head = est.MultiClassHead(3, weight_column="w", loss_reduction="sum")
    loss = run(lambda: head.loss(LABELS, LOGITS, features={"w": WEIGHTS}))
    assert loss == pytest.approx(np.dot(LOSSES, WEIGHTS), rel=1e-6)


def test_a_label_vocabulary_names_labels_and_classes():
    head = est.MultiClassHead(3, label_vocabulary=["a", "b", "c"])
    loss = run(lambda: head.loss(np.array([["b"], ["a"], ["c"]]), LOGITS))
    assert loss == pytest.approx(LOSSES.mean(), rel=1e-6)
    found = run(lambda: head.predictions(tf.constant(LOGITS)))
    assert found["classes"].tolist() == [[b"c"], [b"a"], [b"a"]]


def test_predictions_are_probabilities_and_the_likeliest_class():
    found = run(lambda: est.MultiClassHead(3).predictions(tf.constant(LOGITS)))
    np.testing.assert_allclose(found["probabilities"], np.exp(LOG_PROBABILITIES), rtol=1e-5)
    assert found["class_ids"].tolist() == [[2], [0], [0]]
    assert found["classes"].tolist() == [[b"2"], [b"0"], [b"0"]]
    assert found["all_class_ids"].tolist() == [[0, 1, 2]] * 3
    assert "logistic" not in found


def test_metrics_are_weighted_and_named_after_the_head():
    head = est.MultiClassHead(3, weight_column="w", name="kind")
    found = evaluated(head, LOGITS, LABELS, {"w": WEIGHTS}, regularization_losses=[0.5])
    # Classes 2, 0, 0 for labels 1, 0, 2: only the second, of weight 2 of 3.5, is right.
    assert found == {
        "accuracy/kind": pytest.approx(2 / 3.5),
        "average_loss/kind": pytest.approx(np.dot(LOSSES, WEIGHTS) / 3.5, rel=1e-6),
        "regularization_loss/kind": pytest.approx(0.5),
    }


def test_export_outputs_are_classification_and_predict(graph):
    spec = est.MultiClassHead(3).create_estimator_spec({}, "infer", tf.constant(LOGITS))
    assert set(spec.export_outputs) == {"serving_default", "classification", "predict"}
    classes = spec.export_outputs["classification"].classes
    with tf1.Session() as session:
        assert session.run(classes).tolist() == [[b"0", b"1", b"2"]] * 3


def test_labels_and_prediction_keys_that_do_not_fit():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"n_classes - 1 \(2\)"):
        run(lambda: est.MultiClassHead(3).loss(np.array([[3], [0], [0]]), LOGITS))
    with pytest.raises(ValueError, match="should be integer"):
        run(lambda: est.MultiClassHead(3).loss(LABELS.astype(np.float32), LOGITS))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="keys must be among"):
        est.MultiClassHead(3).predictions(tf.constant(LOGITS), keys=["logistic"])


@pytest.mark.parametrize("n_classes", [2, 1, None])
def test_two_classes_are_for_the_binary_head(n_classes):
    with pytest.raises(ValueError, match="BinaryClassHead"):
        est.MultiClassHead(n_classes)
