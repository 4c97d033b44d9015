"""What params["context"] is."""

import pytest
import tensorflow as tf

from estimator_core.tpu.tpu_context import TPUContext
from tests.estimator_core.shard_programs import input_fn

tf1 = tf.compat.v1


def test_the_context_of_a_model_fn_is_not_that_of_an_input_fn(make_sharded):
    def curious_model_fn(features, labels, mode, params):
        assert params["context"].num_hosts == 1
        return params["context"].current_input_fn_deployment()

    with pytest.raises(RuntimeError, match="is for input_fn"):
        make_sharded(curious_model_fn).train(input_fn, steps=1)


def test_an_input_fn_for_each_shard_knows_which_one_it_feeds():
    context = TPUContext(num_replicas=4, invocation=1, num_invocations=2)
    assert context.current_host == 0
    assert context.current_input_fn_deployment() == ("/device:CPU:0", 1, 2, 2)
    assert context.device_for_replica(3) == ("/device:CPU:0", 3)
