"""One copy of the model in this process."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.single_device import SingleDevice


def test_sessions_have_the_given_configuration(graph):
    config = tf1.ConfigProto(intra_op_parallelism_threads=3)
    session = SingleDevice(config).session_creator(tf1.train.Scaffold()).create_session()
    assert session._config.intra_op_parallelism_threads == 3
    session.close()


def test_the_step_is_what_the_function_builds():
    spec = est.EstimatorSpec("train", loss=tf.constant(0.0), train_op=tf.constant(0))
    received = []

    def step_fn(*batch):
        received.append(batch)
        return spec

    with tf.Graph().as_default():
        inputs = SingleDevice().make_inputs(lambda: ("features", "labels"), "train")
        step = SingleDevice().build_step(inputs, step_fn, "train")
    assert step.spec is spec
    assert step.advance is None
    assert received == [("features", "labels")]


def test_it_changes_nothing_of_what_a_model_builds():
    execution = SingleDevice()
    assert (execution.is_replicated, execution.is_in_replica) == (False, False)
    variable = tf.Variable(1.0)
    assert execution.components(variable) == (variable,)
    loss = tf.constant(3.0)
    assert execution.share_of_mean(loss) is loss


def test_updates_by_sums_are_the_updates_and_a_count(graph):
    weight = tf1.get_variable("weight", initializer=10.0)
    counter = tf1.get_variable("counter", initializer=4)
    update = SingleDevice().update_by_sums(
        [(tf.constant(2.0), weight, lambda variable, gradient: variable.assign_sub(gradient))], counter
    )
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        session.run(update)
        assert session.run([weight, counter]) == [8.0, 5]
