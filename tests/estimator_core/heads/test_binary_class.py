import math

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.export import ClassificationOutput, PredictOutput, RegressionOutput
from tests.estimator_core.heads.fresh_graph import evaluated, run

LOGITS = np.array([[0.3], [-1.0], [2.0]], np.float32)
LABELS = np.array([[1], [0], [0]])
# Cross entropy by hand: log(1 + e^-0.3), log(1 + e^-1), log(1 + e^2).
LOSSES = [math.log(1 + math.exp(-0.3)), math.log(1 + math.exp(-1)), math.log(1 + math.exp(2))]
WEIGHTS = np.array([1.0, 2.0, 0.5], np.float32)


def run_loss(head, labels=LABELS, logits=LOGITS, features=None):
    return run(lambda: head.loss(tf.constant(labels), tf.constant(logits), features=features))


def run_metrics(head, features=None, labels=LABELS):
    return evaluated(head, LOGITS, labels, features)


@pytest.mark.parametrize(
    ("settings", "labels", "expected"),
    [
        ({}, LABELS, np.mean(LOSSES)),
        ({"loss_reduction": "sum"}, LABELS, np.sum(LOSSES)),
        ({"weight_column": "w"}, LABELS, np.sum(LOSSES * WEIGHTS) / 3),  # by the size of the batch
        ({}, [1, 0, 0], np.mean(LOSSES)),
        ({}, [[1.0], [0.0], [0.0]], np.mean(LOSSES)),
        ({}, [True, False, False], np.mean(LOSSES)),
    ],
    ids=["mean", "sum", "weights", "flat labels", "float labels", "bool labels"],
)
def test_loss_is_the_mean_over_the_batch(settings, labels, expected):
    loss = run_loss(est.BinaryClassHead(**settings), np.array(labels), features={"w": WEIGHTS})
    assert loss == pytest.approx(expected, rel=1e-6)


def test_a_label_vocabulary_names_labels_and_classes():
    head = est.BinaryClassHead(label_vocabulary=["no", "yes"])
    loss = run_loss(head, labels=np.array([["yes"], ["no"], ["no"]]))
    assert loss == pytest.approx(np.mean(LOSSES), rel=1e-6)
    classes = run(lambda: head.predictions(tf.constant(LOGITS), ["classes", "all_classes"]))
    assert classes["classes"].tolist() == [[b"yes"], [b"no"], [b"yes"]]
    assert classes["all_classes"].tolist() == [[b"no", b"yes"]] * 3


def test_loss_fn_gets_features_and_is_reduced():
    def loss_fn(labels, logits, features):
        return tf.abs(labels - logits) * features["factor"]

    head = est.BinaryClassHead(loss_fn=loss_fn)
    # |1 - 0.3| + |0 + 1| + |0 - 2| = 3.7, doubled, by 3
    assert run_loss(head, features={"factor": 2.0}) == pytest.approx(7.4 / 3, rel=1e-6)
    # Regularization losses are added as they are.
    head = est.BinaryClassHead()
    loss = run(lambda: head.loss(LABELS, LOGITS, regularization_losses=[tf.constant(1.5), tf.constant(0.5)]))
    assert loss == pytest.approx(np.mean(LOSSES) + 2.0, rel=1e-6)


def test_predictions_are_logits_probabilities_and_classes():
    found = run(lambda: est.BinaryClassHead().predictions(tf.constant(LOGITS)))
    sigmoid = 1 / (1 + np.exp(-LOGITS))
    np.testing.assert_allclose(found["logistic"], sigmoid, rtol=1e-6)
    np.testing.assert_allclose(found["probabilities"], np.hstack([1 - sigmoid, sigmoid]), rtol=1e-6)
    assert found["class_ids"].tolist() == [[1], [0], [1]]
    assert found["classes"].tolist() == [[b"1"], [b"0"], [b"1"]]
    assert found["all_class_ids"].tolist() == [[0, 1]] * 3
    names = "logits logistic probabilities class_ids classes all_class_ids all_classes"
    assert set(found) == set(names.split())
    undecided = run(lambda: est.BinaryClassHead().predictions(tf.constant([[0.0]])))
    assert undecided["class_ids"].tolist() == [[0]]


