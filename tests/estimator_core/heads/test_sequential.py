import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.heads import SequentialHeadWrapper
from tests.estimator_core.heads.fresh_graph import run, trained
from tests.estimator_core.programs import zeros

MASK = np.array([[True, True], [True, False]])
LOGITS = np.array([[[1.0], [3.0]], [[5.0], [99.0]]], np.float32)
LABELS = np.array([[[0.0], [1.0]], [[2.0], [-99.0]]], np.float32)
# Squared errors of the three steps that are no padding: 1, 4, 9.
FEATURES = {"sequence_length_mask": MASK}


def sparse(values, shape=(2, 2)):
    """Returns three values, of the steps of `MASK`."""
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], values, shape)


def test_the_loss_is_the_mean_over_steps_without_padding():
    head = SequentialHeadWrapper(est.RegressionHead())
    assert run(lambda: head.loss(LABELS, LOGITS, FEATURES)) == pytest.approx(14 / 3)
    # Regularization is added once.
    loss = run(lambda: head.loss(LABELS, LOGITS, FEATURES, "train", [tf.constant(10.0)]))
    assert loss == pytest.approx(14 / 3 + 10)


@pytest.mark.parametrize(
    "make_labels",
    [
        lambda: LABELS[..., 0],
        lambda: sparse([0.0, 1.0, 2.0]),
        # In another order: labels of steps, not of places in a list.
        lambda: tf.SparseTensor([[1, 0], [0, 1], [0, 0]], [2.0, 1.0, 0.0], [2, 2]),
        lambda: tf.ragged.constant([[0.0, 1.0], [2.0]]),
        lambda: tf.ragged.constant([[[0.0], [1.0]], [[2.0]]], ragged_rank=1),
    ],
    ids=["dense", "sparse", "unordered", "ragged", "ragged_of_rank_3"],
)
def test_labels_may_have_any_form(make_labels):
    head = SequentialHeadWrapper(est.RegressionHead(loss_reduction="sum"))
    assert run(lambda: head.loss(make_labels(), LOGITS, FEATURES)) == pytest.approx(14.0)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_weights_of_steps(form):
    head = SequentialHeadWrapper(est.RegressionHead(weight_column="w"), "mask", feature_columns="w")

    def loss():
        weights = sparse([1.0, 2.0, 0.5]) if form == "sparse" else [[1.0, 2.0], [0.5, 77.0]]
        return head.loss(LABELS, LOGITS, {"mask": MASK, "w": weights})

    # (1 * 1 + 2 * 4 + 0.5 * 9) / 3
    assert run(loss) == pytest.approx(13.5 / 3)


def test_metrics_leave_out_the_padding_and_have_the_regularization():
    head = SequentialHeadWrapper(est.RegressionHead(weight_column="w", name="price"), feature_columns="w")

    def updates():
        features = {**FEATURES, "w": [[1.0, 2.0], [0.5, 77.0]]}
        losses = [tf.constant(10.0), tf.constant(0.5)]
        spec = head.create_estimator_spec(features, "eval", LOGITS, LABELS, regularization_losses=losses)
        return {"loss": spec.loss, **{key: update for key, (_, update) in spec.eval_metric_ops.items()}}

    # The weighted squared errors are 1, 8 and 4.5, the weights 3.5 together.
    assert run(updates) == {
        "loss": pytest.approx(13.5 / 3 + 10.5),
        "regularization_loss/price": pytest.approx(10.5),
        "average_loss/price": pytest.approx(13.5 / 3.5),
        "prediction/mean/price": pytest.approx((1 + 2 * 3 + 0.5 * 5) / 3.5),
        "label/mean/price": pytest.approx((0 + 2 * 1 + 0.5 * 2) / 3.5),
    }


WORDS = lambda: sparse(["no", "yes", "yes"])  # noqa: E731
IDS = lambda: sparse(np.int64([0, 3, 2]))  # noqa: E731
SETS = np.array([[[0, 1], [1, 1]], [[0, 0], [9, 9]]])
RAGGED_SETS = lambda: tf.ragged.constant([[[0, 1], [1, 1]], [[0, 0]]], ragged_rank=1)  # noqa: E731
PAIRS = np.array([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [99.0, 99.0]]], np.float32)


