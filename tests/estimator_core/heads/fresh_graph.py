"""Runs a part of a head in a graph of its own."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1


def run(build):
    """Returns the values of the tensors that `build` returns, from a fresh graph."""
    with tf.Graph().as_default():
        fetches = build()
        tables = tf1.tables_initializer()
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer(), tables])
            return session.run(fetches)


def evaluated(head, logits, labels, features=None, **settings):
    """Returns the metrics of one batch, from a fresh graph."""
    with tf.Graph().as_default():
        features = {key: tf.constant(value) for key, value in (features or {}).items()}
        logits, labels = tf.constant(logits), tf.nest.map_structure(tf.constant, labels)
        spec = head.create_estimator_spec(features, "eval", logits, labels=labels, **settings)
        with tf1.Session() as session:
            session.run([tf1.local_variables_initializer(), tf1.tables_initializer()])
            session.run([update for _, update in spec.eval_metric_ops.values()])
            return session.run({key: value for key, (value, _) in spec.eval_metric_ops.items()})


def trained(build):
    """Returns the values of fetches, of `build() -> (spec, fetches)`, after a training step."""
    with tf.Graph().as_default():
        spec, fetches = build()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(spec.train_op)
            return session.run(fetches)
