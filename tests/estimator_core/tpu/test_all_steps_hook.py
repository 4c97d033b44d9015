"""An evaluation on shards makes all of its steps."""

import pytest
import tensorflow as tf

from tests.estimator_core.shard_programs import input_fn

tf1 = tf.compat.v1


def test_evaluation_needs_steps_and_an_input_that_lasts(make_sharded):
    estimator = make_sharded().train(input_fn, steps=1)
    with pytest.raises(ValueError, match="needs to know its steps"):
        estimator.evaluate(input_fn)
    with pytest.raises(ValueError, match="steps=3, of which 2 were there"):
        estimator.evaluate(input_fn, steps=3)
    # On one device neither is so.
    assert make_sharded(eval_on_tpu=False).evaluate(input_fn)["batch_size"] == 4
