"""An evaluation on shards makes all of its steps."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf1

from tests.estimator_core.shard_programs import input_fn


def test_evaluation_needs_steps_and_an_input_that_lasts(make_sharded):
    estimator = make_sharded().train(input_fn, steps=1)
    with pytest.raises(ValueError, match="needs to know its steps"):
        estimator.evaluate(input_fn)
    with pytest.raises(ValueError, match="steps=3, but only 2 batches"):
        estimator.evaluate(input_fn, steps=3)
    with pytest.raises(ValueError, match="steps=5, but only 2 batches"):
        estimator.evaluate(input_fn, steps=5)
    # On one device neither is so.
    assert make_sharded(eval_on_tpu=False).evaluate(input_fn)["batch_size"] == 4


class StopAfter(tf1.train.SessionRunHook):
    def __init__(self, steps):
        self.remaining = steps

    def after_run(self, run_context, run_values):
        self.remaining -= 1
        if not self.remaining:
            run_context.request_stop()


@pytest.mark.parametrize("use_tpu", [True, False])
def test_a_hook_may_end_an_evaluation(make_sharded, use_tpu):
    make_sharded().train(input_fn, steps=1)
    estimator = make_sharded(use_tpu=use_tpu)
    metrics = estimator.evaluate(lambda params: input_fn(params).repeat(), steps=8, hooks=[StopAfter(3)])
    # The weight is 3.75, thus the errors are 1.75 * x, of 1 to 8 and then 1 to 4.
    assert metrics["mae"] == np.float32(1.75 * (36 + 10) / 12)