@pytest.mark.parametrize(
    ("static_head", "labels", "logits", "expected"),
    [
        # log(1 + e^-x) for label 1 and log(1 + e^x) for label 0, at the logits 1, 3, 5.
        pytest.param(est.BinaryClassHead(label_vocabulary=["no", "yes"]), WORDS, LOGITS,
                     np.log1p(np.exp([1.0, -3.0, -5.0])).mean(), id="binary"),
        # The same logits for all classes.
        pytest.param(est.MultiClassHead(4), IDS, np.ones([2, 2, 4], "f"), np.log(4.0), id="multi_class"),
        # Two classes with the logit 0 each: log 2, whatever the labels.
        pytest.param(est.MultiLabelHead(2), lambda: tf.constant(SETS), np.zeros([2, 2, 2], "f"), np.log(2.0),
                     id="multi_label"),
        # log(1 + e^x) for label 0 and log(1 + e^-x) for label 1, so the labels' signs of the six logits.
        pytest.param(est.MultiLabelHead(2), RAGGED_SETS, PAIRS,
                     np.log1p(np.exp([1.0, -2.0, -3.0, -4.0, 5.0, 6.0])).mean(), id="ragged multi_label"),
        # exp(x) - label x, at the logits 1, 3, 5.
        pytest.param(est.PoissonRegressionHead(compute_full_loss=False), lambda: LABELS, LOGITS,
                     (np.exp(1.0) + np.exp(3.0) - 3.0 + np.exp(5.0) - 10.0) / 3, id="poisson"),
    ],
)  # fmt: skip
def test_any_static_head(static_head, labels, logits, expected):
    head = SequentialHeadWrapper(static_head)
    assert run(lambda: head.loss(labels(), logits, FEATURES)) == pytest.approx(expected, rel=1e-5)


def test_predictions_are_for_all_steps_with_the_mask_beside_them(graph):
    head = SequentialHeadWrapper(est.BinaryClassHead(), "mask")
    spec = head.create_estimator_spec({"mask": tf.constant(MASK)}, "infer", tf.constant(LOGITS))
    assert set(spec.export_outputs) == {"serving_default", "classification", "regression", "predict"}
    with tf1.Session() as session:
        predictions = session.run(spec.predictions)
    assert predictions["mask"].tolist() == MASK.tolist()
    assert predictions["probabilities"].shape == (2, 2, 2)
    np.testing.assert_allclose(predictions["logistic"][0], 1 / (1 + np.exp(-LOGITS[0])), rtol=1e-5)


def test_training_changes_a_variable_by_the_steps_without_padding():
    head = SequentialHeadWrapper(est.RegressionHead())

    def build():
        step, bias = tf1.train.get_or_create_global_step(), zeros("bias")
        features = {key: tf.constant(value) for key, value in FEATURES.items()}
        spec = head.create_estimator_spec(features, "train", LOGITS + bias, LABELS, optimizer="SGD")
        return spec, [bias, step]

    # The gradient is 2 (1 + 2 + 3) / 3 = 4, the learning rate 0.01.
    assert trained(build) == [pytest.approx(-0.04), 1]


def test_what_it_takes_from_the_static_head():
    head = SequentialHeadWrapper(est.RegressionHead(3, loss_reduction="sum", name="price"), "m")
    assert (head.name, head.logits_dimension, head.loss_reduction) == ("price_sequential", 3, "sum")
    assert (head.input_sequence_mask_key, head.static_head.name) == ("m", "price")
    assert SequentialHeadWrapper(est.RegressionHead()).name is None


COLUMN = tf.feature_column.numeric_column("w")
PRICES = est.MultiHead([est.RegressionHead(name="price")])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sequence_length_mask": 1}, TypeError, "must be a string"),
        ({"feature_columns": [COLUMN]}, TypeError, "must be a string or a list of strings"),
        ({"feature_columns": 3}, TypeError, "must be a string or a list of strings"),
        ({"static_head": PRICES}, ValueError, "`MultiHead` is not supported"),
    ],
)
def test_arguments_that_can_not_work(arguments, error, message):
    with pytest.raises(error, match=message):
        SequentialHeadWrapper(**{"static_head": est.RegressionHead(), **arguments})


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ({"x": MASK}, LABELS, r"'sequence_length_mask' is not in the features.*\['x'\]"),
        (None, LABELS, "is not in the features"),
        ({"sequence_length_mask": MASK[0]}, LABELS, "must have two dimensions"),
        (FEATURES, None, "You must provide a labels Tensor"),
        (FEATURES, LABELS[0, :, 0], "labels must have at least 2 dimensions"),
    ],
)
def test_batches_that_can_not_work(features, labels, message):
    head = SequentialHeadWrapper(est.RegressionHead())
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        head.loss(labels, LOGITS, features)
    head = SequentialHeadWrapper(est.RegressionHead(), feature_columns=["w"])
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"feature_columns \['w'\]"):
        head.loss(LABELS, LOGITS, FEATURES)


@pytest.mark.parametrize(
    "make_labels",
    [
        lambda: tf.SparseTensor([[0, 0], [1, 0]], [0.0, 2.0], [2, 2]),
        lambda: tf.constant([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]),
    ],
    ids=["too_few", "too_long"],
)
def test_a_label_for_each_step(make_labels):
    head = SequentialHeadWrapper(est.RegressionHead())
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a value for each time"):
        # The shapes are only known when the graph runs.
        run(lambda: head.loss(_of_unknown_size(make_labels()), LOGITS, FEATURES))


def _of_unknown_size(value):
    # Nothing of constants alone: TensorFlow would fold them, and the order of the checks with them.
    if isinstance(value, tf.SparseTensor):
        return tf.SparseTensor(
            tf1.placeholder_with_default(value.indices, [None, 2]),
            tf1.placeholder_with_default(value.values, [None]),
            tf1.placeholder_with_default(value.dense_shape, [2]),
        )
    return tf1.placeholder_with_default(value, [None, None])
