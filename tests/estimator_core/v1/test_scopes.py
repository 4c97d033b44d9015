import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.v1 import model_fns
from estimator_core.v1.heads import regressor_head


def bias_logits(features, mode):
    bias = tf1.get_variable("bias", [1], initializer=tf1.zeros_initializer())
    return tf.identity(features["x"][:, tf.newaxis] * 0.0 + bias, name="logits")


def build(head, mode="train", scope=None):
    """Returns the values and tags of a model of one bias, for the labels 1 and 3 (the losses 1, 9)."""
    optimizer = tf1.train.GradientDescentOptimizer(0.25)
    model_fn = est.experimental.compose(head, [est.experimental.ModelPart(bias_logits, optimizer)])
    if scope is not None:
        model_fn = model_fns.model_in_scope(model_fn, scope, None)
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.train.create_global_step()
        spec = model_fn({"x": tf.constant([0.0, 0.0])}, tf.constant([[1.0], [3.0]]), mode)
        session.run(tf1.global_variables_initializer())
        summaries = {}
        for serialized in session.run(tf1.get_collection(tf1.GraphKeys.SUMMARIES)):
            for value in tf1.Summary.FromString(serialized).value:
                summaries[value.tag] = value.simple_value
        loss, _ = session.run([spec.loss, spec.train_op])
        return loss, summaries, session.run({v.op.name: v for v in tf1.trainable_variables()})


def test_a_sum_has_the_mean_as_a_summary():
    loss, summaries, variables = build(regressor_head(1, None, "weighted_sum"), scope="model")
    assert loss == 10.0
    assert summaries == {"loss": 10.0, "average_loss": 5.0}
    # The slope of the sum is -2 - 6.
    assert {name: value.tolist() for name, value in variables.items()} == {"model/bias": [2.0]}


@pytest.mark.parametrize(
    "head", [regressor_head(1, None, "weighted_mean"), est.RegressionHead()], ids=["v1", "own"]
)
def test_a_mean_is_the_loss_itself(head):
    loss, summaries, variables = build(head)
    assert (loss, summaries) == (5.0, {"loss": 5.0})
    assert {name: value.tolist() for name, value in variables.items()} == {"bias": [1.0]}


def test_a_scope_of_variables_and_operations(graph):
    features = {"x": tf.constant([0.0])}
    assert model_fns.in_scope(bias_logits, "part")(features, "train").op.name == "part/logits"
    assert model_fns.in_name_scope(bias_logits, "named")(features, "train").op.name == "named/logits"
    assert [v.op.name for v in tf1.trainable_variables()] == ["part/bias", "bias"]


def test_without_parameter_servers_nothing_is_split():
    own = tf1.fixed_size_partitioner(3)
    assert model_fns.input_layer_partitioner_or_default(own, None) is own
    for partitioner in (
        model_fns.hidden_layer_partitioner(None),
        model_fns.input_layer_partitioner_or_default(None, None),
    ):
        assert list(partitioner(shape=tf.TensorShape([10**6, 100]), dtype=tf.float32)) == [1, 1]
