import pytest

from estimator_core import tpu

PER_HOST_V2 = tpu.InputPipelineConfig.PER_HOST_V2


def test_defaults_are_those_of_tf_estimator():
    config = tpu.TPUConfig()
    assert config.iterations_per_loop == 2
    assert config.num_shards is None
    assert config.per_host_input_for_training == tpu.InputPipelineConfig.PER_HOST_V1
    assert config.eval_training_input_configuration == tpu.InputPipelineConfig.PER_HOST_V1


# True and False are older names of two of the ways.
@pytest.mark.parametrize(("value", "way"), [(True, 2), (False, 1), (PER_HOST_V2, 3)])
def test_per_host_input(value, way):
    assert tpu.TPUConfig(per_host_input_for_training=value).per_host_input_for_training == way


@pytest.mark.parametrize("value", [1, 100, "30s", "5m", "1h", "10"])
def test_iterations_per_loop(value):
    assert tpu.TPUConfig(iterations_per_loop=value).iterations_per_loop == value


# The types are those that tf.estimator 2.15 raises.
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        *(
            ({"iterations_per_loop": value}, ValueError, "iterations_per_loop")
            for value in (0, -1, 2.5, None, True, "0s", "1.5s", "x10")
        ),
        ({"num_shards": 0}, ValueError, "num_shards must be positive"),
        ({"num_shards": 2.5}, TypeError, "num_shards must be int"),
        ({"initial_infeed_sleep_secs": -1}, ValueError, "initial_infeed_sleep_secs"),
        ({"initial_infeed_sleep_secs": "a"}, TypeError, "initial_infeed_sleep_secs"),
        ({"num_cores_per_replica": 3}, ValueError, "num_cores_per_replica"),
        ({"num_cores_per_replica": 0}, ValueError, "num_cores_per_replica"),
        ({"eval_training_input_configuration": 3}, ValueError, "PER_HOST_V1 or SLICED"),
        ({"input_partition_dims": []}, ValueError, "one or two"),
        ({"input_partition_dims": [[1, 2]]}, ValueError, "PER_HOST_V2"),
        (
            {"input_partition_dims": [[1, 2]], "per_host_input_for_training": PER_HOST_V2},
            ValueError,
            "requires setting num_cores_per_replica",
        ),
    ],
)
def test_bad_values_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        tpu.TPUConfig(**arguments)


def test_partitions_of_the_input_are_kept():
    dims = [{"image": [1, 2]}, None]
    config = tpu.TPUConfig(
        num_cores_per_replica=2, per_host_input_for_training=PER_HOST_V2, input_partition_dims=dims
    )
    assert config.input_partition_dims == dims
