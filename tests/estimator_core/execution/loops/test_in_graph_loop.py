"""Training steps that are made without hooks, in a loop of the graph or one by one."""

import logging
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

import estimator_core as est
from estimator_core.execution.loops.in_graph_loop import ManySteps, RepeatedStep, with_calls_in_order
from estimator_core.execution.single_device import SingleDevice


def built(loss_of, batches=20):
    """A step whose weight adds up the values of the input: 0, 1, 2, ..."""
    step = tf1.train.create_global_step()
    iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(batches))
    batch = tf.cast(iterator.get_next(), tf.float32)
    total = tf1.get_variable("total", initializer=0.0)
    with tf.control_dependencies([total.assign_add(batch)]):
        train_op = step.assign_add(1)
    spec = est.EstimatorSpec("train", loss=loss_of(batch, total), train_op=train_op)
    return spec, tf.group(tf1.global_variables_initializer(), iterator.initializer), [total, step]


@pytest.fixture(params=[True, False], ids=["in a loop", "one by one"])
def in_a_loop(request):
    return request.param


def repeated(spec, in_a_loop):
    step = RepeatedStep(spec)
    if in_a_loop:
        step.add_loop()
    return step


def started(session, in_a_loop, loss_of=lambda batch, total: batch, batches=20):
    """The repeated step of `built`, whose input has started; and the variables: the total and the step."""
    spec, start, state = built(loss_of, batches)
    step = repeated(spec, in_a_loop)
    session.run(start)
    return step, state


def test_it_makes_so_many_steps(session, in_a_loop):
    spec, start, state = built(lambda batch, total: batch * 10)
    step = repeated(spec, in_a_loop)
    session.run(start)
    for steps, expected in ((4, [0 + 1 + 2 + 3, 4]), (None, [10, 5]), (7, [66, 12])):
        if steps:
            assert step(session, steps) is False
        else:
            session.run(spec.train_op)  # the next batch is its own
        assert session.run(state) == expected


def test_the_end_of_the_input_keeps_the_steps_before_it_and_their_last_loss(session, in_a_loop):
    step, state = started(session, in_a_loop, lambda batch, total: batch * 10, batches=6)
    step(session, 2)
    with pytest.raises(tf.errors.OutOfRangeError):
        step(session, 9)
    assert session.run(state) == [15, 6]
    assert step.last_loss(session) == 50


@pytest.mark.parametrize(
    ("calls", "total_and_step"),
    [([(2, False), (10, True)], [15, 6]), ([(5, False), (1, True), (3, False)], [36, 9])],
    ids=["within the steps of a call", "in the last of the steps"],
)
def test_a_loss_that_is_nan_is_that_of_the_last_step(session, in_a_loop, calls, total_and_step):
    step, state = started(
        session, in_a_loop, lambda batch, total: tf.where(tf.equal(batch, 5), np.nan, batch)
    )
    for steps, is_nan in calls:
        assert step(session, steps) is is_nan
    assert session.run(state) == total_and_step


def test_an_error_within_keeps_the_steps_before_it(session, in_a_loop):
    def loss_of(batch, total):
        with tf.control_dependencies([tf1.assert_less(batch, 3.0)]):
            return tf.identity(batch)

    step, state = started(session, in_a_loop, loss_of)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert"):
        step(session, 10)
    assert session.run(state[1]) in (3, 4)  # the step counts beside the loss, or not


@pytest.mark.parametrize("dtype", [tf.int32, tf.float64, tf.bfloat16])
def test_the_loss_may_be_of_any_type(session, in_a_loop, dtype):
    step, state = started(session, in_a_loop, lambda batch, total: tf.cast(batch, dtype))
    assert step(session, 5) is False
    assert session.run(state) == [10, 5]


def test_a_recovered_session_goes_on(in_a_loop, graph):
    spec, start, state = built(lambda batch, total: batch)
    step = repeated(spec, in_a_loop)
    for _ in range(2):
        with tf1.Session() as session:
            session.run(start)
            assert step(session, 3) is False
            assert session.run(state) == [3, 3]


def test_a_step_that_can_not_be_copied_is_run_itself(session, caplog):
    with caplog.at_level(logging.INFO, logger="tensorflow"):
        step, state = started(session, True, lambda batch, total: batch + tf1.random_uniform([], seed=2))
    assert "Training steps are run one by one, as " in caplog.text
    assert "RandomUniform" in caplog.text
    makes_four_steps(session, step, state)


