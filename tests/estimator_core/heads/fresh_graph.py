"""Runs a part of a head in a graph of its own."""

import tensorflow as tf

tf1 = tf.compat.v1


def run(build):
    """Returns the values of the tensors that `build` returns, from a fresh graph."""
    with tf.Graph().as_default():
        fetches = build()
        with tf1.Session() as session:
            session.run(
                [
                    tf1.global_variables_initializer(),
                    tf1.local_variables_initializer(),
                    tf1.tables_initializer(),
                ]
            )
            return session.run(fetches)
