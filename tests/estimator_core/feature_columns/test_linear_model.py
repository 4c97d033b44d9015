import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import linear_model
from tests.estimator_core.feature_columns.values import value_of

fc = tf.feature_column


def run(make_features, columns, weights, **kwargs):
    """Returns the logits, with variables set by name below the model's."""
    weights = {"linear_model/bias_weights": [0.0]} | {
        f"linear_model/{name}": value for name, value in weights.items()
    }
    return value_of(lambda: linear_model(make_features(), columns, **kwargs).logits, weights)


def test_dense_and_categorical_columns():
    price = fc.numeric_column("price", shape=(2,))
    kind = fc.categorical_column_with_vocabulary_list("kind", ["x", "y"])
    cross = fc.crossed_column([fc.bucketized_column(fc.numeric_column("age"), [30.0]), kind], 1)

    def features():
        return {
            "price": tf.constant([[1.0, 2.0], [3.0, 4.0]]),
            "kind": tf.constant(["y", "z"]),
            "age": tf.constant([10.0, 40.0]),
        }

    weights = {
        "price/weights": [[1.0], [10.0]],
        "kind/weights": [[100.0], [200.0]],
        "age_bucketized_X_kind/weights": [[1000.0]],
        "bias_weights": [0.5],
    }
    # 1 + 20 + 200 + 1000 + 0.5; 3 + 40 + 1000 + 0.5: an unknown kind has no weight of its own, and
    # tf.feature_column crosses it as the id -1.
    np.testing.assert_allclose(run(features, [price, kind, cross], weights), [[1221.5], [1043.5]], rtol=1e-6)


def test_a_bucketized_column_has_a_weight_for_each_bucket():
    column = fc.bucketized_column(fc.numeric_column("age"), [30.0, 60.0])
    weights = {"age_bucketized/weights": [[1.0], [2.0], [4.0]]}
    output = run(lambda: {"age": tf.constant([60.0, 0.0])}, [column], weights)
    np.testing.assert_array_equal(output, [[4.0], [1.0]])


@pytest.mark.parametrize(
    ("combiner", "expected"),
    # Weights 1 and 4, weighted 2 and 0.5: their sum; by 2.5; by sqrt(4 + 0.25).
    [("sum", 4.0), ("mean", 4.0 / 2.5), ("sqrtn", 4.0 / np.sqrt(4.25))],
)
def test_sparse_combiner_of_weighted_ids(combiner, expected):
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("ids", 3), "weights")
    given = {"ids": np.int64([0, 2]), "weights": np.float32([2.0, 0.5])}

    def features():
        return {key: tf.SparseTensor([[0, 0], [0, 1]], values, [2, 2]) for key, values in given.items()}

    weights = {"ids_weighted_by_weights/weights": [[1.0], [2.0], [4.0]]}
    output = run(features, [column], weights, sparse_combiner=combiner)
    np.testing.assert_allclose(output, [[expected], [0.0]], rtol=1e-6)


def test_units_and_initial_values(graph):
    columns = [fc.categorical_column_with_hash_bucket("word", 7), fc.numeric_column("n")]
    model = linear_model({"word": tf.constant(["a"]), "n": tf.constant([1.0])}, columns, units=3)
    assert [v.shape.as_list() for v in model.weights] == [[1, 3], [7, 3]]
    assert model.bias.shape.as_list() == [3]
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        assert session.run(model.logits).tolist() == [[0.0, 0.0, 0.0]]


def test_ids_of_higher_rank_are_one_bag():
    column = fc.categorical_column_with_identity("ids", 3)
    weights = {"ids/weights": [[1.0], [2.0], [4.0]]}
    output = run(lambda: {"ids": tf.constant([[[0, 1], [2, 2]]])}, [column], weights)
    np.testing.assert_array_equal(output, [[11.0]])


def test_an_unknown_sparse_combiner_is_refused():
    with pytest.raises(ValueError, match="sparse_combiner='max'"):
        linear_model({}, [fc.numeric_column("n")], sparse_combiner="max")