def test_metrics_are_those_computed_by_hand():
    found = run_metrics(est.BinaryClassHead())
    # class_ids 1, 0, 1 for labels 1, 0, 0: two of three right, one of two positives right.
    assert found == {
        "accuracy": pytest.approx(2 / 3),
        "precision": pytest.approx(1 / 2),
        "recall": pytest.approx(1.0),
        "label/mean": pytest.approx(1 / 3),
        "accuracy_baseline": pytest.approx(2 / 3),
        "average_loss": pytest.approx(np.mean(LOSSES), rel=1e-6),
        "auc": pytest.approx(0.5, abs=1e-5),  # the positive outranks one of the two negatives
        # From tf.estimator 2.15, for this batch.
        "auc_precision_recall": pytest.approx(0.30685282, abs=1e-5),
        "prediction/mean": pytest.approx(0.57472706, rel=1e-6),
    }
    # Labels that are fractions equal no class; the logits predict the classes 1, 0 and 1.
    labels = np.array([[1.0], [0.4], [0.7]], np.float32)
    assert run_metrics(est.BinaryClassHead(), labels=labels)["accuracy"] == pytest.approx(1 / 3)
    assert set(run_metrics(est.BinaryClassHead(name="sold"))) == {f"{key}/sold" for key in found}


def test_weighted_metrics_at_thresholds():
    found = run_metrics(est.BinaryClassHead(weight_column="w", thresholds=[0.25, 0.5]), {"w": WEIGHTS})
    # All of 0.574, 0.269, 0.881 are above 0.25: only the positive of weight 1 of 3.5 is right.
    expected = {
        "accuracy/positive_threshold_0.25": 1 / 3.5,
        "precision/positive_threshold_0.25": 1 / 3.5,
        "recall/positive_threshold_0.25": 1.0,
        "accuracy/positive_threshold_0.5": 3 / 3.5,
        "accuracy": 3 / 3.5,
        "average_loss": np.dot(LOSSES, WEIGHTS) / 3.5,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_export_outputs_are_classification_regression_and_predict(graph):
    spec = est.BinaryClassHead().create_estimator_spec({}, "infer", tf.constant(LOGITS))
    outputs = spec.export_outputs
    assert {name: type(output) for name, output in outputs.items()} == {
        "serving_default": ClassificationOutput,
        "classification": ClassificationOutput,
        "regression": RegressionOutput,
        "predict": PredictOutput,
    }
    assert outputs["classification"] is outputs["serving_default"]
    assert outputs["regression"].value is spec.predictions["logistic"]
    assert outputs["classification"].scores is spec.predictions["probabilities"]


def test_missing_labels_and_wrong_logits(graph):
    head = est.BinaryClassHead()
    with pytest.raises(ValueError, match="You must provide a labels Tensor"):
        head.create_estimator_spec({}, "eval", tf.constant(LOGITS))
    with pytest.raises(ValueError, match=r"logits_dimension=1.*shape \(3, 2\)"):
        head.predictions(tf.zeros([3, 2]))


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"loss_reduction": "none"}, ValueError, "Invalid loss_reduction"),
        ({"thresholds": [0.0]}, ValueError, r"in \(0, 1\)"),
        ({"label_vocabulary": "ab"}, ValueError, "list or a tuple"),
        ({"label_vocabulary": ["a"]}, ValueError, "n_classes=2"),
        ({"label_vocabulary": ["a", "a"]}, ValueError, "repeat"),
        ({"loss_fn": lambda labels: labels}, ValueError, "labels, logits"),
        ({"loss_fn": 3}, TypeError, "function"),
        ({"weight_column": 3}, TypeError, "weight_column"),
    ],
)
def test_the_constructor_refuses_bad_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        est.BinaryClassHead(**kwargs)
