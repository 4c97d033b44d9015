"""Embeddings of one id for each example are those of the general way, bit for bit."""

import numpy as np
import pytest
import tensorflow as tf

from estimator_core.feature_columns.input_layer import input_layer

tf1 = tf.compat.v1
fc = tf.feature_column
IDS = [[3], [0], [-1], [4], [3], [-7], [1]]
WORDS = [["b"], ["a"], [""], ["never seen"], ["b"], ["c"], ["a"]]

COLUMNS = {
    "identity": (fc.categorical_column_with_identity("f", 5), IDS),
    "identity_with_default": (fc.categorical_column_with_identity("f", 4, default_value=2), IDS),
    "hash_of_text": (fc.categorical_column_with_hash_bucket("f", 6), WORDS),
    "hash_of_numbers": (fc.categorical_column_with_hash_bucket("f", 6, tf.int64), IDS),
    "words": (fc.categorical_column_with_vocabulary_list("f", ["a", "b", "c"]), WORDS),
    "words_with_default": (
        fc.categorical_column_with_vocabulary_list("f", ["a", "b", "c"], default_value=1),
        WORDS,
    ),
    "words_with_others": (
        fc.categorical_column_with_vocabulary_list("f", ["a", "b"], num_oov_buckets=2),
        WORDS,
    ),
    "numbers": (fc.categorical_column_with_vocabulary_list("f", [4, 3, -1], tf.int64), IDS),
}


def embedded(column, feature, for_training, static_rows=None):
    """The value of the layer, and the types of the operations of its graph."""
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        if not isinstance(feature, tf.Tensor | tf1.SparseTensorValue):
            feature = np.array(feature)
            holder = tf1.placeholder(
                tf.string if feature.dtype.kind == "U" else tf.as_dtype(feature.dtype),
                [static_rows, *feature.shape[1:]],
            )
        else:
            holder = tf1.sparse_placeholder(tf.int64, [None, 1])
        init = tf1.random_normal_initializer(seed=3)
        with tf1.variable_scope("", initializer=init):
            layer = input_layer({"f": holder}, [column], for_training=for_training)
        session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
        return session.run(layer, {holder: feature}), {o.type for o in graph.get_operations()}


@pytest.mark.parametrize("combiner", ["mean", "sqrtn", "sum"])
@pytest.mark.parametrize("name", sorted(COLUMNS))
@pytest.mark.parametrize("static_rows", [None, 7])
def test_the_values_are_those_of_the_general_way(name, combiner, static_rows):
    ids, feature = COLUMNS[name]
    init = tf1.random_normal_initializer(seed=3)
    column = fc.embedding_column(ids, 3, combiner, initializer=init)
    expected, general = embedded(column, feature, True, static_rows)
    found, operations = embedded(column, feature, False, static_rows)
    assert found.tobytes() == expected.tobytes()
    assert np.abs(expected).sum() > 1
    assert "SparseFillEmptyRows" in general
    assert "SparseFillEmptyRows" not in operations


@pytest.mark.parametrize("dtype", [np.int32, np.int8])
def test_ids_may_be_of_any_integer_type(dtype):
    column = fc.embedding_column(COLUMNS["identity"][0], 3, initializer=tf1.ones_initializer())
    ids = np.array(IDS, dtype)
    expected, _ = embedded(column, ids, True)
    found, _ = embedded(column, ids, False)
    assert found.tolist() == expected.tolist()
    assert found.sum(axis=1).tolist() == [3, 3, 0, 3, 3, 0, 3]


@pytest.mark.parametrize("for_training", [True, False])
def test_an_id_that_is_too_high_is_an_error(for_training):
    column = fc.embedding_column(COLUMNS["identity"][0], 3)
    with pytest.raises(tf.errors.InvalidArgumentError):
        embedded(column, [[2], [5]], for_training)


def test_numbers_that_are_no_ids_are_refused_as_before():
    column = fc.embedding_column(COLUMNS["identity"][0], 3)
    for for_training in (True, False):
        with pytest.raises(ValueError, match="not integer"):
            embedded(column, [[2.0], [3.0]], for_training)


@pytest.mark.parametrize(
    ("column", "feature"),
    [
        (fc.embedding_column(COLUMNS["identity"][0], 3), [[1, 2], [2, -1]]),
        (fc.embedding_column(COLUMNS["identity"][0], 3, max_norm=0.5), IDS),
        (
            fc.embedding_column(COLUMNS["identity"][0], 3),
            tf1.SparseTensorValue([[0, 0], [2, 0]], [4, 1], [3, 1]),
        ),
    ],
)
def test_all_else_takes_the_general_way(column, feature):
    expected, general = embedded(column, feature, True)
    found, operations = embedded(column, feature, False)
    assert operations == general
    assert found.shape == expected.shape


def test_a_table_in_parts_takes_the_general_way():
    column = fc.embedding_column(COLUMNS["identity"][0], 3, initializer=tf1.ones_initializer())
    with tf.Graph().as_default() as graph, tf1.Session() as session:
        partitioner = tf1.fixed_size_partitioner(2)
        with tf1.variable_scope("", partitioner=partitioner):
            layer = input_layer({"f": tf.constant(IDS)}, [column], for_training=False)
        session.run(tf1.global_variables_initializer())
        assert session.run(layer).sum(axis=1).tolist() == [3, 3, 0, 3, 3, 0, 3]
        assert "SparseFillEmptyRows" in {each.type for each in graph.get_operations()}
