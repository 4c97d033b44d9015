"""Programs whose steps change something without a batch, and the changes."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.contract.programs_in_a_loop import arrays, dense


def input_fn(batches):
    """Returns an input_fn of this number of batches of four."""

    def make(input_context=None):
        return tf.data.Dataset.from_tensor_slices(arrays()).batch(4, True).take(batches)

    return make


def kept(name, value=0.0, shape=()):
    """A variable that is no weight, and of which all replicas share one copy."""
    return tf1.get_variable(
        name,
        shape,
        initializer=tf1.constant_initializer(value),
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


def loss_of(logits, labels):
    labels = tf.cast(labels[:, tf.newaxis], tf.float32)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def trained(features, labels, mode, beside=lambda: (), change=lambda x: x):
    """A linear model and its step, beside which something else is done."""
    loss = loss_of(dense(change(features["x"]), 1, "out"), labels)
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=tf.group(train_op, *beside()))


def embedding_and_counter(features, labels, mode):
    """Adam's slots of rows that are looked up decay in each step, all of them."""
    table = tf1.get_variable("table", [9, 2], initializer=tf1.constant_initializer(0.3))
    ids = tf.cast(tf.math.abs(features["x"][:, 0]) * 3, tf.int32) % 9
    embedded = tf.nn.embedding_lookup(table, ids)
    loss = loss_of(dense(tf.concat([features["x"], embedded], 1), 1, "out"), labels)
    count = kept("steps_made").assign_add(1.0)
    train_op = tf1.train.AdamOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=tf.group(train_op, count))


def mutable_table(features, labels, mode):
    def insert():
        table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
        key = tf.constant([3], tf.int64)
        with tf.control_dependencies([table.insert(key, table.lookup(key) + 1.0)]):
            return [kept("found", shape=[1]).assign(table.lookup(key))]

    return trained(features, labels, mode, insert)


def step_counter(features, labels, mode):
    def count():
        is_odd = tf.equal(kept("made").assign_add(1.0) % 2.0, 1.0)
        odd = kept("odd")
        return [tf.cond(is_odd, lambda: odd.assign_add(1.0), odd.read_value)]

    return trained(features, labels, mode, count)


def global_step_apart(features, labels, mode):
    loss = loss_of(dense(features["x"], 1, "out"), labels)
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
    count = tf1.train.get_global_step().assign_add(1)
    return est.EstimatorSpec(mode, loss=loss, train_op=tf.group(train_op, count))


def random_counter(features, labels, mode):
    """Numbers that a counter makes random, as a generator of random numbers does."""

    def noise(x):
        drawn = kept("drawn")
        with tf.control_dependencies([drawn.assign_add(1.0)]):
            seed = tf.stack([5, tf.cast(drawn.read_value(), tf.int32)])
        return x + 0.1 * tf.random.stateless_normal(tf.shape(x), seed)

    return trained(features, labels, mode, change=noise)


def batch_norm(features, labels, mode):
    """A mean that decays, and then gains a share of the batch's."""

    def update():
        mean = kept("seen_mean", 1.0, [3])
        with tf.control_dependencies([mean.assign(mean * 0.5)]):
            return [mean.assign_add(0.5 * tf.reduce_mean(features["x"], 0))]

    return trained(features, labels, mode, update)


def moving_average(features, labels, mode):
    """The average takes the weight from before the step."""
    weight = tf1.get_variable("weight", [3, 1], initializer=tf1.zeros_initializer())
    average = tf1.train.ExponentialMovingAverage(0.5).apply([weight])
    loss = loss_of(features["x"] @ weight, labels)
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(loss, [weight])
    with tf.control_dependencies([average]):
        train_op = optimizer.apply_gradients(pairs, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def one_more(value, _):
    return value + 1


# Name -> (model_fn, name of a variable -> its value after the end of the input, of the value of before and of
# all values of before). Other variables keep their values.
PROGRAMS = {
    "embedding_and_counter": (
        embedding_and_counter,
        {
            "steps_made": one_more,
            "table/Adam": lambda value, _: value * np.float32(0.9),
            "table/Adam_1": lambda value, _: value * np.float32(0.999),
        },
    ),
    "mutable_table": (mutable_table, {"found": one_more, "MutableHashTable-values": one_more}),
    "step_counter": (
        step_counter,
        {"made": one_more, "odd": lambda value, all_values: (all_values["made"] + 2) // 2},
    ),
    "global_step_apart": (global_step_apart, {"global_step": one_more}),
    "random_counter": (random_counter, {"drawn": one_more}),
    "batch_norm": (batch_norm, {"seen_mean": lambda value, _: value * 0.5}),
    "moving_average": (
        moving_average,
        {
            "weight/ExponentialMovingAverage": lambda value, all_values: (
                0.5 * value + 0.5 * all_values["weight"]
            )
        },
    ),
}