def test_only_training_is_repeated():
    execution = SingleDevice(many_steps=ManySteps(4))
    assert execution.steps_per_session_run == 4
    with tf.Graph().as_default():
        spec = built(lambda batch, total: batch)[0]
        assert execution.make_step(spec, "train").advance is not None
        assert execution.make_step(spec, "eval").advance is None
    assert SingleDevice(many_steps=ManySteps(1)).steps_per_session_run == 1


def makes_four_steps(session, step, state):
    assert step(session, 4) is False
    assert session.run(state) == [6, 4]


def test_a_loop_that_the_session_can_not_run_is_dropped_before_a_step(session, caplog):
    step, state = started(session, True)
    error = tf.errors.InvalidArgumentError(None, None, "no such device")
    step._loop.compile = mock.Mock(side_effect=error)
    makes_four_steps(session, step, state)
    assert "one by one, as the session can't run a loop of them: no such device" in caplog.text


def test_loops_of_tensorflow_1_are_not_used(session, caplog):
    tf1.disable_control_flow_v2()
    try:
        with caplog.at_level(logging.INFO, logger="tensorflow"):
            step, state = started(session, True)
    finally:
        tf1.enable_control_flow_v2()
    assert "one by one, as loops of TensorFlow 1 are on" in caplog.text
    makes_four_steps(session, step, state)


@pytest.mark.parametrize("size", [1, 50])
def test_a_step_of_a_loop_that_finds_no_batch_changes_nothing(session, size):
    @tf.function
    def forward(batch):
        return tf.reduce_sum(batch) + tf.cast(used.assign_add(1), tf.float32)

    step = tf1.train.create_global_step()
    used = tf1.get_variable("used", initializer=0)  # such as the state of a random generator
    apart = tf1.get_variable("apart", initializer=0)
    iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(3))
    loss = forward(tf.fill([size], tf.cast(iterator.get_next(), tf.float32)))
    train_op = tf.group(step.assign_add(1), apart.assign_add(1))  # neither needs the batch
    start = tf.group(tf1.global_variables_initializer(), iterator.initializer)
    repeated_step = repeated(est.EstimatorSpec("train", loss=loss, train_op=train_op), True)
    for _ in range(20):  # otherwise it is a matter of luck
        session.run(start)
        with pytest.raises(tf.errors.OutOfRangeError):
            repeated_step(session, 9)
        assert session.run([step, used, apart]) == [3, 3, 3]
    session.run(apart.assign_add(1))
    session.run(train_op)  # which takes no batch, as ever
    assert session.run([step, used, apart]) == [4, 3, 5]


def test_functions_are_called_in_order():
    config = with_calls_in_order(tf1.ConfigProto(intra_op_parallelism_threads=3))
    assert config.intra_op_parallelism_threads == 3
    assert config.graph_options.rewrite_options.function_optimization == RewriterConfig.OFF
    config.graph_options.rewrite_options.function_optimization = RewriterConfig.ON
    assert with_calls_in_order(config) == config  # the user has chosen
    assert with_calls_in_order(None).graph_options.rewrite_options.function_optimization


@pytest.mark.more
def test_an_update_in_a_function_comes_after_what_gives_its_inputs():
    """As with a Keras optimizer's weight decay: it does not need the gradients, and would be early."""

    def model_fn(features, labels, mode):
        del labels
        weight = tf1.get_variable("weight", initializer=tf.ones([200, 200]) / 200)
        step = tf1.train.get_global_step()

        @tf.function
        def gradient(x):
            for _ in range(20):
                x = tf.matmul(x, weight)
            return x

        @tf.function
        def apply(given):
            weight.assign(weight * 0.9)  # early, it changes the value that the other function reads
            weight.assign_sub(given * 1e-3)
            return tf.constant(0)

        given = gradient(tf.ones([200, 200]) * features)
        with tf.control_dependencies([apply(given)]):
            train_op = step.assign_add(1)
        return est.EstimatorSpec(mode, loss=tf.reduce_sum(given), train_op=train_op.op)

    def weight_after(steps_per_session_run):
        config = est.RunConfig(steps_per_session_run=steps_per_session_run)
        estimator = est.Estimator(model_fn, config=config)
        estimator.train(lambda: tf.data.Dataset.from_tensors(1.0).repeat(), steps=12)
        return estimator.get_variable_value("weight")

    expected = np.full([200, 200], 1 / 200)
    for _ in range(12):
        given = np.ones([200, 200])
        for _ in range(20):
            given = given @ expected
        expected = expected * 0.9 - given * 1e-3
    for steps in (1, 10, 10, 10):
        np.testing.assert_allclose(weight_after(steps), expected, rtol=1e-4, atol=1e-9)
