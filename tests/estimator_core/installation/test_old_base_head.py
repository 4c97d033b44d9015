"""The expected values and types of errors are those of tf.estimator 2.15."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core
from estimator_core.installation import old_base_head as base_head
from estimator_core.installation.old_head_attributes import provide_attributes
from tests.estimator_core.programs import batch_of

TPUEstimatorSpec = estimator_core.tpu.TPUEstimatorSpec


def test_logits_and_labels_must_fit(session):
    logits = base_head.check_logits_final_dim(tf.constant([[1, 2]]), 2)
    assert logits.dtype == tf.float32
    with pytest.raises(ValueError, match="logits_dimension=3"):
        base_head.check_logits_final_dim(logits, 3)
    labels = base_head.check_dense_labels_match_logits_and_reshape(tf.constant([4]), logits, 1)
    assert session.run(labels).tolist() == [[4]]
    with pytest.raises(ValueError, match="labels is None"):
        base_head.check_dense_labels_match_logits_and_reshape(None, logits, 1)


def test_weights_are_those_of_examples_or_if_allowed_of_logits(session):
    logits = tf.zeros([2, 3])
    weights_of = base_head.get_weights_and_check_match_logits
    assert weights_of({}, None, logits) == 1.0
    of_examples = weights_of({"w": tf.constant([1.0, 2.0])}, "w", logits)
    assert session.run(of_examples).tolist() == [[1.0], [2.0]]
    features = {"w": tf.ones([2, 3])}
    assert weights_of(features, "w", logits, allow_per_logit_weights=True).shape == [2, 3]
    with pytest.raises(ValueError, match="broadcast"):
        weights_of(features, "w", logits)


def test_labels_must_be_classes(session):
    assert session.run(base_head.check_label_range(tf.constant([0, 1]), 2)).tolist() == [0, 1]
    checked = base_head.check_label_range(tf.constant([0, 2]), 2, message="No class")
    with pytest.raises(tf.errors.InvalidArgumentError, match="No class"):
        session.run(checked)


def test_all_classes_by_name(session):
    logits = tf.zeros([2, 2])
    assert session.run(base_head.all_class_ids(logits, 2)).tolist() == [[0, 1], [0, 1]]
    assert session.run(base_head.all_classes(logits, 2)).tolist() == [[b"0", b"1"]] * 2
    output = base_head.classification_output(logits, 2, ["no", "yes"])
    assert session.run(output.classes).tolist() == [[b"no", b"yes"]] * 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: base_head.check_prediction_keys(["c"], ["a", "b"]),
        lambda: base_head.validate_loss_fn_args(lambda labels: 0),
        lambda: base_head.validate_loss_reduction("none"),
        lambda: base_head.validate_n_classes(2),
        lambda: base_head.validate_trainable_variables(),
        lambda: base_head.validate_update_ops(5),
        lambda: base_head.validate_v2_optimizer(tf1.train.AdamOptimizer()),
    ],
)
def test_invalid_arguments_are_value_errors(call):
    with pytest.raises(ValueError):
        call()


def test_which_arguments_are_valid(session):
    base_head.check_prediction_keys(["a"], ["a", "b"])
    base_head.validate_loss_fn_args(lambda labels, logits, features: 0)
    base_head.validate_loss_reduction("sum")
    assert base_head.validate_n_classes(3) == 3
    base_head.validate_trainable_variables([])
    base_head.validate_update_ops()
    base_head.validate_v2_optimizer(tf.keras.optimizers.SGD())
    three = tf.constant(3)
    assert base_head.validate_n_classes(three) is three
    with pytest.raises(ValueError, match="n_classes=2"):
        base_head.validate_n_classes(2)
    with pytest.raises(ValueError, match="must be > 2"):
        base_head.validate_n_classes(tf.constant(2))


def test_a_loss_function_is_called_for_unreduced_losses(session):
    labels, logits, features = tf.constant([[1.0], [3.0]]), tf.zeros([2, 1]), {"factor": 2.0}
    loss = base_head.call_loss_fn(
        lambda labels, logits, features: (labels - logits) * features["factor"], labels, logits, features
    )
    assert session.run(loss).tolist() == [[2.0], [6.0]]
    with pytest.raises(ValueError, match="no mean, no sum"):
        base_head.call_loss_fn(lambda labels, logits: tf.reduce_sum(labels), labels, logits, {})


def test_metrics_with_arguments_that_are_no_tensors(session):
    def metrics(values, weights, factor):
        assert weights is None
        metric = estimator_core.heads.metrics.mean("mine")
        base_head.update_metric_with_broadcast_weights(metric, values * factor, weights)
        return {"mine": metric}

    kwargs = {"values": tf.constant([[1.0], [3.0]]), "weights": None, "factor": 2.0}
    metric_fn, tensors = base_head.create_eval_metrics_tuple(metrics, kwargs)
    assert list(tensors) == ["values"]
    value, update_op = metric_fn(**tensors)["mine"]
    session.run(tf1.local_variables_initializer())
    session.run(update_op)
    assert session.run(value) == 4.0


def test_summaries_of_the_loss(session):
    base_head.create_estimator_spec_summary(
        regularized_training_loss=tf.constant(1.0),
        regularization_losses=[tf.constant(0.5)],
        summary_key_fn=lambda key: f"{key}/mine",
    )
    tags = [tensor.op.name for tensor in tf1.get_collection(tf1.GraphKeys.SUMMARIES)]
    assert tags == ["loss/mine", "regularization_loss/mine"]


def test_a_train_op_runs_the_update_ops_first(session):
    count = tf1.get_variable("count", [], initializer=tf1.zeros_initializer(), use_resource=True)
    train_op = base_head.create_estimator_spec_train_op(
        head_name=None,
        train_op_fn=lambda loss: count.assign(count * 10.0 + loss),
        update_ops=[count.assign_add(1.0)],
        regularized_training_loss=tf.constant(3.0),
    )
    session.run(tf1.global_variables_initializer())
    session.run(train_op)
    assert session.run(count) == 13.0
    with pytest.raises(ValueError, match="Exactly one of optimizer and train_op_fn"):
        base_head.create_estimator_spec_train_op(None, regularized_training_loss=tf.constant(3.0))


class VectorLossHead(estimator_core.MultiClassHead):
    """A head as those of differential privacy: it trains by the losses of the examples, not their mean."""

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        labels = self._processed_labels(logits, labels)
        losses, weights = self._unweighted_loss_and_weights(logits, labels, features)
        return losses * weights

    def _create_tpu_estimator_spec(self, features, mode, logits, labels=None, **training):
        predictions = self.predictions(logits)
        if mode == "infer":
            words = self._n_classes, self._label_vocabulary
            output = base_head.classification_output(predictions["probabilities"], *words)
            outputs = {base_head.DEFAULT_SERVING_KEY: output}
            return TPUEstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
        losses = self.loss(labels, logits, features, mode)
        scalar = tf.reduce_sum(losses)
        if mode == "eval":
            given = {"eval_metrics": self.metrics(), "features": features, "logits": logits, "labels": labels}
            metrics = base_head.create_eval_metrics_tuple(self.update_metrics, given)
            return TPUEstimatorSpec(mode, predictions, scalar, eval_metrics=metrics)
        training.pop("regularization_losses", None)
        train_op = base_head.create_estimator_spec_train_op(
            self._name, regularized_training_loss=losses, loss_reduction=self._loss_reduction, **training
        )
        base_head.create_estimator_spec_summary(scalar, None, self._summary_key)
        return TPUEstimatorSpec(mode, predictions, scalar, train_op=train_op)


def test_a_head_that_makes_a_spec_of_its_own():
    provide_attributes()
    features = {"x": np.array([[0.0], [1.0], [2.0]], np.float32)}
    input_fn = batch_of(features, np.array([["a"], ["b"], ["c"]]), repeat=4)
    shapes = []

    class Optimizer(tf1.train.GradientDescentOptimizer):
        def compute_gradients(self, loss, *args, **kwargs):
            shapes.append(loss.shape.as_list())
            return super().compute_gradients(loss, *args, **kwargs)

    head = VectorLossHead(3, label_vocabulary=["a", "b", "c"], name="mine")
    columns = [tf.feature_column.numeric_column("x")]
    classifier = estimator_core.LinearEstimator(head, columns, optimizer=lambda: Optimizer(0.1)).train(
        input_fn
    )
    assert shapes == [[3, 1]]
    metrics = classifier.evaluate(input_fn, steps=1)
    assert metrics["loss"] == pytest.approx(3 * metrics["average_loss/mine"], rel=1e-5)
    assert metrics["loss"] < 3 * np.log(3)  # the loss of three examples before training
    prediction = next(iter(classifier.predict(input_fn)))
    assert prediction["all_classes"].tolist() == [b"a", b"b", b"c"]


@pytest.mark.more
def test_a_head_may_change_the_spec_of_its_base(session):
    provide_attributes()

    class Mine(estimator_core.BinaryClassHead):
        def _create_tpu_estimator_spec(self, features, mode, logits, **others):
            spec = super()._create_tpu_estimator_spec(features, mode, logits, **others)
            return spec._replace(predictions={"mine": spec.predictions["logits"]})

    features = {"w": tf.constant([[1.0], [3.0]])}
    batch = {"labels": tf.constant([[0], [1]]), "regularization_losses": [tf.constant(0.5)]}
    logits = tf.constant([[1.0], [2.0]])
    found = {}
    for kind in (estimator_core.BinaryClassHead, Mine):
        head = kind(weight_column="w")
        spec = head.create_estimator_spec(features, "eval", logits, **batch)
        session.run(tf1.local_variables_initializer())
        session.run([update for _, update in spec.eval_metric_ops.values()])
        values = {key: value for key, (value, _) in spec.eval_metric_ops.items()}
        found[kind] = session.run({"loss": spec.loss, **values})
    assert list(spec.predictions) == ["mine"]
    assert found[Mine] == found[estimator_core.BinaryClassHead]
    # (1 * log(1 + e) + 3 * log(1 + 1 / e ** 2)) / 2 + 0.5 and / 4 without the regularization.
    assert found[Mine]["loss"] == pytest.approx(1.34702, rel=1e-4)
    assert found[Mine]["average_loss"] == pytest.approx(0.42351, rel=1e-4)
    for mode in ("train", "infer"):
        arguments = {**batch, "train_op_fn": tf.identity} if mode == "train" else {}
        assert list(head.create_estimator_spec(features, mode, logits, **arguments).predictions) == ["mine"]
