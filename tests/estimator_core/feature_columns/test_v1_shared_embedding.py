import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import input_layer, linear_model
from estimator_core.feature_columns.column_kinds import V1SharedEmbedding, adapted

fc = tf.feature_column

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)  # the row of an id is (2 id, 2 id + 1)
PRICE_OF_ONE = fc.numeric_column("price", normalizer_fn=lambda price: tf.ones_like(price))


def test_only_columns_of_tensorflow_1_are_adapted(graph):
    ids = fc.categorical_column_with_identity("ids", 4)
    (v1,) = tf1.feature_column.shared_embedding_columns([ids], 3)
    (v2,) = fc.shared_embeddings([ids], 3)
    for column in (v2, ids, PRICE_OF_ONE, fc.embedding_column(ids, 3)):
        assert adapted(column) is column
    column = adapted(v1)
    assert isinstance(column, V1SharedEmbedding)
    assert (column.name, column.variable_shape.as_list()) == ("ids_shared_embedding", [3])
    assert adapted(column) is column


@pytest.mark.parametrize("layer", [input_layer, linear_model])
def test_shared_embeddings_of_tensorflow_1(layer, graph):
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
        session.run(tf1.get_variable("table", initializer=TABLE).initializer)
        path = tf1.train.Saver().save(session, str(tmp_path / "model"))
    ids = fc.categorical_column_with_identity("ids", 4)
    settings = {"ckpt_to_load_from": path, "tensor_name_in_ckpt": "table", "trainable": False}
    with tf.Graph().as_default(), tf1.Session() as session:
        columns = tf1.feature_column.shared_embedding_columns([ids], 2, **settings)
        output = input_layer({"ids": tf.constant([2])}, columns)
        assert not tf1.trainable_variables()
        session.run(tf1.global_variables_initializer())
        assert session.run(output).tolist() == [[4.0, 5.0]]


WEIGHTED = fc.weighted_categorical_column(fc.categorical_column_with_identity("ids", 4), "weight")


@pytest.mark.parametrize(
    ("settings", "expected"),
    # Of the rows (2, 3) and (6, 7), the second one weighs three times as much.
    [
        ({"combiner": "sum"}, [20, 24]),
        ({"combiner": "mean"}, [5, 6]),
        ({}, [5, 6]),
        ({"combiner": "sqrtn"}, np.array([20, 24]) / np.sqrt(1 + 9)),
        # Rows of length 1 at most: (2, 3) by the root of 13, (6, 7) by that of 85.
        ({"combiner": "sum", "max_norm": 1.0}, [2 / 13**0.5 + 18 / 85**0.5, 3 / 13**0.5 + 21 / 85**0.5]),
    ],
    ids=str,
)
def test_rows_are_combined_with_their_weights(settings, expected, session):
    initializer = tf1.initializers.constant(TABLE)
    columns = tf1.feature_column.shared_embedding_columns([WEIGHTED], 2, initializer=initializer, **settings)
    output = input_layer({"ids": tf.constant([[1, 3]]), "weight": tf.constant([[1.0, 3.0]])}, columns)
    session.run(tf1.global_variables_initializer())
    np.testing.assert_allclose(session.run(output), [expected], rtol=1e-5)
