import math

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.export import ClassificationOutput, PredictOutput, RegressionOutput
from tests.estimator_core.heads.fresh_graph import run

tf1 = tf.compat.v1

LOGITS = np.array([[0.3], [-1.0], [2.0]], np.float32)
LABELS = np.array([[1], [0], [0]])
# Cross entropy by hand: log(1 + e^-0.3), log(1 + e^-1), log(1 + e^2).
LOSSES = [math.log(1 + math.exp(-0.3)), math.log(1 + math.exp(-1)), math.log(1 + math.exp(2))]
WEIGHTS = np.array([1.0, 2.0, 0.5], np.float32)


def run_loss(head, labels=LABELS, logits=LOGITS, features=None):
    return run(lambda: head.loss(tf.constant(labels), tf.constant(logits), features=features))


def run_metrics(head, features=None, labels=LABELS):
    with tf.Graph().as_default():
        features = {key: tf.constant(value) for key, value in (features or {}).items()}
        spec = head.create_estimator_spec(features, "eval", tf.constant(LOGITS), labels=tf.constant(labels))
        with tf1.Session() as session:
            session.run([tf1.local_variables_initializer(), tf1.tables_initializer()])
            session.run([update for _, update in spec.eval_metric_ops.values()])
            return session.run({key: value for key, (value, _) in spec.eval_metric_ops.items()})


def test_loss_is_the_mean_over_the_batch():
    assert run_loss(est.BinaryClassHead()) == pytest.approx(np.mean(LOSSES), rel=1e-6)


def test_loss_can_be_the_sum_over_the_batch():
    loss = run_loss(est.BinaryClassHead(loss_reduction="sum"))
    assert loss == pytest.approx(np.sum(LOSSES), rel=1e-6)


def test_weights_multiply_but_the_mean_divides_by_the_batch_size():
    loss = run_loss(est.BinaryClassHead(weight_column="w"), features={"w": WEIGHTS})
    assert loss == pytest.approx(np.sum(LOSSES * WEIGHTS) / 3, rel=1e-6)


@pytest.mark.parametrize("labels", [[1, 0, 0], [[1.0], [0.0], [0.0]], [True, False, False]])
def test_labels_may_be_flat_float_or_bool(labels):
    loss = run_loss(est.BinaryClassHead(), labels=np.array(labels))
    assert loss == pytest.approx(np.mean(LOSSES), rel=1e-6)


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


def test_regularization_losses_are_added_as_they_are():
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
    assert set(found) == {
        "logits", "logistic", "probabilities", "class_ids", "classes", "all_class_ids", "all_classes",
    }  # fmt: skip


def test_a_logit_of_zero_predicts_class_0():
    found = run(lambda: est.BinaryClassHead().predictions(tf.constant([[0.0]])))
    assert found["class_ids"].tolist() == [[0]]


def test_metrics_are_those_computed_by_hand():
    found = run_metrics(est.BinaryClassHead())
    # class_ids 1, 0, 1 for labels 1, 0, 0: two of three right, one of two positives right.
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["precision"] == pytest.approx(1 / 2)
    assert found["recall"] == pytest.approx(1.0)
    assert found["label/mean"] == pytest.approx(1 / 3)
    assert found["accuracy_baseline"] == pytest.approx(2 / 3)
    assert found["average_loss"] == pytest.approx(np.mean(LOSSES), rel=1e-6)
    # The positive outranks one of the two negatives.
    assert found["auc"] == pytest.approx(0.5, abs=1e-5)
    # From tf.estimator 2.15, for this batch.
    assert found["auc_precision_recall"] == pytest.approx(0.30685282, abs=1e-5)
    assert found["prediction/mean"] == pytest.approx(0.57472706, rel=1e-6)


def test_weighted_metrics_at_thresholds():
    head = est.BinaryClassHead(weight_column="w", thresholds=[0.25, 0.5])
    found = run_metrics(head, {"w": WEIGHTS})
    # All of 0.574, 0.269, 0.881 are above 0.25: only the positive of weight 1 of 3.5 is right.
    assert found["accuracy/positive_threshold_0.25"] == pytest.approx(1 / 3.5)
    assert found["precision/positive_threshold_0.25"] == pytest.approx(1 / 3.5)
    assert found["recall/positive_threshold_0.25"] == pytest.approx(1.0)
    assert found["accuracy/positive_threshold_0.5"] == pytest.approx(3 / 3.5)
    assert found["accuracy"] == pytest.approx(3 / 3.5)
    assert found["average_loss"] == pytest.approx(np.dot(LOSSES, WEIGHTS) / 3.5, rel=1e-6)


def test_name_is_appended_to_metric_keys():
    keys = set(run_metrics(est.BinaryClassHead(name="sold")))
    assert "accuracy/sold" in keys
    assert all(key.endswith("/sold") for key in keys)


def test_export_outputs_are_classification_regression_and_predict():
    with tf.Graph().as_default():
        spec = est.BinaryClassHead().create_estimator_spec({}, "infer", tf.constant(LOGITS))
        outputs = spec.export_outputs
        assert set(outputs) == {"serving_default", "classification", "regression", "predict"}
        assert isinstance(outputs["serving_default"], ClassificationOutput)
        assert outputs["classification"] is outputs["serving_default"]
        assert isinstance(outputs["predict"], PredictOutput)
        assert isinstance(outputs["regression"], RegressionOutput)
        assert outputs["regression"].value is spec.predictions["logistic"]
        assert outputs["classification"].scores is spec.predictions["probabilities"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [([[2], [0], [0]], r"<= n_classes - 1 \(1\)"), ([[-1], [0], [0]], "Labels must be >= 0")],
)
def test_labels_out_of_range_fail_when_the_graph_runs(labels, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run_loss(est.BinaryClassHead(), labels=np.array(labels))


def test_an_unknown_label_word_names_the_vocabulary():
    head = est.BinaryClassHead(label_vocabulary=["no", "yes"])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"label_vocabulary \[no, yes\].*maybe"):
        run_loss(head, labels=np.array([["maybe"], ["no"], ["no"]]))


@pytest.mark.parametrize(
    ("head_kwargs", "labels", "features", "message"),
    [
        ({}, [["a"], ["b"], ["c"]], {}, "string labels need a label_vocabulary"),
        ({"label_vocabulary": ["a", "b"]}, [[1], [0], [0]], {}, "should be string"),
        ({}, [[1, 0], [0, 1], [0, 1]], {}, "Expected labels dimension=1"),
        ({}, [[1], [0]], {}, "same batch shape"),
        ({"weight_column": "w"}, [[1], [0], [0]], {}, r"Feature w \(weight_column\) is not in"),
        ({"weight_column": "w"}, [[1], [0], [0]], {"w": np.ones((3, 2), "f")}, "broadcast"),
        ({"weight_column": "w"}, [[1], [0], [0]], {"w": np.array(["a"] * 3)}, "must be numeric"),
    ],
)
def test_labels_and_weights_that_do_not_fit(head_kwargs, labels, features, message):
    with pytest.raises(ValueError, match=message):
        run_loss(est.BinaryClassHead(**head_kwargs), labels=np.array(labels), features=features)


def test_missing_labels_and_wrong_logits():
    head = est.BinaryClassHead()
    with tf.Graph().as_default():
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


def test_labels_that_are_fractions_equal_no_class():
    metrics = run_metrics(est.BinaryClassHead(), labels=np.array([[1.0], [0.4], [0.7]], np.float32))
    # The logits predict the classes 1, 0 and 1.
    assert metrics["accuracy"] == pytest.approx(1 / 3)
