"""The contract of every Execution, whatever way it runs the graph."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.base import Execution
from estimator_core.execution.current import building, current_execution
from estimator_core.execution.evaluation_metrics import SHARE_WITH_ROWS
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from tests.contract.executions import session_of, together


@contextlib.contextmanager
def graph_for(execution):
    """A graph that is built for the Execution, with its global step."""
    with tf.Graph().as_default() as graph, building(graph, execution):
        tf1.train.create_global_step()
        yield


def built(execution, input_fn, step_fn, mode):
    """The inputs and the spec of the whole step."""
    inputs = execution.make_inputs(input_fn, mode)
    return inputs, execution.build_step(inputs, step_fn, mode).spec


def ones(input_context=None):
    return tf.data.Dataset.from_tensors({"x": [1.0]}).repeat()


def numbers(input_context=None):
    return tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0, 6.0]}).batch(1)


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

    losses = []
    with graph_for(execution):
        inputs, spec = built(execution, input_fn, model_fn, "eval")
        with session_of(execution, inputs, spec) as session:
            while not session.should_stop():
                losses.append(session.run(spec.loss))
    # Labels are 10, 11, 12, 13, one for each replica and step.
    per_step = np.reshape([10.0, 11.0, 12.0, 13.0], [-1, execution.num_replicas])
    assert losses == together(execution, per_step).tolist()


def one_weight(optimizer):
    """A model whose gradient is the mean of x: minimized by `optimizer(loss)`."""

    def model_fn(features, labels):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(weight * features["x"])
        return est.EstimatorSpec("train", loss=loss, train_op=optimizer(loss))

    return model_fn


def with_optimizer_of_its_own(loss):
    return tf1.train.GradientDescentOptimizer(0.5).minimize(loss, tf1.train.get_global_step())


def through_a_head(loss):
    """Scales a mean loss as a head does, and makes the core's own step with the optimizer."""
    from estimator_core.optimizers.minimize import minimize

    share = current_execution().share_of_mean(loss)
    return minimize(lambda: tf1.train.GradientDescentOptimizer(0.5), share)


@pytest.mark.parametrize("optimizer", [with_optimizer_of_its_own, through_a_head])
def test_a_step_takes_the_mean_gradient_of_all_replicas_and_counts_once(execution, optimizer):
    def input_fn(input_context=None):
        return tf.data.Dataset.from_tensors({"x": [1.0]}).repeat(4)

    with graph_for(execution):
        inputs, spec = built(execution, input_fn, one_weight(optimizer), "train")
        weight = tf1.global_variables("weight")[0]
        steps = 4 // execution.num_replicas
        with session_of(execution, inputs, spec) as session:
            for _ in range(steps):
                session.run(spec.train_op)
            # The gradient of every batch is 1, so each step takes 0.5 off the weight.
            assert session.run(weight) == -0.5 * steps
            assert session.run(tf1.train.get_global_step()) == steps


def test_a_step_is_counted_when_its_updates_are_done(execution):
    def model_fn(features, labels):
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        global_step = tf1.train.get_global_step()

        def update(variable, gradient):
            for _ in range(200):  # so long that a count at the same time would come first
                gradient = tf.sin(gradient)
            with tf.control_dependencies([gradient]):
                return variable.assign(tf.cast(global_step.read_value(), tf.float32))

        updates = [(tf.reduce_mean(features["x"]), weight, update)]
        train_op = current_execution().update_by_sums(updates, global_step)
        return est.EstimatorSpec("train", loss=tf.constant(0.0), train_op=train_op)

    with graph_for(execution):
        inputs, spec = built(execution, ones, model_fn, "train")
        weight = tf1.global_variables("weight")[0]
        with session_of(execution, inputs, spec) as session:
            for step in range(5):
                session.run(spec.train_op)
                assert session.run(weight) == step
            assert session.run(tf1.train.get_global_step()) == 5


def test_steps_without_hooks_are_steps(execution):
    with graph_for(execution):
        inputs = execution.make_inputs(ones, "train")
        step = execution.build_step(inputs, one_weight(with_optimizer_of_its_own), "train")
        assert (step.advance is None) == (execution.steps_per_session_run == 1)
        if step.advance is None:
            return
        most = execution.steps_per_session_run - 1
        weight = tf1.global_variables("weight")[0]
        with session_of(execution, inputs, step.spec) as session:
            session.run_step_fn(lambda step_context: step.advance(step_context.session, most))
            assert session.run(weight) == -0.5 * most
            assert session.run(tf1.train.get_global_step()) == most


def test_metrics_add_up_over_all_batches(execution):
    def model_fn(features, labels):
        mean = tf1.metrics.mean(features["x"])
        loss = tf.reduce_sum(features["x"]) * 10
        return est.EstimatorSpec("eval", loss=loss, eval_metric_ops={"mean": mean})

    with graph_for(execution):
        inputs, spec = built(execution, numbers, model_fn, "eval")
        update = tf.group(*(update for _, update in spec.eval_metric_ops.values()))
        final = tf1.train.FinalOpsHook({k: value for k, (value, _) in spec.eval_metric_ops.items()})
        with session_of(execution, inputs, spec, [final]) as session:
            while not session.should_stop():
                session.run(update)
    # The last one is for the Estimator, which warns of an input without rows.
    assert final.final_ops_values == {"mean": 3.0, "loss": 30.0, SHARE_WITH_ROWS: 1.0}


