"""Boosted trees: LightGBM grows them, TensorFlow variables store them, TensorFlow operations predict."""
