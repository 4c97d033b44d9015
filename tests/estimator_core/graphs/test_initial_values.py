"""Variables are initialized after those that their initial values are read from."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.checkpoints.warm_start_report import warm_start
from estimator_core.execution.current import building
from estimator_core.execution.strategy import ReplicasInSync
from estimator_core.graphs.build import _in_order
from tests.estimator_core.programs import batch_of, counting


@pytest.mark.more
def test_variables_that_start_from_others_are_initialized_after_them(tmp_path):
    # Each starts one above the one before: all at once, one of them would come too early.
    def model_fn(features, labels, mode):
        with tf1.variable_scope("", use_resource=True):
            last = tf1.get_variable("v0", [], initializer=tf1.initializers.zeros())
            for number in range(1, 30):
                last = tf.Variable(last.read_value() + 1.0, name=f"v{number}", trainable=False)
        scaffold = tf1.train.Scaffold(init_fn=lambda _, session: called.append(session.run(last)))
        return counting(mode, last + 0.0 * tf.reduce_sum(features["x"]), scaffold=scaffold)

    called = []
    input_fn = batch_of({"x": [1.0, 3.0]}, [0.0, 0.0], repeat=2)
    estimator = est.Estimator(model_fn, str(tmp_path))
    assert estimator.evaluate(input_fn)["loss"] == 29.0
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("v29") == 29.0
    assert called == [29.0, 29.0]


def second_from_first():
    """Makes two variables, and returns the first, whose value the second starts from."""
    first = tf1.get_variable("first", initializer=1.0)
    tf.Variable(first.read_value() + 1.0, name="second")
    return first


@pytest.mark.usefixtures("graph")
def test_an_init_op_of_the_user_stays():
    scaffold = tf1.train.Scaffold(init_op=second_from_first().assign(5.0))
    assert _in_order(scaffold) is scaffold
    tf1.add_to_collection(tf1.GraphKeys.INIT_OP, tf1.global_variables_initializer())
    scaffold = tf1.train.Scaffold()
    assert _in_order(scaffold) is scaffold


@pytest.mark.usefixtures("graph")
def test_the_rest_of_the_scaffold_stays():
    second_from_first()
    local = tf1.get_local_variable("local", [], initializer=tf1.zeros_initializer())
    saver = tf1.train.Saver(max_to_keep=2)
    scaffold = tf1.train.Scaffold(local_init_op=local.assign(7.0), saver=saver)
    ordered = _in_order(scaffold)
    assert ordered is not scaffold
    with tf1.train.MonitoredSession(tf1.train.ChiefSessionCreator(ordered)) as session:
        assert session.run(local) == 7.0
    assert ordered.saver is saver


def test_variables_that_start_from_one_that_is_warm_started_on_two_devices(tmp_path):
    """The initializer of the warm started one reads that variable itself, after the assignment."""
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("a\nb\n")
    new.write_text("b\na\n")
    with tf.Graph().as_default(), tf1.Session() as session:
        words = tf1.get_variable("words", initializer=[[1.0], [2.0]])
        session.run(words.initializer)
        tf1.train.Saver().save(session, str(tmp_path / "model.ckpt"), write_meta_graph=False)
    vocabulary = est.VocabInfo(str(new), 2, 0, str(old))
    settings = est.WarmStartSettings(
        str(tmp_path), vars_to_warm_start="words", var_name_to_vocab_info={"words": vocabulary}
    )
    execution = ReplicasInSync(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]))
    with tf.Graph().as_default() as graph, building(graph, execution):
        words = tf1.get_variable("words", [2, 1], initializer=tf1.zeros_initializer())
        last = words
        for number in range(20):
            last = tf.Variable(last.read_value() + 1.0, name=f"v{number}")
        warm_start(settings)
        scaffold = _in_order(tf1.train.Scaffold())
        with tf1.train.MonitoredSession(execution.session_creator(scaffold)) as session:
            assert session.run(words).tolist() == [[2.0], [1.0]]
            assert session.run(last).tolist() == [[22.0], [21.0]]