def test_a_function_of_metrics_is_called_where_the_batches_are(execution):
    from estimator_core.spec.metric_fn import MetricFn

    def metric_fn(x, weight):
        return {"weighted": tf1.metrics.mean(x, weight)}

    def model_fn(features, labels):
        metrics = MetricFn(metric_fn, {"x": features["x"], "weight": features["x"]})
        return est.EstimatorSpec("eval", loss=tf.constant(2.0), eval_metric_ops=metrics)

    with graph_for(execution):
        inputs, spec = built(execution, numbers, model_fn, "eval")
        assert set(spec.eval_metric_ops) == {"weighted", "loss", SHARE_WITH_ROWS}
        value, update = spec.eval_metric_ops["weighted"]
        final = tf1.train.FinalOpsHook(value)
        with session_of(execution, inputs, spec, [final]) as session:
            while not session.should_stop():
                session.run(update)
    np.testing.assert_allclose(final.final_ops_values, (1 + 4 + 9 + 36) / (1 + 2 + 3 + 6))


@pytest.mark.parametrize("name", ["loss", "global_step"])
def test_a_metric_of_a_reserved_name_is_refused(execution, name):
    def model_fn(features, labels):
        metrics = {name: tf1.metrics.mean(features["x"])}
        return est.EstimatorSpec("eval", loss=tf.constant(0.0), eval_metric_ops=metrics)

    with graph_for(execution), pytest.raises(ValueError, match=f"'{name}' is not allowed"):
        built(execution, ones, model_fn, "eval")


def test_prediction_leaves_labels_out(execution):
    def input_fn(input_context=None):
        return tf.data.Dataset.from_tensors(({"x": [1.0]}, [2.0])).repeat()

    def model_fn(features, labels):
        assert labels is None
        assert set(features) == {"x"}
        return est.EstimatorSpec("infer", features)

    with graph_for(execution):
        inputs, spec = built(execution, input_fn, model_fn, "infer")
        with session_of(execution, inputs, spec) as session:
            copies = execution.num_replicas // execution.num_models
            assert session.run(spec.predictions)["x"].tolist() == [1.0] * copies


@pytest.mark.parametrize(
    ("make_result", "message"),
    [
        (lambda: None, "input_fn"),
        (lambda: (1, 2, 3), "input_fn"),
        (lambda: tf.data.Dataset.from_tensors((1, 2, 3)), "Received: 3 elements"),
    ],
)
def test_an_input_fn_that_gives_no_features_and_labels_is_refused(execution, make_result, message):
    with graph_for(execution), pytest.raises(ValueError, match=message):
        execution.make_inputs(lambda input_context=None: make_result(), "train")


def test_what_builds_a_model_finds_the_execution(execution):
    found = []

    def model_fn(features, labels):
        found.append(current_execution())
        with tf1.Graph().as_default():  # of somebody else
            found.append(current_execution())
        tf.function(lambda: found.append(current_execution())).get_concrete_function()
        return est.EstimatorSpec("infer", features)

    with graph_for(execution):
        built(execution, ones, model_fn, "infer")
    elsewhere = found[1 :: len(found) // execution.num_models]
    assert all(type(each) is SingleDevice for each in elsewhere)
    assert all(each is execution for each in found if each not in elsewhere)
    assert len(found) == 3 * execution.num_models
    assert type(current_execution()) is SingleDevice


def test_it_tells_a_copy_of_the_model_from_what_is_around(execution):
    def model_fn(features, labels):
        inside.append(execution.is_in_replica)
        return est.EstimatorSpec("infer", features)

    inside = []
    assert execution.is_in_replica is False
    with graph_for(execution):
        assert execution.is_in_replica is False
        built(execution, ones, model_fn, "infer")
        assert execution.is_in_replica is False
    is_copied = execution.num_models < execution.num_replicas  # then there is nothing around it yet
    assert inside == [execution.is_replicated and not is_copied] * execution.num_models


def test_each_model_has_a_component_of_a_variable(execution):
    with graph_for(execution):
        built(execution, ones, one_weight(with_optimizer_of_its_own), "train")
        parts = execution.components(tf1.global_variables("weight")[0])
        assert len(parts) == execution.num_models
        assert len({part.handle.name for part in parts}) == execution.num_models


def test_sessions_restore_the_newest_checkpoint_or_the_one_asked_for(execution, tmp_path):
    with tf.Graph().as_default():
        value = tf1.get_variable("value", initializer=0.0)
        saver = tf1.train.Saver()
        with tf1.Session() as session:
            for step in (1, 2):
                session.run(value.assign(10.0 * step))
                saver.save(session, str(tmp_path / "model.ckpt"), step)

    def restored(**where):
        with tf.Graph().as_default() as graph, building(graph, execution):
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
