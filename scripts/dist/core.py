"""Trains with an installed `estimator_core` that has nothing but TensorFlow and NumPy next to it."""

import importlib.util
import sys

import numpy as np
import tensorflow as tf

import estimator_core

if "site-packages" not in estimator_core.__file__:
    sys.exit(f"dist: {estimator_core.__file__} is not installed")
for other in ("apache_beam", "kfp", "pandas", "tfx", "typer"):
    if importlib.util.find_spec(other):
        sys.exit(f"dist: {other} is in the environment, which is to hold the core alone")


def input_fn():
    """Returns batches of a line that is easy to separate."""
    x = np.linspace(-1, 1, 64, dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x > 0)).repeat(40).batch(64)


classifier = estimator_core.LinearClassifier([tf.feature_column.numeric_column("x")])
classifier.train(input_fn)
metrics = classifier.evaluate(input_fn, steps=1)
if metrics["global_step"] != 40 or metrics["accuracy"] < 0.9:
    sys.exit(f"dist: {metrics}")
print(f"dist: estimator_core trained on TensorFlow {tf.__version__}, accuracy {metrics['accuracy']}")
