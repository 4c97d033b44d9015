"""What every Execution must do, whatever way it runs the graph."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.base import Execution
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice

tf1 = tf.compat.v1


@pytest.fixture(params=[SingleDevice])
def execution(request):
    return request.param()


def test_it_names_its_size_and_role(execution):
    assert isinstance(execution, Execution)
    assert execution.num_replicas >= 1
    assert execution.steps_per_session_run >= 1
    assert execution.is_chief is True


@pytest.mark.parametrize("with_labels", [True, False])
def test_inputs_of_a_dataset_reach_the_model_fn(execution, with_labels):
    def input_fn():
        features = {"x": tf.range(3, dtype=tf.float32)}
        elements = (features, features["x"] + 10) if with_labels else features
        return tf.data.Dataset.from_tensor_slices(elements).batch(2)

    def model_fn(features, labels):
        if not with_labels:
            assert labels is None
            labels = features["x"] + 10
        return est.EstimatorSpec("eval", {"x": features["x"]}, tf.reduce_sum(labels))

    with tf.Graph().as_default(), execution.scope():
        tf1.train.create_global_step()
        inputs = execution.make_inputs(input_fn, "eval")
        spec = execution.call_model_fn(model_fn, inputs, "eval")
        creator = execution.session_creator(spec.scaffold)
        losses = []
        with tf1.train.MonitoredSession(creator, hooks=inputs.hooks) as session:
            while not session.should_stop():
                losses.append(session.run(spec.loss))
    assert losses == [21.0, 12.0]


def test_prediction_leaves_labels_out(execution):
    with tf.Graph().as_default(), execution.scope():
        inputs = execution.make_inputs(
            lambda: tf.data.Dataset.from_tensors(({"x": [1.0]}, [2.0])), "infer"
        )
        assert inputs.labels is None
        assert set(inputs.features) == {"x"}


@pytest.mark.parametrize("result", [None, (1, 2, 3)])
def test_an_input_fn_that_gives_no_features_and_labels_is_refused(execution, result):
    with tf.Graph().as_default(), execution.scope(), pytest.raises(ValueError, match="input_fn"):
        execution.make_inputs(lambda: result, "train")


def test_sessions_restore_the_newest_checkpoint_or_the_one_asked_for(execution, tmp_path):
    with tf.Graph().as_default():
        value = tf1.get_variable("value", initializer=0.0)
        saver = tf1.train.Saver()
        with tf1.Session() as session:
            for step in (1, 2):
                session.run(value.assign(10.0 * step))
                saver.save(session, str(tmp_path / "model.ckpt"), step)

    def restored(**where):
        with tf.Graph().as_default(), execution.scope():
            value = tf1.get_variable("value", initializer=0.0)
            scaffold = tf1.train.Scaffold(saver=tf1.train.Saver([value]))
            creator = execution.session_creator(scaffold, **where)
            with tf1.train.MonitoredSession(creator) as session:
                return session.run(value)

    np.testing.assert_equal(restored(checkpoint_dir=str(tmp_path)), 20.0)
    np.testing.assert_equal(restored(checkpoint_path=str(tmp_path / "model.ckpt-1")), 10.0)


def test_strategies_that_do_not_exist_yet_are_refused():
    config = est.RunConfig(train_distribute=object())
    with pytest.raises(ValueError, match="train_distribute"):
        select_execution(config, "train")
    assert isinstance(select_execution(config, "eval"), SingleDevice)
