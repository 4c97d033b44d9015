"""Converts CSV files to tf.Examples."""
