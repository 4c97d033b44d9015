import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.heads.fresh_graph import evaluated, run

# Probabilities [3/4, 1/2, 1/4] and [1/2, 1/4, 3/4].
LOG_3 = np.log(3.0)
LOGITS = np.array([[LOG_3, 0.0, -LOG_3], [0.0, -LOG_3, LOG_3]], np.float32)
LABELS = np.array([[1, 0, 1], [0, 0, 1]])
# Cross entropies: -log of [3/4, 1/2, 1/4] and of [1/2, 3/4, 3/4], = log [4/3, 2, 4], [2, 4/3, 4/3].
LOSSES = [(0.287682 + 0.693147 + 1.386294) / 3, (0.693147 + 2 * 0.287682) / 3]
WORDS = ["a", "b", "c"]


def sparse(values):
    """The classes of LABELS as lists: classes 0 and 2, class 2."""
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], values, [2, 2])


FORMS = {
    "dense": (None, lambda: tf.constant(LABELS)),
    "float": (None, lambda: tf.constant(LABELS, tf.float32)),
    "bool": (None, lambda: tf.constant(LABELS, tf.bool)),
    "sparse": (None, lambda: sparse(np.array([0, 2, 2], np.int64))),
    "sparse_int32": (None, lambda: sparse(np.array([0, 2, 2], np.int32))),
    "ragged": (None, lambda: tf.ragged.constant([[0, 2], [2]])),
    "dense_with_words": (WORDS, lambda: tf.constant(LABELS)),
    "sparse_words": (WORDS, lambda: sparse(["a", "c", "c"])),
    "ragged_words": (WORDS, lambda: tf.ragged.constant([["c", "a"], ["c"]])),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_loss_is_the_mean_over_classes(form):
    vocabulary, make_labels = FORMS[form]
    head = est.MultiLabelHead(3, label_vocabulary=vocabulary)
    found = run(lambda: head.loss(make_labels(), tf.constant(LOGITS)))
    assert found == pytest.approx(sum(LOSSES) / 2, rel=1e-5)


def test_an_example_without_a_class():
    # Probabilities of 3/4 for both classes of an example without any: -log(1/4) = 1.386294; the
    # other example has class 1 and probabilities 1/4 and 3/4: -log(3/4) = 0.287682.
    logits = np.array([[LOG_3, LOG_3], [-LOG_3, LOG_3]], np.float32)
    labels = lambda: tf.SparseTensor([[1, 0]], np.array([1], np.int64), [2, 1])  # noqa: E731
    loss = run(lambda: est.MultiLabelHead(2).loss(labels(), logits))
    assert loss == pytest.approx((1.386294 + 0.287682) / 2, rel=1e-5)


def count_of_classes(labels, logits):
    return tf.reduce_sum(labels, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"weight_column": "w", "loss_reduction": "sum"}, 2 * LOSSES[0] + 3 * LOSSES[1]),
        ({"loss_fn": count_of_classes}, (2 + 1) / 2),
    ],
)
def test_weights_and_sum_and_a_loss_fn_of_ones_own(settings, expected):
    features = {"w": np.array([2.0, 3.0], np.float32)}
    loss = run(lambda: est.MultiLabelHead(3, **settings).loss(LABELS, LOGITS, features))
    assert loss == pytest.approx(expected, rel=1e-5)


def test_predictions_are_logits_probabilities_and_classes():
    head = est.MultiLabelHead(3, label_vocabulary=WORDS)
    found = run(lambda: head.predictions(tf.constant(LOGITS)))
    assert set(found) == {"logits", "probabilities", "classes"}
    np.testing.assert_allclose(found["probabilities"], [[0.75, 0.5, 0.25], [0.5, 0.25, 0.75]], rtol=1e-6)
    assert found["classes"].tolist() == [[b"a", b"b", b"c"]] * 2
    with pytest.raises(ValueError, match="keys must be among"):
        run(lambda: head.predictions(tf.constant(LOGITS), keys=["class_ids"]))


