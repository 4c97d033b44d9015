import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.export import PredictOutput
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys

pytestmark = pytest.mark.usefixtures("graph")


def _output():
    return PredictOutput(tf.constant([1.0]))


@pytest.mark.parametrize(
    ("mode", "arguments", "message"),
    [
        ("train", {"loss": 1.0}, "Missing train_op"),
        ("train", {}, "Missing loss"),
        ("eval", {}, "Missing loss"),
        ("infer", {}, "Missing predictions"),
        ("fit", {}, "mode must be one of"),
        ("eval", {"loss": [1.0, 2.0]}, "Loss must be scalar"),
    ],
)
def test_each_mode_needs_its_arguments(mode, arguments, message):
    tensors = {name: tf.constant(value) for name, value in arguments.items()}
    with pytest.raises(ValueError, match=message):
        est.EstimatorSpec(mode, **tensors)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: {"loss": tf.constant(1.0), "train_op": tf.sparse.from_dense([1.0])}, "train_op must be"),
        (lambda: {"loss": 1.0, "train_op": tf.no_op()}, "loss must be a Tensor"),
        (lambda: {"loss": np.float32(1.0), "train_op": tf.no_op()}, "loss must be a Tensor"),
        (lambda: {"loss": [1.0], "train_op": tf.no_op()}, "loss must be a Tensor"),
    ],
)
def test_a_loss_and_a_train_op_are_dense_tensors(arguments, message):
    with pytest.raises(TypeError, match=message):
        est.EstimatorSpec("train", **arguments())


def test_a_loss_of_one_element_becomes_a_scalar(session):
    """With batches of one example, a loss for each example is one number."""
    assert est.EstimatorSpec("eval", loss=tf.constant([3.0])).loss.shape == []
    assert est.EstimatorSpec(None, loss=tf.constant([3.0])).loss.shape == []
    assert est.EstimatorSpec(None).mode is None  # without a mode nothing is missing
    losses = tf1.placeholder(tf.float32, [None, 1])
    loss = est.EstimatorSpec("eval", loss=losses).loss
    assert session.run(loss, {losses: [[3.0]]}) == 3.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 values"):
        session.run(loss, {losses: [[3.0], [4.0]]})


@pytest.mark.parametrize(
    "arguments",
    [
        {"predictions": {"a": 1.0}},
        {"eval_metric_ops": [1]},
        {"eval_metric_ops": {"accuracy": 1.0}},
        {"eval_metric_ops": {"accuracy": (0.5, 0.5)}},
        {"train_op": 3},
        {"training_hooks": [object()]},
        {"scaffold": object()},
        {"export_outputs": {"a": 1.0}},
    ],
)
def test_wrong_types_are_named(arguments):
    (name,) = arguments
    with pytest.raises(TypeError, match=name):
        est.EstimatorSpec("eval", loss=tf.constant(1.0), **arguments)


@pytest.mark.parametrize("make", [tf.sparse.from_dense, tf.RaggedTensor.from_tensor])
def test_predictions_must_be_dense(make):
    with pytest.raises(TypeError, match=r"predictions\['a'\] must be a dense Tensor"):
        est.EstimatorSpec("infer", predictions={"a": make(tf.constant([[1.0]]))})


def test_operations_of_another_graph_are_refused():
    with tf.Graph().as_default():
        foreign, value = tf.no_op(), tf.constant(1.0)
    with tf.Graph().as_default():
        loss, update = tf.constant(1.0), tf.no_op()
        with pytest.raises(ValueError, match="train_op is not in the graph"):
            est.EstimatorSpec("train", loss=loss, train_op=foreign)
        with pytest.raises(ValueError, match="is not in the graph"):
            est.EstimatorSpec("eval", loss=value)
        for metric in ((value, update), (loss, foreign)):
            with pytest.raises(ValueError, match=r"eval_metric_ops\['a'\] is not in the graph"):
                est.EstimatorSpec("eval", loss=loss, eval_metric_ops={"a": metric})


def test_a_keras_metric_without_updates_is_refused():
    """As in 2.15: Please call update_state(...) on the "mean" metric."""
    metrics = pytest.importorskip("tf_keras").metrics
    metric, loss = metrics.Mean(name="mean"), tf.constant(1.0)
    with pytest.raises(ValueError, match=r"call its update_state\(\)\. Received: mean=<tf_keras"):
        est.EstimatorSpec("eval", loss=loss, eval_metric_ops={"mean": metric})
    metric.update_state(loss)
    spec = est.EstimatorSpec("eval", loss=loss, eval_metric_ops={"mean": metric})
    assert spec.eval_metric_ops == {"mean": metric}


def test_export_outputs_get_a_default():
    predictions = tf.constant([1.0])
    one = _output()
    spec = est.EstimatorSpec("infer", predictions, export_outputs={"a": one})
    assert spec.export_outputs == {"a": one, "serving_default": one}
    with pytest.raises(ValueError, match="serving_default"):
        est.EstimatorSpec("infer", predictions, export_outputs={"a": one, "b": _output()})
    bare = est.EstimatorSpec("infer", predictions)
    assert bare.export_outputs["serving_default"].outputs == {"output": predictions}
    bare.export_outputs["extra"] = one  # as wrappers of a model_fn add signatures
    assert est.EstimatorSpec("eval", predictions, loss=tf.constant(1.0)).export_outputs is None


def test_a_metric_may_have_several_values():
    a, b = tf.constant(1.0), tf.constant(2.0)
    spec = est.EstimatorSpec("eval", loss=a, eval_metric_ops={"both": ((a, b), (a, b))})
    assert spec.eval_metric_ops == {"both": ((a, b), (a, b))}
    with pytest.raises(TypeError, match=r"Received: both=\(\(<tf.Tensor"):
        est.EstimatorSpec("eval", loss=a, eval_metric_ops={"both": ((a, "b"), (a, b))})


def test_replace_checks_again_and_keeps_the_mode():
    spec = est.EstimatorSpec("eval", loss=tf.constant(1.0))
    assert spec._replace(predictions={"a": tf.constant(2.0)}).predictions.keys() == {"a"}
    with pytest.raises(ValueError, match="cannot be changed"):
        spec._replace(mode="train")
    with pytest.raises(ValueError, match="Missing loss"):
        spec._replace(loss=None)


def test_values_of_modes_are_those_that_programs_compare_with():
    """Old programs compare `mode` with text, and SavedModels are tagged with it."""
    keys = est.ModeKeys
    assert (keys.TRAIN, keys.EVAL, keys.PREDICT) == ("train", "eval", "infer")
    assert ModeKeys.ALL == ("train", "eval", "infer")


@pytest.mark.parametrize(
    ("tensors", "expected"), [([5, 3], 2), ((5, 3), 2), ({"b": 5, "a": 3}, -2)], ids=["list", "tuple", "dict"]
)
def test_tensors_of_a_metric_fn_are_passed_in_order_or_by_name(tensors, expected):
    assert MetricFn(lambda a, b: {"difference": a - b}, tensors)() == {"difference": expected}
