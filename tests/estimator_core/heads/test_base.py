import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.heads.metrics import mean
from tests.estimator_core.heads.fresh_graph import trained
from tests.estimator_core.programs import zeros


class QuantileHead(est.Head):
    """A user's own head: the loss of the 0.9 quantile."""

    name = None
    logits_dimension = 1
    loss_reduction = "sum_over_batch_size"

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        error = tf.cast(labels, tf.float32)[:, tf.newaxis] - logits
        return tf.reduce_mean(tf.maximum(0.9 * error, -0.1 * error))

    def predictions(self, logits, keys=None):
        return {"quantile": logits}

    def metrics(self, regularization_losses=None):
        return {"label/mean": mean("label")}

    def update_metrics(self, eval_metrics, features, logits, labels, mode=None, regularization_losses=None):
        eval_metrics["label/mean"].update_state(labels)
        return eval_metrics


def test_a_head_of_ones_own_trains_evaluates_and_is_served(graph):
    bias = tf1.get_variable("bias", [1, 1], initializer=tf1.initializers.zeros())
    labels = tf.constant([1.0, 2.0])
    logits = tf.tile(bias, [2, 1])
    train = QuantileHead().create_estimator_spec({}, "train", logits, labels=labels, optimizer="SGD")
    infer = QuantileHead().create_estimator_spec({}, "infer", tf.constant([[1.0]]))
    assert set(infer.export_outputs) == {"serving_default", "predict"}
    evaluate = QuantileHead().create_estimator_spec({}, "eval", bias + 3.0, labels=labels)
    with tf1.Session() as session:
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        # Both labels are above: the loss is 0.9 * mean(1, 2), its slope -0.9.
        assert session.run(train.loss) == pytest.approx(1.35)
        session.run(train.train_op)
        assert session.run(bias).item() == pytest.approx(0.01 * 0.9)
        assert session.run(tf1.train.get_global_step()) == 1
        # Predictions are there for hooks, in all modes.
        assert session.run(train.predictions["quantile"])[:, 0] == pytest.approx([0.009, 0.009])
        assert session.run(evaluate.predictions["quantile"]).item() == pytest.approx(3.009)
        session.run([update for _, update in evaluate.eval_metric_ops.values()])
        assert session.run(evaluate.eval_metric_ops["label/mean"][0]) == pytest.approx(1.5)


def test_abstract_methods_are_named():
    class Incomplete(est.Head):
        name = None

    with pytest.raises(TypeError, match="logits_dimension"):
        Incomplete()


def test_train_op_fn_update_ops_and_summaries(graph):
    counter = tf1.get_variable("counter", [], initializer=tf1.initializers.zeros())
    update = counter.assign_add(1.0, read_value=False)
    seen = []

    def train_op_fn(loss):
        seen.append(loss)
        return tf.identity(counter.read_value(), name="after_update_ops")

    settings = {"train_op_fn": train_op_fn, "update_ops": [update]}
    settings["regularization_losses"] = [tf.constant(0.5)]
    head = est.RegressionHead(name="price")
    spec = head.create_estimator_spec({}, "train", tf.constant([[3.0]]), tf.constant([[1.0]]), **settings)
    tags = [tensor.op.name for tensor in tf1.get_collection(tf1.GraphKeys.SUMMARIES)]
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(seen[0]) == pytest.approx(4.5)  # (3 - 1)^2 + 0.5
        session.run(spec.train_op)
        assert session.run(counter) == 1.0
    assert tags == ["loss/price", "regularization_loss/price"]


def test_scopes_around_a_head_name_neither_its_summaries_nor_the_optimizers_variables():
    """As in 2.15, whose checkpoints and event files have these names."""
    with tf.Graph().as_default(), tf1.variable_scope("outer"):
        tf1.train.create_global_step()
        weight = tf1.get_variable("weight", [1, 1])
        losses, minimize = [tf.nn.l2_loss(weight)], tf1.train.AdamOptimizer().minimize
        settings = {"regularization_losses": losses, "train_op_fn": minimize}
        logits = tf.matmul([[1.0]], weight)
        est.RegressionHead(name="own").create_estimator_spec({}, "train", logits, [[0.0]], **settings)
        names = {variable.op.name for variable in tf1.global_variables()}
        assert names >= {"outer/weight", "training/beta1_power", "training/beta2_power"}
        tags = [summary.op.inputs[0] for summary in tf1.get_collection(tf1.GraphKeys.SUMMARIES)]
        found = [tf.get_static_value(tag).item().decode() for tag in tags]
        assert found == ["loss/own", "regularization_loss/own"]


def test_update_ops_come_from_the_graph_and_only_the_given_variables_are_trained():
    def build():
        counter, moved, kept = (zeros(name, [1, 1]) for name in ("counter", "moved", "kept"))
        tf1.add_to_collection(tf1.GraphKeys.UPDATE_OPS, counter.assign_add([[1.0]], read_value=False))
        settings = {"optimizer": "SGD", "trainable_variables": [moved]}
        spec = est.RegressionHead().create_estimator_spec({}, "train", moved + kept, [[1.0]], **settings)
        return spec, [counter, moved, kept]

    # Slope -2, learning rate 0.01.
    assert trained(build) == [1.0, pytest.approx(0.02), 0.0]


@pytest.mark.parametrize("given", [{}, {"optimizer": "SGD", "train_op_fn": lambda loss: loss}])
def test_training_needs_exactly_one_way_and_a_known_mode(given):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Exactly one of optimizer and train_op_fn"):
        est.RegressionHead().create_estimator_spec({}, "train", tf.constant([[3.0]]), [[1.0]], **given)
    with pytest.raises(ValueError, match="mode='fit'"):
        est.RegressionHead().create_estimator_spec({}, "fit", None)
