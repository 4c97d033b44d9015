import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import input_layer
from tests.estimator_core.feature_columns.values import value_of
from tests.estimator_core.programs import example

fc = tf.feature_column
IDS = fc.categorical_column_with_identity("ids", 4)
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)
HASHED = fc.indicator_column(fc.categorical_column_with_hash_bucket("x", 1, tf.int64))


def run(features, columns, assign=None):
    """Returns the input layer's value, with variables set by name."""

    def build():
        given = features() if callable(features) else features
        return input_layer(
            {key: value if tf.is_tensor(value) else tf.constant(value) for key, value in given.items()},
            columns,
        )

    return value_of(build, assign)


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


def embedded(features, column, table=TABLE):
    """Returns the value of an embedding with this table."""
    return run(features, [column], {f"input_layer/{column.name}/embedding_weights": table})


def test_embeddings_of_sparse_bags_and_of_weighted_ids():
    bags = lambda: {"ids": tf.SparseTensor([[0, 0], [0, 1], [2, 0]], np.int64([1, 3, 0]), [3, 2])}  # noqa: E731
    output = embedded(bags, fc.embedding_column(IDS, 2, combiner="mean"))
    # The mean of rows 1 and 3; nothing; row 0.
    np.testing.assert_array_equal(output, [[4, 5], [0, 0], [0, 1]])
    weighted = fc.weighted_categorical_column(IDS, "weights")
    given = {"ids": [[1, 3]], "weights": [[2.0, 0.5]]}
    for features in (given, lambda: {key: tf.sparse.from_dense(value) for key, value in given.items()}):
        output = embedded(features, fc.embedding_column(weighted, 2, combiner="sum"))
        # 2 * [2, 3] + 0.5 * [6, 7]
        np.testing.assert_array_equal(output, [[7.0, 9.5]])
    given = {"ids": [[1, 2], [0, 3]], "weights": [[0.5, 2.0], [1.0, 3.0]]}
    output = run(given, [fc.indicator_column(weighted)])
    np.testing.assert_array_equal(output, [[0, 0.5, 2, 0], [1, 0, 0, 3]])


@pytest.mark.parametrize(
    ("combiner", "expected"),
    # Rows 1 and 3: their sum, divided by 2, by the square root of 2.
    [("sum", [8, 10]), ("mean", [4, 5]), ("sqrtn", [8 / np.sqrt(2), 10 / np.sqrt(2)])],
)
def test_a_combiner_divides_the_sum_by_the_number_of_ids_or_its_root(combiner, expected):
    output = embedded({"ids": [[1, 3]]}, fc.embedding_column(IDS, 2, combiner=combiner))
    np.testing.assert_allclose(output, [expected], rtol=1e-6)


