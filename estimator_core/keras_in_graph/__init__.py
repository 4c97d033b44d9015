"""Keras objects inside a `tf.Graph`; the only package that uses Keras' internals."""
