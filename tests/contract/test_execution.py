"""What every Execution must do, whatever way it runs the graph."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.base import Execution
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync

tf1 = tf.compat.v1

EXECUTIONS = {
    "single_device": SingleDevice,
    "one_replica": lambda: ReplicasInSync(tf.distribute.OneDeviceStrategy("/cpu:1")),
    "two_replicas": lambda: ReplicasInSync(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])),
}


@pytest.fixture(params=sorted(EXECUTIONS))
def execution(request):
    return EXECUTIONS[request.param]()


def test_it_names_its_size_and_role(execution):
    assert isinstance(execution, Execution)
    assert execution.num_replicas >= 1
    assert execution.steps_per_session_run >= 1
    assert execution.is_chief is True


@pytest.mark.parametrize("with_labels", [True, False])
def test_each_batch_reaches_one_model_fn(execution, with_labels):
    def input_fn(input_context=None):
        features = {"x": tf.range(4, dtype=tf.float32)}
        elements = (features, features["x"] + 10) if with_labels else features
        return tf.data.Dataset.from_tensor_slices(elements).batch(1)

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
    # Labels are 10, 11, 12, 13, one for each replica and step; the loss is the sum of the replicas'.
    per_step = np.reshape([10.0, 11.0, 12.0, 13.0], [-1, execution.num_replicas])
    assert losses == per_step.sum(axis=1).tolist()


def test_a_step_takes_the_mean_gradient_of_all_replicas_and_counts_once(execution):
    def input_fn(input_context=None):
        return tf.data.Dataset.from_tensors({"x": [1.0]}).repeat(4)

    def model_fn(features, labels):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(weight * features["x"])
        optimizer = tf1.train.GradientDescentOptimizer(0.5)
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return est.EstimatorSpec("train", loss=loss, train_op=train_op)

    with tf.Graph().as_default(), execution.scope():
        step = tf1.train.create_global_step()
        inputs = execution.make_inputs(input_fn, "train")
        spec = execution.call_model_fn(model_fn, inputs, "train")
        creator = execution.session_creator(spec.scaffold)
        weight = tf1.global_variables("weight")[0]
        steps = 4 // execution.num_replicas
        with tf1.train.MonitoredSession(creator, hooks=inputs.hooks) as session:
            for _ in range(steps):
                session.run(spec.train_op)
            # The gradient of every batch is 1, so each step takes 0.5 off the weight.
            assert session.run(weight) == -0.5 * steps
            assert session.run(step) == steps


def test_metrics_add_up_over_all_batches(execution):
    def input_fn(input_context=None):
        return tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0, 6.0]}).batch(1)

    def model_fn(features, labels):
        mean = tf1.metrics.mean(features["x"])
        return est.EstimatorSpec("eval", loss=tf.constant(0.0), eval_metric_ops={"mean": mean})

    with tf.Graph().as_default(), execution.scope():
        tf1.train.create_global_step()
        inputs = execution.make_inputs(input_fn, "eval")
        spec = execution.call_model_fn(model_fn, inputs, "eval")
        value, update = spec.eval_metric_ops["mean"]
        final = tf1.train.FinalOpsHook(value)
        creator = execution.session_creator(spec.scaffold)
        with tf1.train.MonitoredSession(creator, hooks=[*inputs.hooks, final]) as session:
            while not session.should_stop():
                session.run(update)
    assert final.final_ops_values == 3.0


def test_prediction_leaves_labels_out(execution):
    with tf.Graph().as_default(), execution.scope():
        inputs = execution.make_inputs(
            lambda input_context=None: tf.data.Dataset.from_tensors(({"x": [1.0]}, [2.0])), "infer"
        )
        assert inputs.labels is None
        assert set(inputs.features) == {"x"}


@pytest.mark.parametrize("result", [None, (1, 2, 3)])
def test_an_input_fn_that_gives_no_features_and_labels_is_refused(execution, result):
    with tf.Graph().as_default(), execution.scope(), pytest.raises(ValueError, match="input_fn"):
        execution.make_inputs(lambda input_context=None: result, "train")


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