def test_max_norm_scales_rows_down():
    table = np.float32([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [0.0, 0.0]])
    output = embedded({"ids": [0, 1]}, fc.embedding_column(IDS, 2, max_norm=1.0), table)
    # The first row has the norm 5, the second 0.5.
    np.testing.assert_allclose(output, [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)


def test_shared_embeddings_share_one_trainable_table(graph):
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


def test_an_embedding_from_a_checkpoint(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        session.run(tf1.get_variable("old/table", initializer=TABLE).initializer)
        path = tf1.train.Saver().save(session, str(tmp_path / "model"))
    column = fc.embedding_column(
        IDS, 2, ckpt_to_load_from=path, tensor_name_in_ckpt="old/table", trainable=False
    )
    with tf.Graph().as_default():
        output = input_layer({"ids": tf.constant([1, 3])}, column)
        assert not tf1.trainable_variables()
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            assert session.run(output).tolist() == [[2, 3], [6, 7]]


def words_of(*vocabulary, **settings):
    return fc.indicator_column(fc.categorical_column_with_vocabulary_list("x", vocabulary, **settings))


def ids_below(size, **settings):
    return fc.indicator_column(fc.categorical_column_with_identity("x", size, **settings))


@pytest.mark.parametrize(
    ("column", "feature", "expected"),
    [
        (fc.numeric_column("x", shape=(2, 2)), [[[1.0, 2.0], [3.0, 4.0]]], [[1, 2, 3, 4]]),
        (fc.numeric_column("x", dtype=tf.int64), [1, 2], [[1], [2]]),
        (fc.numeric_column("x", normalizer_fn=lambda x: x * 10.0), [1.0, 2.0], [[10], [20]]),
        (fc.bucketized_column(fc.numeric_column("x", shape=(2,)), [3.0]), [[1.0, 5.0]], [[1, 0, 0, 1]]),
        # Words 20 and unknown; ids 1 and the default; hashes into one bucket.
        (words_of(10, 20), [20, 5], [[0, 1], [0, 0]]),
        (words_of("a", "b", default_value=0), ["b", "?"], [[0, 1], [1, 0]]),
        (ids_below(2, default_value=0), [1, 7], [[0, 1], [1, 0]]),
        (HASHED, [[5, 6], [7, -1]], [[2], [1]]),
        # Ragged features are bags.
        (ids_below(3), lambda: tf.ragged.constant([[0, 2], [1]], dtype=tf.int64), [[1, 0, 1], [0, 1, 0]]),
        # Of dense words "" is none, of dense integers -1.
        (words_of("a", "b"), [["a", "b"], ["b", ""]], [[1, 1], [0, 1]]),
    ],
)
def test_values_of_features_and_columns(column, feature, expected):
    features = (lambda: {"x": feature()}) if callable(feature) else {"x": feature}
    np.testing.assert_array_equal(run(features, [column]), expected)


def test_a_cross_has_a_value_for_each_combination():
    rooms = fc.categorical_column_with_identity("rooms", 9)
    age = fc.bucketized_column(fc.numeric_column("age"), [30.0])
    column = fc.indicator_column(fc.crossed_column(["tags", rooms, age], 1))
    output = run({"tags": [["a", "b"], ["c", "d"]], "rooms": [1, -1], "age": [9.0, 40.0]}, [column])
    # Two words with one number of rooms and one age; with no number of rooms.
    np.testing.assert_array_equal(output, [[2], [0]])


def test_parsed_examples_become_rows_of_the_layer():
    kind = fc.categorical_column_with_vocabulary_list("kind", ["x", "y"])
    price = fc.numeric_column("price", default_value=5.0)
    columns = [fc.indicator_column(kind), price]

    def features():
        given = [example(kind=["y", "x"], price=2.0), example()]
        return tf.io.parse_example(given, fc.make_parse_example_spec(columns))

    # Both words; neither, and the default price.
    np.testing.assert_array_equal(run(features, columns), [[1, 1, 2], [0, 0, 5]])


def test_an_unknown_word_goes_to_the_bucket_after_the_vocabulary_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("x\ny\n")
    column = fc.indicator_column(
        fc.categorical_column_with_vocabulary_file("kind", str(path), num_oov_buckets=1)
    )
    np.testing.assert_array_equal(run({"kind": ["y", "?"]}, [column]), [[0, 1, 0], [0, 0, 1]])


def test_partitioned_embedding_table(graph):
    column = fc.embedding_column(IDS, 2)
    with tf1.variable_scope("dnn", partitioner=tf1.fixed_size_partitioner(2)):
        output = input_layer({"ids": tf.constant([0, 3])}, [column])
    names = [variable.op.name for variable in tf1.global_variables()]
    assert names == [f"dnn/input_layer/ids_embedding/embedding_weights/part_{i}" for i in range(2)]
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        first, second = tf1.global_variables()
        first.load(TABLE[:2], session)
        second.load(TABLE[2:], session)
        np.testing.assert_array_equal(session.run(output), TABLE[[0, 3]])


def test_a_reusing_scope_finds_the_variables(graph):
    column = fc.embedding_column(IDS, 2)
    for _ in range(2):
        with tf1.variable_scope("dnn", reuse=tf1.AUTO_REUSE):
            input_layer({"ids": tf.constant([0, 3])}, [column])
    assert len(tf1.global_variables()) == 1


PRICE = fc.numeric_column("price")
TWO_PRICES = fc.bucketized_column(fc.numeric_column("price", shape=(2,)), [0.0])
OF_THREE = r"Feature price must have 2 numbers for each example.*\(2,\).*Received: 3 numbers"


@pytest.mark.parametrize(
    ("features", "columns", "message"),
    [
        ({"price": [1.0]}, [], "must not be empty"),
        ({"price": [1.0]}, None, "must not be empty"),
        ({"price": [1.0]}, ["price"], "tf.feature_column"),
        ({"price": [1.0]}, [PRICE, PRICE], "Duplicate feature column name"),
        ({"cost": [1.0]}, [PRICE], r"Feature price is not in features dictionary.*\['cost'\]"),
        ({"price": 1.0}, [PRICE], "cannot have rank 0"),
        ({"price": ["1.0"]}, [PRICE], "Feature price of a numeric column must hold numbers"),
        ({"price": [[1.0, 2.0, 3.0]]}, [TWO_PRICES], OF_THREE),
        (
            lambda: {"price": tf.SparseTensor([[0, 0]], [1.0], [2, 1])},
            [PRICE],
            "Feature price .* must be dense",
        ),
        ({"ids": [1]}, [IDS], "embedding_column or tf.feature_column.indicator_column"),
    ],
)
def test_what_can_not_work(features, columns, message):
    with pytest.raises(ValueError, match=message):
        run(features, columns)


def test_features_must_be_a_dict():
    with tf.Graph().as_default(), pytest.raises(ValueError, match="should be a dictionary"):
        input_layer(tf.constant([1.0]), [PRICE])
