"""Workloads of `benchmarks/speed.py`: one file for each kind of work, for ours and for tf.estimator 2.15.

Nothing here imports `estimator_core`: a contestant passes the Estimator API to these functions. TensorFlow is
imported by the modules that compute, not by this package.
"""
