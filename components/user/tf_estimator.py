"""Gives `tf.estimator` to the user's modules in a process that imports this module, such as a Beam worker."""

from components.user.code import provide_tf_estimator

provide_tf_estimator()
