"""For code that can't be changed: the names and modules of tf.estimator lead here."""
