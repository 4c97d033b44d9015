"""Keras objects inside a `tf.Graph`; the one place that knows Keras' internals."""
