import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.canned import compose

tf1 = tf.compat.v1


def logit_fn(name):
    """One weight of that name, times the feature of that name."""

    def build(features, mode):
        weight = tf1.get_variable(name, [1, 1], initializer=tf1.initializers.zeros())
        return tf.matmul(features[name], weight)

    return build


def test_parts_add_up_and_train_by_their_own_optimizers():
    head = est.RegressionHead()
    model_fn = compose(head, [(logit_fn("a"), "SGD", 0.25), (logit_fn("b"), "SGD", 0.125)])
    with tf.Graph().as_default():
        features = {"a": tf.constant([[1.0]]), "b": tf.constant([[2.0]])}
        spec = model_fn(features, tf.constant([1.0]), "train")
        variables = tf1.trainable_variables()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(spec.train_op)
            # The slope of (a + 2 b - 1)^2 at 0 is [-2, -4].
            assert [v.item() for v in session.run(variables)] == [0.5, 0.5]
            assert session.run(spec.loss) == pytest.approx(0.25)  # (0.5 + 1 - 1)^2


def test_a_shared_variable_belongs_to_the_first_part():
    def shared(features, mode):
        with tf1.variable_scope("shared", reuse=tf1.AUTO_REUSE):
            return logit_fn("a")(features, mode)

    model_fn = compose(est.RegressionHead(), [(shared, "SGD", 0.25), (logit_fn("a"), "SGD", 0.25)])
    with tf.Graph().as_default():
        spec = model_fn({"a": tf.constant([[1.0]])}, tf.constant([1.0]), "train")
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(spec.train_op)
            assert [v.item() for v in session.run(tf1.trainable_variables())] == [0.5, 0.5]


def test_a_premade_of_ones_own(tmp_path):
    def embedding_logit_fn(features, mode):
        table = tf1.get_variable("table", [4, 1])
        return tf.gather(table, features["id"])

    estimator = est.Estimator(
        compose(est.BinaryClassHead(), [(embedding_logit_fn, tf.keras.optimizers.Adam(0.5))]),
        model_dir=str(tmp_path),
    )
    ids = np.array([0, 1, 2, 3])

    def input_fn():
        return tf.data.Dataset.from_tensors(({"id": ids}, ids % 2)).repeat(30)

    estimator.train(input_fn)
    assert estimator.evaluate(input_fn, steps=1)["accuracy"] == 1.0


def test_what_can_not_work():
    with pytest.raises(ValueError, match="at least one part"):
        compose(est.RegressionHead(), [])
    model_fn = compose(est.RegressionHead(), [(logit_fn("a"), "SGD")])
    with pytest.raises(ValueError, match="features should be a dictionary"):
        model_fn(tf.constant([1.0]), None, "infer")


def test_two_replicas_train_as_one():
    # In a process of its own: devices are configured before TensorFlow starts.
    script = pathlib.Path(__file__).with_name("train_on_replicas.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    losses = json.loads(done.stdout)
    assert sorted(losses) == ["Adagrad", "Adam", "Ftrl", "RMSProp", "SGD"]
    for optimizer, by_replicas in losses.items():
        assert by_replicas["1"][0] > by_replicas["1"][-1]
        np.testing.assert_allclose(by_replicas["2"], by_replicas["1"], rtol=1e-5, err_msg=optimizer)
