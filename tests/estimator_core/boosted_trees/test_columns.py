import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.boosted_trees.columns import checked_columns, column_matrix, column_ranges

fc = tf.feature_column
NAN = float("nan")


def matrix_of(features, columns):
    with tf.Graph().as_default(), tf1.Session() as session:
        matrix = column_matrix(tf.nest.map_structure(tf.constant, features), checked_columns(columns))
        session.run(tf1.tables_initializer())
        return session.run(matrix)


def test_each_kind_of_column():
    size = fc.numeric_column("size")
    columns = [
        fc.numeric_column("pair", shape=(2,)),
        fc.bucketized_column(size, [0.0, 10.0]),
        size,
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("tree", ["ash", "fir"])),
        fc.categorical_column_with_identity("zone", 3, default_value=1),
    ]
    found = matrix_of(
        {
            "pair": [[1.0, 2.0], [NAN, 4.0], [5.0, 6.0]],
            "size": [-5.0, NAN, 10.0],
            "tree": ["fir", "", "ash"],
            "zone": [2, 0, 7],
        },
        columns,
    )
    expected = [  # pair, size, bucket of size, is ash, is fir, zone 0 to 2
        [1, 2, -5, 0, 0, 1, 0, 0, 1],
        [NAN, 4, NAN, NAN, 0, 0, 1, 0, 0],
        [5, 6, 10, 2, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(found, expected)
    assert [tuple(part) for part in column_ranges(checked_columns(columns))] == [
        ("pair", 2),
        ("size", 1),
        ("size_bucketized", 1),
        ("tree", 2),  # an indicator column goes by the name of the column that it indicates
        ("zone", 3),
    ]


def test_a_hashed_column_counts_its_words():
    column = fc.categorical_column_with_hash_bucket("word", 7)
    found = matrix_of({"word": [["a", "a"], ["b", "c"]]}, [column])
    assert found.shape == (2, 7)
    assert sorted(found[0]) == [0, 0, 0, 0, 0, 0, 2]
    assert found[1].sum() == 2


def test_many_values_of_an_example_are_counted_without_a_matrix_for_each_of_them(graph, session):
    rows = [[3, 1, 3, -1], [0, 0, 0, 9], [-1, -1, -1, -1]]  # 9 and -1 are no category
    known = fc.categorical_column_with_vocabulary_list("word", [5, 0, 1, 3], tf.int64)
    features = {"word": tf.constant(rows, tf.int64)}
    counts = column_matrix(features, checked_columns([fc.indicator_column(known)]))
    session.run(tf1.tables_initializer())
    assert session.run(counts).tolist() == [[0, 0, 1, 2], [0, 3, 0, 0], [0, 0, 0, 0]]
    assert "OneHot" not in {operation.type for operation in graph.get_operations()}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_few_categories_are_compared_without_a_table(graph, dtype):
    column = fc.categorical_column_with_vocabulary_list("id", [7, 3, 5], dtype=tf.int64)
    for shape in ([5], [5, 1]):
        features = {"id": np.array([3, -1, 7, 4, 5], dtype).reshape(shape)}
        found = matrix_of(features, [fc.indicator_column(column)])
        assert found.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    column_matrix({"id": tf.constant([3])}, checked_columns([column]))
    assert not tf1.get_collection(tf1.GraphKeys.TABLE_INITIALIZERS)


@pytest.mark.parametrize(
    ("values", "vocabulary", "settings", "expected"),
    [
        ([[5, 5], [3, -1]], [3, 5], {}, [[0, 2], [1, 0]]),  # several values of an example
        ([3, 9], [3, 5], {"num_oov_buckets": 1}, [[1, 0, 0], [0, 0, 1]]),
        ([5, 9], [3, 5], {"default_value": 0}, [[0, 1], [1, 0]]),
        ([-1, 3], [3, -1], {}, [[0, 0], [1, 0]]),  # -1 is no value at all
        (["", "b"], ["", "b"], {}, [[0, 0], [0, 1]]),  # and so is an empty word
    ],
)
def test_categories_that_can_not_just_be_compared(values, vocabulary, settings, expected):
    column = fc.categorical_column_with_vocabulary_list("id", vocabulary, **settings)
    assert matrix_of({"id": values}, [column]).tolist() == expected


def test_many_categories_are_looked_up():
    column = fc.categorical_column_with_vocabulary_list("id", [*range(1, 400)], dtype=tf.int64)
    found = matrix_of({"id": np.array([399, 2, 500])}, [column])
    assert found.shape == (3, 399)
    assert np.argwhere(found).tolist() == [[0, 398], [1, 1]]


def test_columns_that_trees_can_not_use():
    words = fc.categorical_column_with_hash_bucket("word", 7)
    with pytest.raises(ValueError, match="Trees train no embedding"):
        checked_columns([fc.embedding_column(words, 2)])
    with pytest.raises(ValueError, match="Boosted trees take numeric"):
        checked_columns([fc.sequence_numeric_column("series")])
