"""Boosted trees: a library grows them, tensors hold them, TensorFlow's own operations predict."""
