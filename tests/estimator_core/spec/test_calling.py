import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.spec import calling
from tests.estimator_core.programs import Fetching, counting


def _accepts(model_fn, params=None):
    calling.check_model_fn(model_fn, params)


def test_arguments_that_are_bound_are_not_passed():
    def function(features, labels, mode, depth, width):
        del features, labels, mode, depth, width

    partial = functools.partial(function, depth=3)
    assert calling.arg_names(partial) == ("features", "labels", "mode", "width")
    assert calling.arg_names(functools.partial(partial, 1)) == ("labels", "mode", "width")


def test_a_decorated_function_takes_what_its_wrapper_takes():
    def function(features, labels, extra):
        del features, labels, extra

    @functools.wraps(function)
    def chooses(features):
        return function(features, None, 1)

    @functools.wraps(function)
    def passes_on(*args, **kwargs):
        return function(*args, **kwargs)

    assert calling.arg_names(chooses) == ("features",)
    assert calling.arg_names(passes_on) == ("features", "labels", "extra")
    _accepts(chooses)


def test_methods_and_callables_are_model_fns():
    class Model:
        def model_fn(self, features, mode):
            del features, mode

        def __call__(self, features, labels):
            del features, labels

    _accepts(Model().model_fn)
    _accepts(Model())
    _accepts(lambda features, labels, mode, depth=3: None)  # an optional argument more


@pytest.mark.parametrize(
    ("model_fn", "params", "message"),
    [
        (None, None, "model_fn must be provided"),
        (lambda labels: None, None, "must include features"),
        (lambda features: None, {"a": 1}, "does not include params"),
        (lambda features, depth: None, None, r"not expected args: \['depth'\]"),
    ],
)
def test_model_fns_that_cannot_be_called_are_refused(model_fn, params, message):
    with pytest.raises(ValueError, match=message):
        _accepts(model_fn, params)


@pytest.mark.parametrize(
    ("model_fn", "labels", "message"),
    [
        (lambda features: None, 2, "does not take labels"),
        (lambda features: 7, None, r"should return an EstimatorSpec.*7"),
    ],
)
def test_calls_that_fail(model_fn, labels, message):
    with pytest.raises(ValueError, match=message):
        calling.call_model_fn(model_fn, 1, labels, "train", {}, None)


def test_a_spec_without_a_mode_gets_the_mode_of_the_call(graph):
    def model_fn(features):
        return est.EstimatorSpec(None, predictions={"p": features})

    x = tf.constant([1.0])
    spec = calling.call_model_fn(model_fn, x, None, "infer", {}, None)
    assert spec.mode == "infer"
    assert spec.export_outputs["serving_default"].outputs == {"p": x}
    with pytest.raises(ValueError, match="Missing loss"):
        calling.call_model_fn(model_fn, x, None, "train", {}, None)


def test_a_spec_of_another_mode_counts_for_the_mode_of_the_call(graph):
    """As in 2.15: a model_fn may always return the spec of TRAIN."""

    def model_fn(features):
        return est.EstimatorSpec("train", {"p": features}, tf.reduce_sum(features), train_op=tf.no_op())

    spec = calling.call_model_fn(model_fn, tf.constant([1.0]), None, "infer", {}, None)
    assert spec.mode == "infer"
    assert spec.export_outputs.keys() == {"serving_default"}


def _half_dropped(features, labels, mode):
    """Prediction and loss depend on the ones, of 40, that a dropout leaves: Monte Carlo dropout."""
    ones = tf.ones([1, 40]) + 0.0 * features["x"][:, None]
    left = keras.layers.Dropout(0.5, seed=3)(ones, training=True) / 2.0
    predictions = {"left": left, "x": features["x"]}
    told = tf.reduce_sum(left * 2.0 ** tf.range(-20.0, 20.0))
    tf1.add_to_collection(tf1.GraphKeys.LOSSES, told)
    outputs = {"serving_default": est.export.PredictOutput(predictions)}
    metrics = {"told": tf1.metrics.mean(told)}
    return counting(mode, told, predictions=predictions, eval_metric_ops=metrics, export_outputs=outputs)


def _six_batches():
    return tf.data.Dataset.from_tensor_slices(({"x": tf.range(6.0)}, tf.zeros(6))).batch(1)


def _each_draws_anew(rows):
    return len({tuple(row) for row in rows}) == len(rows)


def _losses():
    """Collects the loss of every replica for each of its batches."""
    return Fetching(lambda graph: graph.get_collection(tf1.GraphKeys.LOSSES))


def test_random_numbers_of_keras_go_on_from_batch_to_batch(tmp_path):
    estimator = est.Estimator(_half_dropped, str(tmp_path / "model")).train(_six_batches, steps=1)
    first, second = ([r["left"] for r in estimator.predict(_six_batches)] for _ in range(2))
    assert len(first) == 6
    assert _each_draws_anew(first)
    np.testing.assert_array_equal(second, first)  # each call starts from the checkpoint
    losses = _losses()
    assert estimator.evaluate(_six_batches, hooks=[losses]) == estimator.evaluate(_six_batches)
    assert _each_draws_anew(losses.values)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None], tf.float32)})
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()
    serve = tf.saved_model.load(path).signatures["serving_default"]
    assert _each_draws_anew([serve(x=tf.zeros([1]))["left"].numpy()[0] for _ in range(6)])


def test_random_numbers_of_keras_go_on_in_each_replica(tmp_path):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    config = est.RunConfig(model_dir=str(tmp_path), train_distribute=strategy, eval_distribute=strategy)
    estimator = est.Estimator(_half_dropped, config=config).train(_six_batches, steps=1)
    losses = _losses()
    assert estimator.evaluate(_six_batches, hooks=[losses])["global_step"] > 0
    assert [len(row) for row in losses.values] == [2, 2, 2]
    for replica in zip(*losses.values, strict=True):
        assert _each_draws_anew([(loss,) for loss in replica])
    assert _each_draws_anew([row["left"] for row in estimator.predict(_six_batches)])


def test_a_keras_metric_may_be_exported_with_the_training_graph(tmp_path):
    def model_fn(features, labels, mode):
        metric = keras.metrics.MeanAbsoluteError(name="mae")
        metric.update_state(labels, features["x"])
        parts = {"predictions": {"x": features["x"]}, "eval_metric_ops": {"mae": metric}}
        return counting(mode, tf.reduce_sum(features["x"]), **parts)

    estimator = est.Estimator(model_fn, str(tmp_path / "model")).train(_six_batches, steps=2)
    # As in tf.estimator, a checkpoint does not hold the variables of a metric.
    assert set(estimator.get_variable_names()) == {"global_step"}
    specs = {"x": tf.TensorSpec([None])}, tf.TensorSpec([None])
    receiver_fn = est.experimental.build_raw_supervised_input_receiver_fn(*specs)
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver_fn, experimental_mode="train")
    with tf.Graph().as_default(), tf1.Session() as session:
        signature = tf1.saved_model.load(session, ["train"], path.decode()).signature_def["train"]
    assert set(signature.outputs) == {"loss", "predictions/x", "metrics/mae/value", "metrics/mae/update_op"}
