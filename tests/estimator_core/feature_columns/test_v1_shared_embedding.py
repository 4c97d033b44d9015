import numpy as np
import pytest
import tensorflow as tf

from estimator_core.feature_columns import input_layer, linear_model
from estimator_core.feature_columns.column_kinds import V1SharedEmbedding, adapted

tf1 = tf.compat.v1

fc = tf.feature_column

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)  # the row of an id is (2 id, 2 id + 1)
PRICE_OF_ONE = fc.numeric_column("price", normalizer_fn=lambda price: tf.ones_like(price))


def test_only_columns_of_tensorflow_1_are_adapted():
    ids = fc.categorical_column_with_identity("ids", 4)
    with tf.Graph().as_default():
        (v1,) = tf1.feature_column.shared_embedding_columns([ids], 3)
        (v2,) = fc.shared_embeddings([ids], 3)
    for column in (v2, ids, PRICE_OF_ONE, fc.embedding_column(ids, 3)):
        assert adapted(column) is column
    column = adapted(v1)
    assert isinstance(column, V1SharedEmbedding)
    assert (column.name, column.variable_shape.as_list()) == ("ids_shared_embedding", [3])
    assert adapted(column) is column


@pytest.mark.parametrize("layer", [input_layer, linear_model])
def test_shared_embeddings_of_tensorflow_1(layer):
    with tf.Graph().as_default():
        ids = [fc.categorical_column_with_identity(name, 4) for name in ("seen", "bought")]
        columns = tf1.feature_column.shared_embedding_columns(
            ids, 2, combiner="sum", initializer=tf1.initializers.constant(TABLE)
        )
        features = {"seen": tf.constant([1]), "bought": tf.constant([[3, 0]]), "price": tf.constant([9.0])}
        output = layer(features, [*columns, PRICE_OF_ONE])
        (table,) = [v for v in tf1.trainable_variables() if v.op.name.endswith("embedding_weights")]
        assert table.op.name == f"{layer.__name__}/bought_seen_shared_embedding/embedding_weights"
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            if layer is input_layer:
                # Rows 3 and 0; the price; row 1.
                np.testing.assert_array_equal(session.run(output), [[6, 8, 1, 2, 3]])
            else:
                assert [w.shape.as_list() for w in output.weights] == [[2, 1], [1, 1], [2, 1]]


def test_shared_embeddings_of_tensorflow_1_from_a_checkpoint(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("table", initializer=TABLE)
        session.run(variable.initializer)
        path = tf1.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default():
        ids = fc.categorical_column_with_identity("ids", 4)
        columns = tf1.feature_column.shared_embedding_columns(
            [ids], 2, ckpt_to_load_from=path, tensor_name_in_ckpt="table", trainable=False
        )
        output = input_layer({"ids": tf.constant([2])}, columns)
        assert not tf1.trainable_variables()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(output).tolist() == [[4.0, 5.0]]


@pytest.mark.parametrize(
    ("settings", "expected"),
    # Of the rows (2, 3) and (6, 7), the second one weighs three times as much.
    [
        ({"combiner": "sum"}, [20, 24]),
        ({"combiner": "mean"}, [5, 6]),
        ({}, [5, 6]),
        ({"combiner": "sqrtn"}, np.array([20, 24]) / np.sqrt(1 + 9)),
        # Rows of length 1 at most: (2, 3) by the root of 13, (6, 7) by that of 85.
        (
            {"combiner": "sum", "max_norm": 1.0},
            np.array([2, 3]) / np.sqrt(13) + 3 * np.array([6, 7]) / np.sqrt(85),
        ),
    ],
    ids=str,
)
def test_rows_are_combined_with_their_weights(settings, expected):
    ids = fc.weighted_categorical_column(fc.categorical_column_with_identity("ids", 4), "weight")
    with tf.Graph().as_default(), tf1.Session() as session:
        columns = tf1.feature_column.shared_embedding_columns(
            [ids], 2, initializer=tf1.initializers.constant(TABLE), **settings
        )
        features = {"ids": tf.constant([[1, 3]]), "weight": tf.constant([[1.0, 3.0]])}
        output = input_layer(features, columns)
        session.run(tf1.global_variables_initializer())
        np.testing.assert_allclose(session.run(output), [expected], rtol=1e-5)
