"""The Estimator that a TPUEstimator is where there is no TPU."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.tpu.host_estimator import ConvertedModelFn, HostEstimator
from tests.estimator_core.programs import counting


@pytest.mark.parametrize("on_tpu", [True, False])
def test_a_graph_for_tpus_is_exported_when_there_is_a_model_for_it(tmp_path, on_tpu):
    def model_fn(features, mode):
        predictions = features["x"] * tf.cast(tf1.train.get_global_step(), tf.float32)
        return counting(mode, tf.constant(0.0), predictions=predictions)

    other = (lambda features, mode: model_fn({"x": -features["x"]}, mode)) if on_tpu else None

    estimator = HostEstimator(model_fn, other, est.RunConfig(model_dir=str(tmp_path / "model")), None)
    estimator.train(lambda: tf.data.Dataset.from_tensors({"x": [1.0]}).repeat(), steps=3)
    receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None])})
    path = estimator.export_saved_model(tmp_path / "export", receiver_fn).decode()
    for tags, expected in ((["serve"], 6.0), *([(["serve", "tpu"], -6.0)] if on_tpu else [])):
        with tf.Graph().as_default(), tf1.Session() as session:
            signature = tf1.saved_model.load(session, tags, path).signature_def["serving_default"]
            feeds = {signature.inputs["x"].name: [2.0]}
            assert session.run(signature.outputs["output"].name, feeds) == [expected]
    if not on_tpu:
        with pytest.raises(RuntimeError, match="could not be found"), tf1.Session(graph=tf.Graph()) as s:
            tf1.saved_model.load(s, ["serve", "tpu"], path)


def test_a_model_fn_that_was_not_written_for_a_tpu_gets_the_params_of_its_own_estimator(tmp_path):
    seen = {}

    def model_fn(features, labels, mode, params, config):
        seen.update(params, features=features, labels=labels, mode=mode, config=config)
        return est.EstimatorSpec(mode, predictions=features)

    estimator = est.Estimator(model_fn, str(tmp_path), params={"rate": 0.5})
    with tf.Graph().as_default():
        x = tf.constant([1.0])
        spec = ConvertedModelFn(estimator)(x, "y", "infer", "a config", {"batch_size": 4, "rate": 7.0})
    assert spec.predictions is x
    assert (seen.pop("features"), seen.pop("labels"), seen.pop("rate")) == (x, "y", 0.5)
    assert seen == {"mode": "infer", "config": "a config"}
