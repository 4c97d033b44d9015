"""The expected values are those of tf.estimator 2.15, most of them also by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core
from estimator_core.installation import old_heads
from tests.estimator_core.programs import batch_of

BINARY = old_heads._BinaryLogisticHeadWithSigmoidCrossEntropyLoss
SEVERAL = old_heads._MultiClassHeadWithSoftmaxCrossEntropyLoss
REGRESSION = old_heads._RegressionHeadWithMeanSquaredErrorLoss
X = np.array([[1.0], [2.0]], np.float32)


def evaluated(pairs, session):
    """Returns the metrics of a batch."""
    session.run(tf1.local_variables_initializer())
    session.run([update_op for _, update_op in pairs.values()])
    return session.run({key: value for key, (value, _) in pairs.items()})


def test_losses_of_a_batch(session):
    features = {"w": tf.constant([[1.0], [3.0]])}
    found = BINARY("w").create_loss(features, "eval", tf.zeros([2, 1]), tf.constant([[1], [0]]))
    loss, losses, weights, labels = session.run(found)
    assert labels.tolist() == [[1.0], [0.0]]
    assert weights.tolist() == [[1.0], [3.0]]
    np.testing.assert_allclose(losses, [[np.log(2)], [np.log(2)]], rtol=1e-6)
    assert loss == pytest.approx(4 * np.log(2), rel=1e-6)
    head = SEVERAL(3, loss_reduction="none")
    unreduced = head.create_loss(features, "train", tf.zeros([2, 3]), tf.constant([[1], [0]]))
    losses = session.run(unreduced.training_loss)
    np.testing.assert_allclose(losses, [[np.log(3)], [np.log(3)]], rtol=1e-6)


def test_metrics_of_a_batch(session):
    losses = [tf.constant(1.5), tf.constant(2.0)]
    batch = {"w": tf.constant([[1.0], [3.0]])}, "eval", tf.constant([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    spec = SEVERAL(3, "w", name="mine").create_estimator_spec(
        *batch, labels=tf.constant([[1], [0]]), regularization_losses=losses
    )
    assert evaluated(spec.eval_metric_ops | {"loss": (spec.loss, spec.loss)}, session) == {
        "loss": pytest.approx(6.74908 + 3.5, rel=1e-5),
        "accuracy/mine": 0.25,
        "average_loss/mine": pytest.approx(1.68727, rel=1e-5),
        "regularization_loss/mine": 3.5,
    }


def test_metrics_are_made_from_given_values(session):
    pairs = REGRESSION(1)._eval_metric_ops(
        predicted_value=tf.constant([[1.0], [2.0]]),
        labels=tf.constant([[1.0], [0.0]]),
        weights=1.0,
        unreduced_loss=tf.constant([[1.0], [2.0]]),
        regularization_loss=None,
    )
    assert evaluated(pairs, session) == {"average_loss": 1.5, "prediction/mean": 1.5, "label/mean": 0.5}


class DoubledHead(BINARY):
    """A head with a loss and a metric of its own."""

    def create_loss(self, features, mode, logits, labels):
        loss = super().create_loss(features, mode, logits, labels)
        return loss._replace(training_loss=2 * loss.training_loss, unreduced_loss=2 * loss.unreduced_loss)

    def _eval_metric_ops(self, labels, **others):
        ops = super()._eval_metric_ops(labels, **others)
        return ops | {"largest": tf1.metrics.mean(tf.reduce_max(labels))}


def test_a_subclass_may_change_the_loss_and_the_metrics(session):
    labels = tf.constant([[1.0], [0.0]])
    spec = DoubledHead().create_estimator_spec({}, "eval", tf.zeros([2, 1]), labels=labels)
    metrics = evaluated(spec.eval_metric_ops | {"loss": (spec.loss, spec.loss)}, session)
    assert metrics["loss"] == pytest.approx(4 * np.log(2), rel=1e-6)
    assert metrics["average_loss"] == pytest.approx(2 * np.log(2), rel=1e-6)
    assert (metrics["largest"], metrics["accuracy"]) == (1.0, 0.5)


def test_training_sums_the_losses_and_writes_their_mean(session):
    tf1.train.get_or_create_global_step()
    batch = {"w": tf.constant([[1.0], [3.0]])}, "train", tf.constant([[0.5], [1.0]])
    labels = tf.constant([[1.0], [2.0]])
    spec = REGRESSION(1, "w").create_estimator_spec(
        *batch, labels=labels, train_op_fn=lambda loss: loss * 10.0
    )
    summaries = tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    parsed = [tf1.Summary.FromString(each) for each in session.run(summaries)]
    # 1 * 0.5^2 + 3 * 1^2, and a fourth of it.
    assert session.run([spec.loss, spec.train_op]) == [3.25, 32.5]
    values = {value.tag: value.simple_value for each in parsed for value in each.value}
    assert values == {"loss": 3.25, "average_loss": 0.8125}


class OwnHead(old_heads._Head):
    """A head that programs derive from the base alone."""

    name = None
    logits_dimension = 1

    def create_loss(self, features, mode, logits, labels):
        losses = tf.square(logits - labels)
        return old_heads.LossSpec(tf.reduce_sum(losses), losses, 1.0, labels)

    def create_estimator_spec(
        self, features, mode, logits, labels=None, optimizer=None, train_op_fn=None, **others
    ):
        if mode == "infer":
            return estimator_core.EstimatorSpec(mode, predictions={"y": logits})
        loss = self.create_loss(features, mode, logits, labels).training_loss
        train_op = None if train_op_fn is None else train_op_fn(loss)
        return estimator_core.EstimatorSpec(
            mode, loss=loss, train_op=train_op, eval_metric_ops={"mine": tf1.metrics.mean(labels)}
        )


def test_a_head_of_the_users_own_trains_a_canned_model(tmp_path):
    column = tf.feature_column.numeric_column("x")
    optimizer = tf1.train.GradientDescentOptimizer(0.05)
    estimator = estimator_core.v1.LinearEstimator(OwnHead(), [column], str(tmp_path), optimizer)
    metrics = estimator.train(batch_of({"x": X}, 3 * X, repeat=30)).evaluate(batch_of({"x": X}, 3 * X))
    assert metrics["loss"] < (9.0 + 36.0) / 100  # of the loss before
    assert metrics["mine"] == 4.5
    with pytest.raises(NotImplementedError, match="_create_tpu_estimator_spec"):
        old_heads._Head().create_estimator_spec({}, "train", None)


def test_only_the_classes_take_losses_without_reduction():
    for make in (old_heads._binary_logistic_head_with_sigmoid_cross_entropy_loss, old_heads._regression_head):
        assert isinstance(make(), old_heads._Head)
        with pytest.raises(ValueError, match="Invalid loss_reduction"):
            make(loss_reduction="none")
    assert type(old_heads._binary_logistic_or_multi_class_head(2, None, None, "weighted_sum")) is BINARY
    more = old_heads._binary_logistic_or_multi_class_head(3, None, None, "weighted_sum")
    assert type(more) is SEVERAL


def test_metrics_of_labels(session):
    mean = old_heads._indicator_labels_mean(tf.constant([1, 0, 0]), tf.constant([1.0, 2.0, 5.0]))
    area = old_heads._auc(tf.constant([1.0, 0.0, 1.0]), tf.constant([0.3, 0.4, 0.9]))
    pairs = {"mean": mean, "baseline": old_heads._accuracy_baseline(mean), "area": area}
    found = evaluated(pairs, session)
    assert found == {"mean": 0.125, "baseline": 0.875, "area": pytest.approx(0.5, abs=1e-5)}
    assert old_heads._summary_key("mine", "loss") == "loss/mine"
    assert old_heads._summary_key(None, "loss") == "loss"
