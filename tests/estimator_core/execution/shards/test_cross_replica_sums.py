"""Sums over replicas where there is no TPU."""

import pytest
import tensorflow as tf

from estimator_core import tpu
from tests.estimator_core.shard_programs import input_fn, model_fn

tf1 = tf.compat.v1


def test_a_sum_within_a_function_is_refused(make_sharded):
    def accumulating_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        total = tf.cond(spec.loss > 0, lambda: tpu.cross_replica_sum(spec.loss), lambda: tf.constant(0.0))
        return spec._replace(loss=total)

    with pytest.raises(ValueError, match="can't be made within"):
        make_sharded(accumulating_model_fn).train(input_fn, steps=1)
