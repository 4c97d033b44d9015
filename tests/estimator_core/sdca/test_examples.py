import contextlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import linear_model
from estimator_core.sdca import examples as sdca_examples

fc = tf.feature_column


def features_with_weights(features, columns, batch_size):
    """The features beside the variables of a linear model that was built over them."""
    columns = sorted(columns, key=lambda column: column.name)
    linear_model(features, columns)
    return sdca_examples.features_with_weights(features, columns, tf.constant(batch_size))


def test_numbers_and_the_bias_are_dense(session):
    columns = [fc.numeric_column("pair", 2), fc.numeric_column("age")]
    features = {"pair": tf.constant([[1.0, 2.0], [3.0, 4.0]]), "age": tf.constant([5.0, 6.0])}
    sparse, dense = features_with_weights(features, columns, 2)
    assert sparse == []
    assert [feature.weights.op.name.split("/", 1)[1] for feature in dense] == [
        "age/weights",
        "pair/weights",
        "bias_weights",
    ]
    values = session.run([feature.values for feature in dense])
    assert [value.tolist() for value in values] == [[[5.0], [6.0]], [[1.0, 2.0], [3.0, 4.0]], [[1.0], [1.0]]]


IDS = fc.categorical_column_with_identity("ids", 5)


@pytest.mark.parametrize(
    ("column", "ids", "weights", "expected"),
    [
        (
            IDS,
            [[1, 3, 1], [3, -1, -1], [4, 0, 4]],  # -1 is missing
            [[0.0]] * 3,
            {(0, 1): 2.0, (0, 3): 1.0, (1, 3): 1.0, (2, 4): 2.0, (2, 0): 1.0},
        ),
        (
            fc.weighted_categorical_column(IDS, "weight"),
            [[2, 0], [2, 2]],
            [[0.5, 3.0], [1.0, 0.25]],
            {(0, 2): 0.5, (0, 0): 3.0, (1, 2): 1.25},
        ),
    ],
    ids=["categories", "weights of categories"],
)
def test_what_is_of_the_same_category_is_added_up_for_each_example(session, column, ids, weights, expected):
    features = {"ids": tf.constant(ids), "weight": tf.constant(weights)}
    (feature,), _ = features_with_weights(features, [column], len(ids))
    assert feature.weights.shape.as_list() == [5, 1]
    example, category, value = session.run(feature[:3])
    assert dict(zip(zip(example.tolist(), category.tolist(), strict=True), value, strict=True)) == expected


def test_columns_of_more_dimensions_are_refused(session):
    features = {"image": tf.zeros([2, 3, 4])}
    with pytest.raises(ValueError, match=r"one dimension, and image has the shape \(3, 4\)"):
        features_with_weights(features, [fc.numeric_column("image", (3, 4))], 2)


@pytest.mark.parametrize("parts", [1, 2])
def test_variables_in_parts_are_refused_unless_they_are_whole(session, parts):
    features = {"pair": tf.zeros([2, 2])}
    is_refused = pytest.raises(ValueError, match="in 2 parts") if parts == 2 else contextlib.nullcontext()
    with tf1.variable_scope("model", partitioner=tf1.fixed_size_partitioner(parts)), is_refused:
        _, dense = features_with_weights(features, [fc.numeric_column("pair", 2)], 2)
        assert all(isinstance(feature.weights, tf.Variable) for feature in dense)


def test_probabilities_become_two_examples(session):
    weights = tf1.get_variable("weights", [5, 1])
    places = tf.constant([0, 1, 1], tf.int64), tf.constant([4, 2, 3], tf.int64)
    sparse = sdca_examples.SparseFeature(*places, tf.constant([1.0, 2.0, 3.0]), weights)
    dense = sdca_examples.DenseFeature(tf.constant([[7.0], [8.0]]), weights)
    batch = tf.constant(["a", "b"]), tf.constant([0.25, 1.0]), tf.constant([2.0, 3.0])
    doubled = sdca_examples.with_probabilities_as_weights(sdca_examples.Examples(*batch, [sparse], [dense]))
    assert doubled.sparse[0].weights is doubled.dense[0].weights is weights
    ids, labels, example_weights = session.run(doubled[:3])
    assert ids.tolist() == [b"a/1", b"b/1", b"a/0", b"b/0"]
    assert labels.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert example_weights.tolist() == [0.5, 3.0, 1.5, 0.0]
    found = [values.tolist() for values in session.run(doubled.sparse[0][:3])]
    assert found == [[0, 1, 1, 2, 3, 3], [4, 2, 3] * 2, [1.0, 2.0, 3.0] * 2]
    np.testing.assert_array_equal(session.run(doubled.dense[0].values), [[7], [8], [7], [8]])
