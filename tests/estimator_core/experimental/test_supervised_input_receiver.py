import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est

build = est.experimental.build_raw_supervised_input_receiver_fn


def test_dicts_become_receiver_tensors_of_the_batch_size():
    receiver_fn = build({"x": np.zeros([1, 2], np.float32)}, {"y": np.zeros([1], np.int64)}, 3)
    with tf.Graph().as_default():
        receiver = receiver_fn()
    assert receiver._fields == ("features", "labels", "receiver_tensors")
    assert receiver.features["x"].shape.as_list() == [3, 2]
    assert receiver.labels["y"].dtype == tf.int64
    assert receiver.receiver_tensors == {**receiver.features, **receiver.labels}


def test_single_tensors_are_fed_as_input_and_label(graph):
    receiver_fn = build(tf.TensorSpec([None, 2]), tf.TensorSpec([None]))
    receiver = receiver_fn()
    assert receiver.features.shape.as_list() == [None, 2]
    assert receiver.labels.shape.as_list() == [None]
    assert receiver.receiver_tensors == {"input": receiver.features, "label": receiver.labels}


def test_features_and_labels_need_distinct_keys():
    with pytest.raises(ValueError, match="distinct keys"):
        build({"x": tf.TensorSpec([None])}, {"x": tf.TensorSpec([None])})


def test_export_for_evaluation(make_estimator, input_fn, tmp_path):
    estimator = make_estimator()
    estimator.train(input_fn, steps=1)  # now weight = 1
    receiver_fn = build({"x": tf.TensorSpec([None])}, tf.TensorSpec([None]))
    path = estimator.experimental_export_all_saved_models(
        str(tmp_path / "export"), {est.ModeKeys.EVAL: receiver_fn}
    )
    with tf.Graph().as_default(), tf1.Session() as session:
        signature = tf1.saved_model.load(session, ["eval"], path.decode()).signature_def["eval"]
        assert set(signature.inputs) == {"x", "label"}
        feed = {signature.inputs["x"].name: [3.0], signature.inputs["label"].name: [1.0]}
        # (1 * 3 - 1)^2
        assert session.run(signature.outputs["loss"].name, feed) == pytest.approx(4.0)
