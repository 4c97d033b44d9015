"""`tf.estimator.inputs`: input functions over arrays and data frames in memory."""

from estimator_core.inputs.in_memory import numpy_input_fn, pandas_input_fn

__all__ = ["numpy_input_fn", "pandas_input_fn"]
