"""Host calls run with every step."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.estimator_core.shard_programs import input_fn, model_fn
from tests.oracle import observe


def test_a_host_call_writes_summaries_step_by_step(make_sharded):
    def summarizing_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        step = tf.reshape(tf1.train.get_global_step(), [1])
        return spec._replace(host_call=(host_fn, [step, tf.reshape(spec.loss, [1])]))

    def host_fn(step, loss):
        assert loss.shape == [2]  # of both shards
        directory = f"{estimator.model_dir}/host"
        with tf.summary.create_file_writer(directory).as_default(), tf.summary.record_if(True):
            tf.summary.scalar("loss", tf.reduce_max(loss), step=step[0])
            return tf1.summary.all_v2_summary_ops()

    estimator = make_sharded(summarizing_model_fn, params={"rate": 0.0})
    estimator.train(input_fn, steps=2)
    found = {}
    for event in observe.events_of(f"{estimator.model_dir}/host"):
        for value in event.summary.value:
            found[event.step] = float(tf.make_ndarray(value.tensor))
    # The losses of the second shard: 4 * mean(9, 16), 4 * mean(49, 64).
    assert found == {0: 50.0, 1: 226.0}


@pytest.mark.parametrize("call", ["eval_metrics", "host_call"])
def test_what_a_host_takes_has_a_batch_dimension(make_sharded, call):
    def scalar_model_fn(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec._replace(**{call: (lambda loss: {}, [spec.loss])})

    estimator = make_sharded().train(input_fn, steps=1)
    with pytest.raises(RuntimeError, match=f"All tensors of {call} need a batch dimension"):
        make_sharded(scalar_model_fn).evaluate(input_fn, steps=1)
    assert estimator.evaluate(input_fn, steps=1)
