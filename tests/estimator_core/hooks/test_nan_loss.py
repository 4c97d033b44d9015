"""A NaN loss ends training; the contract suite has it with many steps a call."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.single_device import SingleDevice
from estimator_core.hooks.nan_loss import NanLossHook, NanStepRecorder
from tests.contract.executions import several_steps_in_a_run

tf1 = tf.compat.v1


def model_fn(features, labels, mode):
    """loss = log(x), which is NaN for a negative x."""
    step = tf1.train.get_global_step()
    loss = tf.reduce_sum(tf.math.log(features["x"]), name="log_of_x")
    with tf.control_dependencies([loss]):
        return est.EstimatorSpec(mode, loss=loss, train_op=step.assign_add(1))


def input_fn(*values):
    return lambda: tf.data.Dataset.from_tensor_slices(({"x": list(values)}, [0.0] * len(values)))


def test_a_nan_loss_names_its_tensor_and_step_and_loses_nothing(tmp_path):
    config = est.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=1)
    estimator = est.Estimator(model_fn, config=config)
    with pytest.raises(est.NanLossDuringTrainingError, match=r"'log_of_x:0' at global step 3"):
        estimator.train(input_fn(1.0, 2.0, -1.0, 1.0))
    assert estimator.get_variable_value("global_step") == 2


def recorded(losses):
    """Makes a step with each of these losses; returns what was recorded."""
    with tf.Graph().as_default():
        step = tf1.train.create_global_step()
        loss = tf1.placeholder(tf.float32, [])
        spec = est.EstimatorSpec("train", loss=loss, train_op=step.assign_add(1))
        recorder = NanStepRecorder()
        spec = recorder.add_to(spec)
        assert tf1.local_variables() == []
        assert tf1.global_variables() == [step]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            recorder.reset(session)
            for value in losses:
                session.run(spec.train_op, {loss: value})
            found = recorder.first(session.run(recorder.fetches))
            recorder.reset(session)
            assert recorder.first(session.run(recorder.fetches)) is None
            assert session.run(step) == len(losses)
    return found


@pytest.mark.parametrize(
    ("losses", "expected"),
    [([1.0, np.inf], None), ([np.nan], 1), ([1.0, np.nan, 2.0, np.nan, 3.0], 2)],
)
def test_the_first_step_is_recorded(losses, expected):
    assert recorded(losses) == expected


def test_the_first_of_several_replicas():
    assert NanStepRecorder.first([]) is None
    assert NanStepRecorder.first([np.int64(-1), np.int64(-1)]) is None
    assert NanStepRecorder.first([np.int64(-1), np.int64(8), np.int64(5)]) == 5


def test_a_loss_of_integers_is_never_nan():
    with tf.Graph().as_default():
        spec = est.EstimatorSpec("train", loss=tf.constant(1), train_op=tf.no_op())
        recorder = NanStepRecorder()
        assert recorder.add_to(spec) is spec
    assert recorder.fetches == []


def test_without_a_recorder_each_step_is_looked_at():
    assert NanLossHook(None).steps_until_due(3) == 1
    assert NanLossHook(None, NanStepRecorder()).steps_until_due(3) is None


@pytest.mark.parametrize(("most", "expected"), [(1, False), (2, True)])
def test_the_graph_records_only_when_a_call_can_make_many_steps(
    monkeypatch, tmp_path, most, expected
):
    execution = several_steps_in_a_run(SingleDevice, most)()
    monkeypatch.setattr("estimator_core.estimator.select_execution", lambda config, mode: execution)
    program = est.Estimator(model_fn, str(tmp_path)).build_program("train", input_fn(1.0))
    names = [operation.name for operation in program.graph.get_operations()]
    assert any("first_nan_step" in name for name in names) is expected
    assert (program.nan_steps is not None) is expected
