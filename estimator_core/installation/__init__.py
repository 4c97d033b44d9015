"""Support for code that can't be changed: the names and modules of tf.estimator resolve to this package."""
