import numpy as np
import pytest
import tensorflow as tf

from estimator_core.feature_columns import input_layer

tf1 = tf.compat.v1

fc = tf.feature_column


def run(features, columns, assign=None):
    """Returns the input layer's value, with variables set by name."""
    with tf.Graph().as_default():
        output = input_layer(
            {
                key: value if isinstance(value, tf.SparseTensor) else tf.constant(value)
                for key, value in (features() if callable(features) else features).items()
            },
            columns,
        )
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            for variable in tf1.global_variables():
                variable.load((assign or {})[variable.op.name], session)
            return session.run(output)


def test_columns_are_joined_by_name():
    columns = [fc.numeric_column("b", shape=(2,)), fc.numeric_column("a")]
    output = run({"a": [1.0, 2.0], "b": [[3.0, 4.0], [5.0, 6.0]]}, columns)
    np.testing.assert_array_equal(output, [[1, 3, 4], [2, 5, 6]])


def test_bucketized_and_indicator():
    price = fc.numeric_column("price")
    kind = fc.categorical_column_with_vocabulary_list("kind", ["x", "y"])
    columns = [fc.bucketized_column(price, [0.0, 10.0]), fc.indicator_column(kind)]
    output = run({"price": [-1.0, 10.0], "kind": ["y", "unknown"]}, columns)
    # kind_indicator comes before price_bucketized; an unknown word is no word.
    np.testing.assert_array_equal(output, [[0, 1, 1, 0, 0], [0, 0, 0, 0, 1]])


TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)


def test_embedding_of_a_sparse_bag():
    column = fc.embedding_column(fc.categorical_column_with_identity("ids", 4), 2, combiner="mean")

    def features():
        return {"ids": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.int64([1, 3, 0]), [3, 2])}

    output = run(features, [column], {"input_layer/ids_embedding/embedding_weights": TABLE})
    # The mean of rows 1 and 3; nothing; row 0.
    np.testing.assert_array_equal(output, [[4, 5], [0, 0], [0, 1]])


def test_weighted_embedding():
    ids = fc.categorical_column_with_identity("ids", 4)
    weighted = fc.weighted_categorical_column(ids, "weights")
    column = fc.embedding_column(weighted, 2, combiner="sum")

    def features():
        indices, shape = [[0, 0], [0, 1]], [1, 2]
        return {
            "ids": tf.SparseTensor(indices, np.int64([1, 3]), shape),
            "weights": tf.SparseTensor(indices, np.float32([2.0, 0.5]), shape),
        }

    name = "input_layer/ids_weighted_by_weights_embedding/embedding_weights"
    # 2 * [2, 3] + 0.5 * [6, 7]
    np.testing.assert_array_equal(run(features, [column], {name: TABLE}), [[7.0, 9.5]])


def test_shared_embeddings_share_one_trainable_table():
    with tf.Graph().as_default():
        columns = fc.shared_embeddings(
            [fc.categorical_column_with_identity(name, 4) for name in ("seen", "bought")], 2
        )
        features = {"seen": tf.constant([1]), "bought": tf.constant([3])}
        with tf1.variable_scope("dnn"):
            output = input_layer(features, columns)
        (table,) = tf1.trainable_variables()
        assert table.op.name == "bought_seen_shared_embedding"
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            table.load(TABLE, session)
            np.testing.assert_array_equal(session.run(output), [[6, 7, 2, 3]])


def test_vocabulary_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("x\ny\n")
    column = fc.indicator_column(
        fc.categorical_column_with_vocabulary_file("kind", str(path), num_oov_buckets=1)
    )
    output = run({"kind": ["y", "?"]}, [column])
    np.testing.assert_array_equal(output, [[0, 1, 0], [0, 0, 1]])


def test_ragged_features_are_bags():
    column = fc.indicator_column(fc.categorical_column_with_identity("ids", 3))
    with tf.Graph().as_default():
        output = input_layer({"ids": tf.ragged.constant([[0, 2], [1]], dtype=tf.int64)}, [column])
        with tf1.Session() as session:
            np.testing.assert_array_equal(session.run(output), [[1, 0, 1], [0, 1, 0]])


def test_partitioned_embedding_table():
    column = fc.embedding_column(fc.categorical_column_with_identity("ids", 4), 2)
    with tf.Graph().as_default():
        with tf1.variable_scope("dnn", partitioner=tf1.fixed_size_partitioner(2)):
            output = input_layer({"ids": tf.constant([0, 3])}, [column])
        names = [variable.op.name for variable in tf1.global_variables()]
        assert names == [
            f"dnn/input_layer/ids_embedding/embedding_weights/part_{i}" for i in range(2)
        ]
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            first, second = tf1.global_variables()
            first.load(TABLE[:2], session)
            second.load(TABLE[2:], session)
            np.testing.assert_array_equal(session.run(output), TABLE[[0, 3]])


def test_a_reusing_scope_finds_the_variables():
    column = fc.embedding_column(fc.categorical_column_with_identity("ids", 4), 2)
    with tf.Graph().as_default():
        for _ in range(2):
            with tf1.variable_scope("dnn", reuse=tf1.AUTO_REUSE):
                input_layer({"ids": tf.constant([0, 3])}, [column])
        assert len(tf1.global_variables()) == 1


PRICE = fc.numeric_column("price")


@pytest.mark.parametrize(
    ("features", "columns", "message"),
    [
        ({"price": [1.0]}, [], "must not be empty"),
        ({"price": [1.0]}, None, "must not be empty"),
        ({"price": [1.0]}, ["price"], "tf.feature_column"),
        ({"price": [1.0]}, [PRICE, PRICE], "Duplicate feature column name"),
        ({"cost": [1.0]}, [PRICE], r"Feature price is not in features dictionary.*\['cost'\]"),
        ({"price": 1.0}, [PRICE], "cannot have rank 0"),
        (
            {"ids": [1]},
            [fc.categorical_column_with_identity("ids", 4)],
            "embedding_column or tf.feature_column.indicator_column",
        ),
    ],
)
def test_what_can_not_work(features, columns, message):
    with pytest.raises(ValueError, match=message):
        run(features, columns)


def test_features_must_be_a_dict():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="should be a dictionary"):
        input_layer(tf.constant([1.0]), [PRICE])
