"""TPUConfig.input_partition_dims: refused values, and no change on virtual shards."""

import re

import pytest
import tensorflow as tf

from estimator_core import tpu
from estimator_core.tpu.input_partitions import input_fn_with_partitions
from tests.estimator_core import shard_programs

IMAGE, SIZE, LABEL = (tf.TensorSpec(shape) for shape in ([4, 6, 8, 3], [4, 2], [4]))


def check(dims, features=None, labels=LABEL, mode="train", num_cores=4):
    """Calls an input_fn with batches of this shape; returns its result."""
    features = {"image": IMAGE, "size": SIZE} if features is None else features
    element = features if labels is None else (features, labels)

    def input_fn(params):
        assert params == {"a": 1}
        zeros = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape), element)
        return tf.data.Dataset.from_tensors(zeros)

    checked = input_fn_with_partitions(input_fn, dims, num_cores, mode)
    assert checked(params={"a": 1}).element_spec == element
    return True


@pytest.mark.parametrize(
    ("dims", "features"),
    [
        ([{"image": [1, 2, 2, 1], "size": None}, None], None),
        ([{"image": (1, 4, 1, 1), "size": [2, 2]}], None),
        ([{"image": [1, 1, 1, 1], "size": None}, [4]], None),  # a product of 1 splits nothing
        ([[1, 2, 2, 1]], IMAGE),
        ([[[1, 2, 2, 1], None], None], (IMAGE, SIZE)),
    ],
)
def test_dims_that_a_tpu_takes(dims, features):
    assert check(dims, features)
    if not isinstance(features, tuple):  # prediction takes a pair for features and labels
        assert check(dims, features, mode="infer", labels=None)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([None, None], "input_partition_dims[0] must give the dims of features"),
        ([{"image": [1, 2, 2, 1]}], "the structure of features, with the keys ['image', 'size']"),
        ([[1, 2, 2, 1]], "the structure of features, with the keys"),
        ([{"image": [1, 2, 1, 1], "size": None}], "[1, 2, 1, 1] for features['image'], which makes 2"),
        ([{"image": [2, 2], "size": None}], "[2, 2] for features['image'] of shape (4, 6, 8, 3)"),
        ([{"image": [1, 0, 2, 2], "size": None}], "[1, 0, 2, 2]"),
        ([{"image": 4, "size": None}], "for features['image']. Received: 4"),
        ([{"image": None, "size": None}, [2]], "[2] for labels, which makes 2"),
        ([{"image": None, "size": None}, {"a": [4]}], "{'a': [4]}"),
    ],
)
def test_dims_that_it_does_not_take(dims, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        check(dims)


def test_nothing_is_split_on_virtual_shards(make_sharded):
    """The gradient of the first step is -4 * mean(1, 4, 9, 16) = -30, as without cores."""
    config = {"num_cores_per_replica": 2, "per_host_input_for_training": tpu.InputPipelineConfig.PER_HOST_V2}
    estimator = make_sharded(config={**config, "input_partition_dims": [{"x": [2]}, [2]]})
    estimator.train(shard_programs.input_fn, steps=1)
    assert estimator.get_variable_value("weight") == 0.125 * 30
    assert estimator.evaluate(shard_programs.input_fn, steps=1)["batch_size"] == 4
    rows = list(estimator.predict(shard_programs.predict_input_fn))
    assert [row["x"] for row in rows] == list(range(1, 11))
    wrong = make_sharded(config={**config, "input_partition_dims": [{"y": [2]}]})
    with pytest.raises(ValueError, match="the structure of features"):
        wrong.train(shard_programs.input_fn, steps=1)
