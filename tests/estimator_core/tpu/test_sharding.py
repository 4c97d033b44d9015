"""Division of the batches of a TPUEstimator into shards, mode by mode."""

import pytest

import estimator_core as est
from estimator_core import tpu
from estimator_core.execution.base import LoopSize
from estimator_core.execution.shards.shard_inputs import ShardInput
from estimator_core.tpu.sharding import ShardedModes, loop_size
from tests.estimator_core.shard_programs import input_fn, predict_input_fn

TRAIN, EVAL, PREDICT = est.ModeKeys.TRAIN, est.ModeKeys.EVAL, est.ModeKeys.PREDICT
INPUT = tpu.InputPipelineConfig
MODES = ShardedModes(frozenset([TRAIN, EVAL]), {TRAIN: 24, EVAL: 12, PREDICT: 6}, (0, 1))


@pytest.mark.parametrize(
    ("training", "kind", "of_input", "of_model"),
    [
        (INPUT.PER_HOST_V1, ShardInput.SPLIT, 24, 6),
        (INPUT.PER_HOST_V2, ShardInput.NEXT, 6, 6),
        (INPUT.PER_SHARD_V1, ShardInput.OWN, 6, 6),
        (INPUT.BROADCAST, ShardInput.SAME, 24, 24),
    ],
)
def test_batch_sizes_of_four_shards(training, kind, of_input, of_model):
    config = tpu.TPUConfig(num_shards=4, per_host_input_for_training=training)
    sharding = MODES.sharding(TRAIN, config)
    assert (sharding.num_shards, sharding.kind) == (4, kind)
    assert MODES.input_batch_size(TRAIN, config) == of_input
    assert MODES.model_batch_size(TRAIN, config) == of_model
    assert sharding.batch_axis == ((0, 1) if kind is ShardInput.SPLIT else None)


def test_a_batch_goes_around_the_shards():
    assert MODES.sharding(PREDICT, tpu.TPUConfig(num_shards=4)) is None  # which is not sharded
    assert MODES.model_batch_size(EVAL, tpu.TPUConfig(num_shards=6)) == 2
    with pytest.raises(ValueError, match=r"eval_batch_size 12 must be divisible by .* shards 8"):
        MODES.sharding(EVAL, tpu.TPUConfig(num_shards=8))
    with pytest.raises(ValueError, match=r"8; TPUConfig\(num_shards=...\) sets another number"):
        MODES.sharding(EVAL, tpu.TPUConfig())  # a board


def test_evaluation_and_prediction_need_a_batch_size(make_sharded):
    estimator = make_sharded(eval_batch_size=None, predict_batch_size=None).train(input_fn, steps=1)
    with pytest.raises(ValueError, match="eval_batch_size can't be None"):
        estimator.evaluate(input_fn, steps=1)
    with pytest.raises(ValueError, match="predict_batch_size can't be None"):
        next(estimator.predict(predict_input_fn))


@pytest.mark.parametrize(
    ("iterations", "size"),
    [
        (5, LoopSize(5)),
        ("12", LoopSize(12)),
        ("30s", LoopSize(secs=30.0)),
        ("5m", LoopSize(secs=300.0)),
        ("1h", LoopSize(secs=3600.0)),
    ],
)
def test_a_loop_has_steps_or_takes_a_time(iterations, size):
    assert loop_size(iterations) == size
    assert MODES.sharding(TRAIN, tpu.TPUConfig(iterations, num_shards=4)).loop_size == size


@pytest.mark.parametrize(
    ("config", "shards"),
    [
        ({"num_cores_per_replica": 1}, 8),
        ({"num_cores_per_replica": 2}, 4),
        ({"num_cores_per_replica": 8}, 1),
        ({"num_cores_per_replica": 2, "num_shards": 6}, 6),  # copies, not cores
        ({"num_cores_per_replica": 16, "num_shards": 2, "per_host_input_for_training": INPUT.PER_HOST_V2}, 2),
    ],
)
def test_shards_are_copies_of_the_model(config, shards):
    config = tpu.TPUConfig(**config)
    sharding = MODES.sharding(TRAIN, config)
    assert (sharding.num_shards, sharding.cores_per_replica) == (shards, config.num_cores_per_replica)
    assert MODES.model_batch_size(TRAIN, config) == 24 // shards


def test_more_cores_than_a_board_has():
    with pytest.raises(ValueError, match=r"number of copies .* num_cores_per_replica=16, num_shards=None"):
        MODES.sharding(TRAIN, tpu.TPUConfig(num_cores_per_replica=16))
    with pytest.raises(ValueError, match="a copy of the model with more cores needs"):
        MODES.sharding(TRAIN, tpu.TPUConfig(num_cores_per_replica=16, num_shards=2))
