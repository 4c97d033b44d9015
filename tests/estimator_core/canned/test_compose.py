import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.canned import compose
from estimator_core.logits import dnn_logit_fn_builder, linear_logit_fn_builder
from estimator_core.optimizers.named import NAMED_OPTIMIZERS
from tests.estimator_core.heads.fresh_graph import trained
from tests.estimator_core.programs import batch_of


def logit_fn(name):
    """One weight of that name, times the feature of that name."""

    def build(features, mode):
        weight = tf1.get_variable(name, [1, 1], initializer=tf1.initializers.zeros())
        return tf.matmul(features[name], weight)

    return build


def shared_a(features, mode):
    with tf1.variable_scope("shared", reuse=tf1.AUTO_REUSE):
        return logit_fn("a")(features, mode)


@pytest.mark.parametrize(
    ("parts", "loss"),
    [
        # The slope of (a + 2 b - 1)^2 at 0 is [-2, -4]; then it is (0.5 + 1 - 1)^2.
        ([(logit_fn("a"), "SGD", 0.25), (logit_fn("b"), "SGD", 0.125)], 0.25),
        # A shared variable belongs to the first part.
        ([(shared_a, "SGD", 0.25), (logit_fn("a"), "SGD", 0.25)], 0.0),
    ],
)
def test_parts_add_up_and_train_by_their_own_optimizers(parts, loss):
    def build():
        features = {"a": tf.constant([[1.0]]), "b": tf.constant([[2.0]])}
        spec = compose(est.RegressionHead(), parts)(features, tf.constant([1.0]), "train")
        return spec, [*tf1.trainable_variables(), spec.loss]

    assert [value.item() for value in trained(build)] == [0.5, 0.5, pytest.approx(loss)]


@pytest.mark.more
def test_a_premade_of_ones_own(tmp_path):
    def embedding_logit_fn(features, mode):
        return tf.gather(tf1.get_variable("table", [4, 1]), features["id"])

    parts = [(embedding_logit_fn, tf.keras.optimizers.Adam(0.5))]
    estimator = est.Estimator(compose(est.BinaryClassHead(), parts), model_dir=str(tmp_path))
    ids = np.array([0, 1, 2, 3])
    estimator.train(batch_of({"id": ids}, ids % 2, repeat=30))
    assert estimator.evaluate(batch_of({"id": ids}, ids % 2))["accuracy"] == 1.0


class Ascent:
    """A training of one's own: moves the variable of each part up the slope, by the rate 0.5."""

    def train_op_fn(self, model):
        assert set(model.features) == {"a", "b"}
        variables = [variable for part in model.parts for variable in part.variables]
        assert [len(part.variables) for part in model.parts] == [1, 1]

        def train_op(loss):
            pairs = zip(variables, tf.gradients(loss, variables), strict=True)
            updates = [variable.assign_add(0.5 * slope, read_value=False) for variable, slope in pairs]
            with tf.control_dependencies(updates):
                return tf1.train.get_global_step().assign_add(1, read_value=False)

        return train_op


def test_a_training_of_ones_own():
    """The loss is (a + b - 3)^2: its slope at 0 is -6 for each weight."""
    parts = [(logit_fn("a"), "SGD"), (logit_fn("b"), "SGD")]
    estimator = est.Estimator(compose(est.RegressionHead(), parts, Ascent()))
    input_fn = batch_of({"a": [[1.0]], "b": [[1.0]]}, [3.0])
    estimator.train(input_fn, steps=1)
    assert [estimator.get_variable_value(name) for name in "ab"] == [-3.0, -3.0]
    assert estimator.evaluate(input_fn)["loss"] == 81.0  # (-6 - 3)^2; nothing is trained here


def test_what_can_not_work():
    with pytest.raises(ValueError, match="at least one part"):
        compose(est.RegressionHead(), [])
    model_fn = compose(est.RegressionHead(), [(logit_fn("a"), "SGD")])
    with pytest.raises(ValueError, match="features should be a dictionary"):
        model_fn(tf.constant([1.0]), None, "infer")


fc = tf.feature_column
ID = fc.categorical_column_with_identity("id", 5)
COLUMNS = [fc.numeric_column("x"), fc.embedding_column(ID, 2, initializer=tf.ones_initializer())]
BATCH = {"x": np.float32([1.0, 2.0, -1.0, 0.5]), "id": np.array([0, 3, 3, 1])}
LABELS = np.float32([1.0, 0.0, 2.0, 3.0])


def losses_on_replicas(optimizer, num_replicas):
    """Returns the losses of five steps in which each replica takes its share of the batch."""
    logit_fns = dnn_logit_fn_builder(1, [], COLUMNS), linear_logit_fn_builder(1, [ID])
    model_fn = compose(est.RegressionHead(), [(logit_fn, optimizer, 0.05) for logit_fn in logit_fns])
    size = 4 // num_replicas
    with tf.Graph().as_default():
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(num_replicas)])

        @tf.autograph.experimental.do_not_convert
        def replica_fn():
            context = tf.distribute.get_replica_context()
            start = size * tf.get_static_value(context.replica_id_in_sync_group)
            part = slice(start, start + size)
            features = {key: tf.constant(value[part]) for key, value in BATCH.items()}
            spec = model_fn(features, tf.constant(LABELS[part]), "train")
            with tf.control_dependencies([spec.train_op]):
                return tf.identity(spec.loss)

        with strategy.scope():
            tf1.train.get_or_create_global_step()
            per_replica = strategy.extended.call_for_each_replica(replica_fn)
            loss = strategy.reduce("MEAN", per_replica, axis=None)
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            for variable in tf1.trainable_variables():
                if variable.op.name == "dnn/logits/kernel":
                    for copy in strategy.experimental_local_results(variable):
                        session.run(copy.assign(np.float32([[0.5], [-0.5], [0.25]])))
            return [float(session.run(loss)) for _ in range(5)]


@pytest.mark.more
@pytest.mark.parametrize("optimizer", NAMED_OPTIMIZERS)
def test_two_replicas_train_as_one(optimizer):
    on_one = losses_on_replicas(optimizer, 1)
    assert on_one[0] > on_one[-1]
    np.testing.assert_allclose(losses_on_replicas(optimizer, 2), on_one, rtol=1e-5)