def test_metrics_are_those_computed_by_hand():
    found = evaluated(est.MultiLabelHead(3, thresholds=[0.6]), LOGITS, LABELS)
    # Above 0.6 are class 0 of the first and class 2 of the second, both right; one of three is
    # missed. Positives have 3/4, 1/4, 3/4, negatives 1/2, 1/2, 1/4; of the 9 pairs 6 are in order,
    # and one is a tie.
    assert found == {
        "average_loss": pytest.approx(sum(LOSSES) / 2, rel=1e-5),
        "auc": pytest.approx(6.5 / 9, rel=1e-5),
        "auc_precision_recall": pytest.approx(found["auc_precision_recall"]),
        "accuracy/positive_threshold_0.6": pytest.approx(5 / 6),
        "precision/positive_threshold_0.6": pytest.approx(1.0),
        "recall/positive_threshold_0.6": pytest.approx(2 / 3),
    }
    assert 0.7 < found["auc_precision_recall"] < 1.0


def test_metrics_are_weighted():
    head = est.MultiLabelHead(3, weight_column="w", thresholds=[0.6])
    found = evaluated(head, LOGITS, LABELS, {"w": np.array([1.0, 3.0], np.float32)})
    assert found["average_loss"] == pytest.approx((LOSSES[0] + 3 * LOSSES[1]) / 4, rel=1e-5)
    # The classes weigh 3 * 1 + 3 * 3; the wrong one weighs 1.
    assert found["accuracy/positive_threshold_0.6"] == pytest.approx(11 / 12)
    # Found: 1 (class 0 of the first) and 3; missed: 1.
    assert found["recall/positive_threshold_0.6"] == pytest.approx(4 / 5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("vocabulary", "classes", "suffix"), [(None, [0], "class0"), (WORDS, ["a"], "a"), (WORDS, [0], "a")]
)
def test_metrics_of_single_classes(vocabulary, classes, suffix):
    settings = {"label_vocabulary": vocabulary, "classes_for_class_based_metrics": classes, "name": "n"}
    found = evaluated(est.MultiLabelHead(3, **settings), LOGITS, LABELS)
    of_class = {f"{key}/{suffix}/n" for key in ("probability_mean", "auc", "auc_precision_recall")}
    assert set(found) == {"average_loss/n", "auc/n", "auc_precision_recall/n", *of_class}
    assert found[f"probability_mean/{suffix}/n"] == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert found[f"auc/{suffix}/n"] == pytest.approx(1.0)  # 3/4 is positive, 1/2 negative


def test_export_outputs_are_classification_and_predict(graph):
    spec = est.MultiLabelHead(3).create_estimator_spec({}, "infer", tf.constant(LOGITS))
    outputs = spec.export_outputs
    assert set(outputs) == {"serving_default", "classification", "predict"}
    assert outputs["serving_default"] is outputs["classification"]
    with tf1.Session() as session:
        names = session.run(outputs["classification"].classes)
    assert names.tolist() == [[b"0", b"1", b"2"]] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 1}, "n_classes must be > 1"),
        ({"n_classes": None}, "n_classes must be > 1"),
        ({"thresholds": [1.0]}, "thresholds must be in"),
        ({"label_vocabulary": ["a"]}, "label_vocabulary"),
        ({"classes_for_class_based_metrics": [3]}, r"in range \[0, 2\]"),
        ({"classes_for_class_based_metrics": ["a"]}, "label_vocabulary=None"),
        ({"label_vocabulary": WORDS, "classes_for_class_based_metrics": ["z"]}, "Received: 'z'"),
    ],
)
def test_arguments_that_can_not_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        est.MultiLabelHead(**{"n_classes": 3, **arguments})


IN_GRAPH = tf.errors.InvalidArgumentError


@pytest.mark.parametrize(
    ("vocabulary", "make_labels", "error", "message"),
    [
        (None, lambda: LABELS * 2, IN_GRAPH, "Dense labels must be 0 or 1"),
        (None, lambda: -LABELS, IN_GRAPH, "Dense labels must be 0 or 1"),
        (None, lambda: sparse(np.array([0, 2, 3], np.int64)), IN_GRAPH, "n_classes - 1"),
        (None, lambda: sparse(["a", "c", "c"]), ValueError, "label_vocabulary"),
        (None, lambda: np.array([["a", "b", "c"]] * 2), ValueError, "SparseTensor or a RaggedTensor"),
        (WORDS, lambda: sparse(["a", "c", "z"]), IN_GRAPH, "must be in label_vocabulary"),
    ],
)
def test_labels_that_can_not_work(vocabulary, make_labels, error, message):
    with pytest.raises(error, match=message):
        run(lambda: est.MultiLabelHead(3, label_vocabulary=vocabulary).loss(make_labels(), LOGITS))
