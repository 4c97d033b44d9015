"""The part that each shard sees of the batches of input_fn."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.execution.shards.shard_inputs import ShardInput, padded_inputs
from tests.estimator_core.programs import batch_of

MODES = tpu.InputPipelineConfig
PER_HOST = "per_host_input_for_training"
EXAMPLES = np.arange(40, dtype=np.float32)


class Seen:
    """A model_fn that notes its params and, step by step, the batch of each shard."""

    def __init__(self):
        self.params = []
        self.batches = []
        self.labels = []

    def __call__(self, features, labels, mode, params):
        self.params.append(params)
        weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(weight * features["x"])
        noted = [features["x"][tf.newaxis], labels[tf.newaxis]]  # concatenated: [shards, ...]
        if mode == est.ModeKeys.EVAL:
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(self.metric_fn, noted))
        optimizer = tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, host_call=(self.note, noted))

    def note(self, x, labels):
        return tf1.py_func(self.append, [x, labels], tf.int64)

    def append(self, x, labels):
        self.batches.append(x.tolist())
        self.labels.append(labels.tolist())
        return np.int64(0)

    def metric_fn(self, x, labels):
        return {"noted": (tf.constant(0.0), self.note(x, labels))}


class Input:
    """An input_fn over EXAMPLES, whose labels are ten times x; it notes its params."""

    def __init__(self, as_tensors=False):
        self.params = []
        self._as_tensors = as_tensors

    def __call__(self, params):
        self.params.append(params)
        _, call, calls, _ = params["context"].current_input_fn_deployment()
        examples = EXAMPLES[call::calls]
        dataset = tf.data.Dataset.from_tensor_slices(({"x": examples}, 10 * examples))
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        if not self._as_tensors:
            return dataset
        return tf1.data.make_one_shot_iterator(dataset).get_next()


def run(tmp_path, input_fn, mode="train", batch_axis=None, batch_size=4, limit=("steps", 2), **config):
    """Returns the `Seen` of two shards, with a global batch of 4."""
    seen = Seen()
    sizes = {"train_batch_size": batch_size, "eval_batch_size": batch_size, "batch_axis": batch_axis}
    run_config = tpu.RunConfig(tpu.TPUConfig(num_shards=2, **config), model_dir=str(tmp_path))
    seen.estimator = tpu.TPUEstimator(seen, config=run_config, **sizes)
    getattr(seen.estimator, mode)(input_fn, **dict([limit]))
    assert seen.params[0]["use_tpu"] is True
    assert seen.params[0]["context"].num_replicas == 2
    return seen


def batch_sizes(called):
    return [params["batch_size"] for params in called.params]


SPLIT = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
EVERY_OTHER = [[[0, 2], [1, 3]], [[4, 6], [5, 7]]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("per_host", "as_tensors", "batches", "input_sizes"),
    [
        pytest.param(True, False, SPLIT, [4], id="per host v1 splits the batch of the host"),
        pytest.param(True, True, SPLIT, [4], id="per host v1 splits tensors"),
        pytest.param(MODES.PER_HOST_V2, False, SPLIT, [2], id="per host v2 takes a batch for each shard"),
        pytest.param(False, False, EVERY_OTHER, [2, 2], id="per shard v1 calls input_fn for each shard"),
        pytest.param(False, True, EVERY_OTHER, [2, 2], id="per shard v1 calls a function of tensors"),
    ],
)
def test_what_each_shard_trains_on(tmp_path, per_host, as_tensors, batches, input_sizes):
    input_fn = Input(as_tensors)
    seen = run(tmp_path, input_fn, per_host_input_for_training=per_host)
    assert seen.batches == batches
    assert np.array_equal(seen.labels, 10 * np.array(batches))
    assert batch_sizes(input_fn) == input_sizes
    assert batch_sizes(seen) == [2]


@pytest.mark.parametrize("mode", ["train", "evaluate"])
def test_broadcast_gives_all_shards_the_same(tmp_path, mode):
    input_fn = Input()
    # 5 does not go around the shards, and need not.
    seen = run(tmp_path, input_fn, mode, batch_size=5, per_host_input_for_training=MODES.BROADCAST)
    # A host gets the batch of the first shard alone.
    assert seen.batches == [[[0, 1, 2, 3, 4]], [[5, 6, 7, 8, 9]]]
    assert batch_sizes(input_fn) == batch_sizes(seen) == [5]


SLICED = {"eval_training_input_configuration": MODES.SLICED}


@pytest.mark.parametrize(
    ("config", "batch_size"),
    [
        ({}, 4),
        ({"per_host_input_for_training": False}, 4),
        ({"per_host_input_for_training": MODES.PER_HOST_V2}, 2),
        (SLICED, 4),
        ({**SLICED, "per_host_input_for_training": MODES.PER_HOST_V2}, 4),
    ],
)
def test_evaluation_splits_one_batch_among_the_shards(tmp_path, config, batch_size):
    """No input_fn is called for each shard here; SLICED splits the batch whatever training does."""
    input_fn = Input()
    seen = run(tmp_path, input_fn, "evaluate", **config)
    assert seen.batches == SPLIT
    assert batch_sizes(input_fn) == [batch_size]
    assert batch_sizes(seen) == [2]


def test_batch_axis_names_the_axis_along_which_a_batch_is_split(tmp_path):
    """Images of shape HWCN have the batch last; labels have it first."""
    images = np.arange(2 * 4, dtype=np.float32).reshape(2, 4)  # [height, batch]
    input_fn = batch_of({"x": images}, np.arange(4, dtype=np.float32), repeat=None)
    seen = run(tmp_path, lambda params: input_fn(), batch_axis=[1, 0])
    assert seen.batches[0] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert seen.labels[0] == [[0, 1], [2, 3]]


def test_the_number_of_shards_is_8_unless_it_is_said(tmp_path):
    estimator = tpu.TPUEstimator(Seen(), config=tpu.RunConfig(model_dir=str(tmp_path)), train_batch_size=16)
    assert estimator.config.sharding("train").num_shards == 8


WRONG_SIZE = batch_of({"x": [1.0] * 5}, [1.0] * 5)


def of_unknown_size(params):
    return tf.data.Dataset.from_tensor_slices(({"x": EXAMPLES}, EXAMPLES)).batch(2)


@pytest.mark.parametrize(
    ("input_fn", "settings", "error", "message"),
    [
        (Input(), {"batch_size": 5}, ValueError, r"train_batch_size 5 must be divisible by .* shards 2"),
        (Input(), {"batch_size": 5, "mode": "evaluate"}, ValueError, r"eval_batch_size 5 must be divisible"),
        (lambda params: WRONG_SIZE(), {}, ValueError, r"dimension 0 must be divisible .* \(5,\), 2 shards"),
        (lambda params: WRONG_SIZE(), {"batch_axis": [0]}, ValueError, "an entry for each tensor"),
        *(
            (of_unknown_size, {PER_HOST: per_host}, ValueError, "drop_remainder=True")
            for per_host in (True, False, MODES.PER_HOST_V2)
        ),
        (Input(True), {PER_HOST: MODES.PER_HOST_V2}, TypeError, r"must return a tf.data.Dataset"),
    ],
)
def test_batches_that_are_refused(tmp_path, input_fn, settings, error, message):
    with pytest.raises(error, match=message):
        run(tmp_path, input_fn, **settings)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("per_host", [True, False, MODES.PER_HOST_V2, MODES.BROADCAST])
def test_the_end_of_the_input_loses_no_shard(tmp_path, per_host):
    """10 examples are 2 steps of 4, or with the same batches for all shards 2 of 5."""

    def input_fn(params):
        dataset = tf.data.Dataset.from_tensor_slices(({"x": EXAMPLES[:10]}, EXAMPLES[:10]))
        if not per_host and params["context"].current_input_fn_deployment()[1] == 0:
            dataset = dataset.take(4)  # less for the first shard than for the other one
        return dataset.batch(params["batch_size"], drop_remainder=True)

    size = 5 if per_host == MODES.BROADCAST else 4
    seen = run(
        tmp_path, input_fn, batch_size=size, limit=("max_steps", 9), per_host_input_for_training=per_host
    )
    assert seen.estimator.get_variable_value("global_step") == 2
    assert len(seen.batches) == 2


def test_training_ends_at_its_step(tmp_path):
    estimator = run(tmp_path, Input(), batch_size=2, limit=("steps", 7), iterations_per_loop=4).estimator
    assert estimator.get_variable_value("global_step") == 7
    assert estimator.train(Input(), max_steps=9).get_variable_value("global_step") == 9
    with pytest.raises(ValueError, match="one of steps and max_steps"):
        estimator.train(Input())


def test_a_host_call_every_few_steps(tmp_path):
    seen = run(tmp_path, Input(), batch_size=2, limit=("steps", 8), experimental_host_call_every_n_steps=3)
    assert [batch[0] for batch in seen.batches] == [[0.0], [6.0], [12.0]]


def test_sparse_features_of_a_prediction_are_filled_up_in_their_first_dimension_alone(session):
    """The three examples of an input whose batches have two: the last one is filled up."""
    words = tf.sparse.from_dense([[1, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 0, 0, 3]])
    dataset = tf.data.Dataset.from_tensor_slices({"words": words}).batch(2)
    inputs = padded_inputs(dataset, ShardInput.SPLIT, 2, 1, takes_sparse=True)
    ((features, mask),) = inputs.next_batches(1)
    for hook in inputs.hooks:
        hook.begin()
        hook.after_create_session(session, None)
    seen = [session.run((features["words"], mask)) for _ in range(2)]
    (first, first_mask), (last, last_mask) = seen
    assert first.dense_shape.tolist() == last.dense_shape.tolist() == [2, 5]
    assert first_mask.tolist() == [0, 0]
    assert last_mask.tolist() == [0, 1]
    assert last.indices.tolist() == [[0, 4]]
    assert last.values.tolist() == [3]
