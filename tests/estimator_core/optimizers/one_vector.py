"""A model of one vector, on a loss with known slope."""

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.optimizers.minimize import minimize


def train(make_optimizer, steps=3, sparse=False):
    """Returns a vector's values after each step on a loss with known slope, and the variable names.

    The loss is sum(vector * [1, -2, 0]) or, sparse, the sum of rows 0 and 0 and 1: slopes 2, 1, 0.
    """
    with tf.Graph().as_default():
        shape = [3, 1] if sparse else [3]
        vector = tf1.get_variable("vector", shape, initializer=tf1.initializers.ones())
        if sparse:
            loss = tf.reduce_sum(tf.gather(vector, [0, 0, 1]))
        else:
            loss = tf.reduce_sum(vector * [1.0, -2.0, 0.0])
        with tf.name_scope("training"):  # as heads do
            train_op = minimize(make_optimizer(), loss)
        global_step = tf1.train.get_global_step()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            values = []
            for _ in range(steps):
                session.run(train_op)
                values.append(session.run(vector).ravel())
            assert session.run(global_step) == steps
        return np.array(values), [variable.op.name for variable in tf1.global_variables()]
