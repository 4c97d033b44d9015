"""Settings that use_tpu=True needs; messages of a TPUEstimator are in `test_tpu_estimator`."""

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core import tpu
from estimator_core.tpu.settings_for_shards import check_settings

SIZES = {est.ModeKeys.TRAIN: 8, est.ModeKeys.EVAL: None, est.ModeKeys.PREDICT: 4}
INPUT = tpu.InputPipelineConfig


def spec():
    ids = tf.feature_column.categorical_column_with_identity("id", 10)
    return tpu.experimental.EmbeddingConfigSpec(
        [tf.feature_column.embedding_column(ids, 2)], tf.tpu.experimental.embedding.SGD(0.1)
    )


@pytest.mark.parametrize(
    ("per_host", "is_right"),
    [
        (INPUT.PER_HOST_V1, True),
        (INPUT.PER_HOST_V2, True),
        (INPUT.PER_SHARD_V1, False),
        (INPUT.BROADCAST, False),
    ],
)
def test_tables_are_for_inputs_of_a_host(per_host, is_right):
    config = tpu.RunConfig(tpu.TPUConfig(num_shards=2, per_host_input_for_training=per_host))
    check_settings(config, SIZES, None)
    if is_right:
        check_settings(config, SIZES, spec())
    else:
        with pytest.raises(ValueError, match="must be PER_HOST_V1 or PER_HOST_V2"):
            check_settings(config, SIZES, spec())


def test_copies_of_several_cores_are_for_inputs_of_a_host():
    config = tpu.RunConfig(
        tpu.TPUConfig(num_cores_per_replica=2, per_host_input_for_training=INPUT.PER_SHARD_V1)
    )
    with pytest.raises(ValueError, match="only supports per host input"):
        check_settings(config, SIZES, None)


@pytest.mark.parametrize(
    ("mode", "size", "error"),
    [
        (est.ModeKeys.TRAIN, None, ValueError),
        (est.ModeKeys.EVAL, 0, ValueError),
        (est.ModeKeys.PREDICT, 2.5, TypeError),
    ],
)
def test_batch_sizes_must_be_positive_integers(mode, size, error):
    with pytest.raises(error, match="_batch_size"):
        check_settings(tpu.RunConfig(), {**SIZES, mode: size}, None)
