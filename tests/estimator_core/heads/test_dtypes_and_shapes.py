"""Every head with 64-bit inputs, and with shapes that are first known when the graph runs."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.circles import in_circles
from tests.estimator_core.programs import batch_of

LOGITS = np.array([[1.5], [-2.0], [0.3], [-0.1]])
LABELS = np.array([[1.0], [1.0], [0.0], [0.0]])
WEIGHTS = np.array([[1.0], [2.0], [0.5], [3.0]])


def double_losses(labels, logits):
    return tf.cast(labels - logits, tf.float64)


# The losses and average losses are those of tf.estimator 2.15.
HEADS = {
    "binary": (est.BinaryClassHead("w"), 1.703909, 1.048559),
    "logistic": (est.LogisticRegressionHead("w"), 1.703909, 1.048559),
    "multi_label": (est.MultiLabelHead(2, "w"), 1.703909, 1.048559),
    "regression": (est.RegressionHead(weight_column="w"), 4.58125, 2.819231),
    "poisson": (est.PoissonRegressionHead(weight_column="w"), 2.66045, 1.6372),
    "loss_fn": (est.RegressionHead(weight_column="w", loss_fn=double_losses), 1.4125, 0.869231),
}


def batch(head):
    return tuple(tf.constant(np.repeat(values, head.logits_dimension, axis=1)) for values in (LOGITS, LABELS))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("head", "loss", "average"), HEADS.values(), ids=HEADS)
def test_doubles_in_eager_mode_and_in_a_graph(head, loss, average):
    logits, labels = batch(head)
    assert logits.dtype == labels.dtype == tf.float64
    features = {"w": tf.constant(WEIGHTS)}
    found = head.loss(labels, logits, features)
    assert found.numpy() == pytest.approx(loss, abs=1e-5)
    dtype = tf.float64 if head is HEADS["loss_fn"][0] else tf.float32
    assert found.dtype == dtype
    metrics = head.update_metrics(head.metrics(), features, logits, labels)
    assert metrics["average_loss"].result().numpy() == pytest.approx(average, abs=1e-6)
    assert tf.float64 not in {value.dtype for value in head.predictions(logits).values()}
    with tf.Graph().as_default(), tf1.Session() as session:
        logits, labels = batch(head)
        spec = head.create_estimator_spec({"w": tf.constant(WEIGHTS)}, "eval", logits, labels)
        assert spec.loss.dtype == dtype
        session.run(tf1.local_variables_initializer())
        found = session.run([spec.loss, spec.eval_metric_ops["average_loss"][1]])
        assert found == pytest.approx([loss, average], abs=1e-5)


def test_a_double_weight_trains():
    """Squared error of logit w = 1 to label 0, weighted 2: the slope is 4, so w = 1 - 0.01 * 4."""
    with tf.Graph().as_default(), tf1.Session() as session:
        weight = tf1.get_variable("w", initializer=np.ones([1, 1]))
        spec = est.RegressionHead(weight_column="w").create_estimator_spec(
            {"w": np.array([2.0])}, "train", tf.identity(weight), np.array([0.0]), optimizer="SGD"
        )
        session.run(tf1.global_variables_initializer())
        session.run(spec.train_op)
        assert weight.dtype.base_dtype == tf.float64
        assert session.run(weight).item() == pytest.approx(1 - 0.01 * 4)
    # A normalizer of weights may return doubles, too.
    column = tf.feature_column.numeric_column("w", normalizer_fn=lambda w: tf.cast(w, tf.float64) / 2)
    loss = est.RegressionHead(weight_column=column).loss([[1.0]], [[3.0]], {"w": [[5.0]]})
    assert loss.numpy() == 4 * 2.5


ALL_HEADS = {**{name: head for name, (head, *_) in HEADS.items()}, "multi": est.MultiClassHead(3, "w")}


def placeholders(head, labels_shape, weights_shape):
    dtype = tf.int64 if isinstance(head, est.MultiClassHead) else tf.float32
    return (
        tf1.placeholder(tf.float32, [None, head.logits_dimension]),
        tf1.placeholder(dtype, labels_shape),
        tf1.placeholder(tf.float32, weights_shape),
    )


@pytest.mark.parametrize("step", in_circles(["loss", "update_metrics"], first=["loss"]))
@pytest.mark.parametrize(
    ("known_rank", "labels_shape", "weights_shape", "message"),
    [
        (False, "transposed", [4, 1], "labels must have the shape of the logits"),
        (True, "one example", [4, 1], "labels must have the shape of the logits"),
        (False, "fits", [4, 3], "weight_column w must have one weight for each loss"),
        (True, "fits", [1, 1], "weight_column w must have one weight for each loss"),
        (False, "fits", [4, 1], None),
        (True, "fits", [4, 1], None),
    ],
)
@pytest.mark.parametrize("head", ALL_HEADS.values(), ids=ALL_HEADS)
def test_shapes_known_when_the_graph_runs(head, known_rank, labels_shape, weights_shape, message, step):
    last = head.logits_dimension if isinstance(head, est.MultiLabelHead) else 1
    fed = {"fits": [4, last], "transposed": [last, 4], "one example": [1, last]}[labels_shape]
    with tf.Graph().as_default(), tf1.Session() as session:
        shapes = ([None, last], [None, 1]) if known_rank else (None, None)
        logits, labels, weights = placeholders(head, *shapes)
        if step == "loss":
            fetches = head.loss(labels, logits, {"w": weights})
        else:
            metrics = head.update_metrics(head.metrics(), {"w": weights}, logits, labels)
            # Each by itself: the checks of one must not run with another.
            fetches = [metric.as_pair()[1] for metric in metrics.values()]
        session.run(tf1.local_variables_initializer())
        feeds = {
            logits: np.zeros([4, head.logits_dimension]),
            labels: np.ones(fed),
            weights: np.ones(weights_shape),
        }
        if message is None:
            session.run(fetches, feeds)
            return
        for fetch in fetches if isinstance(fetches, list) else [fetches]:
            with pytest.raises(tf.errors.InvalidArgumentError) as error:
                session.run(fetch, feeds)
            assert message in str(error.value)


def make_estimator(folder, head, change=tf.identity):
    """Makes an Estimator of one weight, whose labels are changed."""

    def model_fn(features, labels, mode):
        logits, labels = features["x"] @ tf1.get_variable("weight", initializer=[[0.0]]), change(labels)
        return head.create_estimator_spec(features, mode, logits, labels, optimizer="SGD")

    return est.Estimator(model_fn, str(folder))


def unknown_shape(tensor):
    return tf1.placeholder_with_default(tensor, None)


@pytest.mark.more
def test_labels_of_another_shape_fail_the_step_that_has_them(tmp_path):
    def batches(labels_shape):
        return batch_of({"x": np.ones([4, 1], np.float32)}, np.ones(labels_shape, np.float32), repeat=3)

    estimator = make_estimator(tmp_path, est.RegressionHead(name="price"), unknown_shape)
    estimator.train(batches([4, 1]))
    for call in (estimator.train, estimator.evaluate):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            call(batches([1, 4]))
        message = " ".join(str(error.value).split())
        # An evaluation checks them twice, for the loss and for the metrics: either may come first.
        assert "{{node price/" in message
        assert "labels must have the shape of the logits, with 1 as its last dimension" in message
        assert "Received: shape] [1 4] [for logits with shape] [4 1]" in message


def test_a_loss_fn_of_unknown_shape_trains_and_evaluates(tmp_path):
    head = est.RegressionHead(loss_fn=lambda labels, logits: unknown_shape(tf.square(labels - logits)))
    input_fn = batch_of({"x": np.ones([2, 1], "f")}, np.ones([2, 1], "f"))
    estimator = make_estimator(tmp_path, head).train(input_fn)
    # The slope of (1 - w)^2 is -2 at 0, so that a step of 0.01 is to 0.02.
    expected = {"label/mean": 1.0, "prediction/mean": 0.02, "global_step": 1}
    expected |= {"average_loss": 0.98**2, "loss": 0.98**2}
    assert estimator.evaluate(input_fn) == pytest.approx(expected)
