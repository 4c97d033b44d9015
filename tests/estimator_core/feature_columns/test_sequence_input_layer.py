import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import input_layer, linear_model, sequence_input_layer
from tests.estimator_core.feature_columns.values import value_of
from tests.estimator_core.programs import example

fc = tf.feature_column
IDS = fc.sequence_categorical_column_with_identity("ids", 4)
VALUES = fc.sequence_numeric_column("values")
PAIRS = fc.sequence_numeric_column("pairs", shape=(2,))
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2)


def run(make_features, columns, assign=None):
    """Returns values and lengths of the sequences, with variables set by name."""
    return value_of(lambda: sequence_input_layer(make_features(), columns), assign)


def ragged(*rows, dtype=None):
    return tf.ragged.constant(rows, dtype=dtype, ragged_rank=1)


def test_columns_are_joined_by_name_and_padded_with_zeros():
    def features():
        # The numbers of a sparse example are listed one after the other, two for each time step.
        return {
            "values": ragged([1.0, 2.0], [], [3.0]).to_sparse(),
            "pairs": ragged([4.0, 5.0, 6.0, 7.0], [], [8.0, 9.0]).to_sparse(),
        }

    values, lengths = run(features, [VALUES, PAIRS])
    assert lengths.tolist() == [2, 0, 1]
    assert values.tolist() == [[[4, 5, 1], [6, 7, 2]], [[0, 0, 0], [0, 0, 0]], [[8, 9, 3], [0, 0, 0]]]


@pytest.mark.parametrize(
    ("make_ids", "lengths", "expected"),
    [
        (
            lambda: ragged([3, 1], [0], dtype=tf.int64).to_sparse(),
            [2, 1],
            [[[6, 7], [2, 3]], [[0, 1], [0, 0]]],
        ),
        # [batch_size, max_length, ids of a step]: the sum of ids 1 and 3; nothing, then id 2.
        (
            lambda: tf.SparseTensor([[0, 0, 0], [0, 0, 1], [1, 1, 0]], np.int64([1, 3, 2]), [2, 2, 2]),
            [1, 2],
            [[[8, 10], [0, 0]], [[0, 0], [4, 5]]],
        ),
    ],
)
def test_embedding_of_each_time_step(make_ids, lengths, expected):
    table = {"sequence_features/ids_embedding/embedding_weights": TABLE}
    column = fc.embedding_column(IDS, 2, combiner="sum")
    values, found = run(lambda: {"ids": make_ids()}, column, table)
    assert found.tolist() == lengths
    assert values.tolist() == expected


WORDS_OF = fc.sequence_categorical_column_with_vocabulary_list
HASHED = fc.sequence_categorical_column_with_hash_bucket
INDICATED = {
    "list": (WORDS_OF("words", ["x", "y"], tf.string, 0), ["y", "?"], [[0, 1], [1, 0]]),
    "int_list": (WORDS_OF("words", [10, 20], num_oov_buckets=1), [20, 5], [[0, 1, 0], [0, 0, 1]]),
    "identity": (
        fc.sequence_categorical_column_with_identity("words", 2, default_value=0), [1, 7], [[0, 1], [1, 0]],
    ),
    "hash": (HASHED("words", 1), ["a", "b"], [[1], [1]]),
    "int_hash": (HASHED("words", 1, tf.int64), [5, 6], [[1], [1]]),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICATED)
def test_indicators_of_each_categorical_column(name):
    column, words, expected = INDICATED[name]
    values, lengths = run(lambda: {"words": ragged(words)}, [fc.indicator_column(column)])
    assert lengths.tolist() == [2]
    assert values.tolist() == [expected]


def test_an_unknown_word_goes_to_the_bucket_after_the_vocabulary_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("x\ny\n")
    column = fc.sequence_categorical_column_with_vocabulary_file("words", str(path), num_oov_buckets=1)
    values, _ = run(lambda: {"words": ragged(["y", "?"])}, [fc.indicator_column(column)])
    assert values.tolist() == [[[0, 1, 0], [0, 0, 1]]]


def test_shared_embeddings_of_two_sequences(graph):
    columns = fc.shared_embeddings(
        [fc.sequence_categorical_column_with_identity(key, 4) for key in ("seen", "bought")], 2
    )
    features = {"seen": ragged([1, 2], dtype=tf.int64), "bought": ragged([3, 0], dtype=tf.int64)}
    values, _ = sequence_input_layer(features, columns)
    (table,) = tf1.trainable_variables()
    assert table.op.name == "bought_seen_shared_embedding"
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        table.load(TABLE, session)
        assert session.run(values).tolist() == [[[6, 7, 2, 3], [0, 1, 4, 5]]]


def test_every_time_step_of_a_dense_feature_counts():
    def features():
        return {
            "values": tf.constant([[0.0, 1.0], [2.0, 0.0]]),
            "pairs": tf.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [0.0, 0.0]]]),
        }

    # Zeros are numbers, too: every time step counts.
    values, lengths = run(features, [VALUES, PAIRS])
    assert lengths.tolist() == [2, 2]
    assert values.tolist() == [[[1, 2, 0], [3, 4, 1]], [[5, 6, 2], [0, 0, 0]]]


def test_dense_ids_are_padded_with_minus_one():
    values, lengths = run(lambda: {"ids": tf.constant([[2, 1], [3, -1]])}, [fc.indicator_column(IDS)])
    assert lengths.tolist() == [2, 1]
    assert values.tolist() == [[[0, 0, 1, 0], [0, 1, 0, 0]], [[0, 0, 0, 1], [0, 0, 0, 0]]]


def test_a_normalizer_and_a_value_for_the_padding():
    column = fc.sequence_numeric_column(
        "values", default_value=-1.0, normalizer_fn=lambda sparse: sparse.with_values(sparse.values / 2.0)
    )
    values, _ = run(lambda: {"values": ragged([2.0, 4.0], [6.0])}, [column])
    assert values.tolist() == [[[1], [2]], [[3], [-1]]]


def test_parsed_examples_become_sequences_of_their_lengths():
    columns = [fc.indicator_column(IDS), PAIRS]
    given = [example(ids=[1, 0], pairs=[1.0, 2.0, 3.0, 4.0]), example()]
    values, lengths = run(lambda: tf.io.parse_example(given, fc.make_parse_example_spec(columns)), columns)
    assert lengths.tolist() == [2, 0]
    assert values[0].tolist() == [[0, 1, 0, 0, 1, 2], [1, 0, 0, 0, 3, 4]]


def test_only_empty_sequences():
    values, lengths = run(lambda: {"ids": ragged([], [], dtype=tf.int64)}, [fc.indicator_column(IDS)])
    assert values.shape == (2, 0, 4)
    assert lengths.tolist() == [0, 0]


def test_columns_of_different_length():
    def features():
        return {"values": ragged([1.0, 2.0], [3.0]), "ids": ragged([1, 2], [1, 0], dtype=tf.int64)}

    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same length"):
        run(features, [VALUES, fc.indicator_column(IDS)])


EMBEDDED = fc.embedding_column(fc.categorical_column_with_identity("values", 3), 2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "must not be empty"),
        ([fc.numeric_column("values")], "must have numbers for each time step"),
        ([IDS], "must have numbers for each time step"),
        ([EMBEDDED], "must be of type SequenceCategoricalColumn"),
        ([VALUES, VALUES], "Duplicate feature column name"),
        ([PAIRS], "Feature pairs is not in features dictionary"),
    ],
)
def test_what_can_not_work(columns, message, graph):
    with pytest.raises(ValueError, match=message):
        sequence_input_layer({"values": tf.constant([[1, 2]], tf.int64)}, columns)
    with pytest.raises(ValueError, match="should be a dictionary"):
        sequence_input_layer(tf.constant([[1.0]]), [VALUES])


@pytest.mark.parametrize(
    ("layer", "column", "message"),
    [
        (input_layer, VALUES, "A sequence column has a value for each time step"),
        (input_layer, fc.embedding_column(IDS, 2), "must not be of type SequenceCategoricalColumn"),
        (linear_model, VALUES, "sequences are for RNN models"),
    ],
)
def test_other_models_take_no_sequences(layer, column, message):
    features = {"values": tf.constant([[1.0]]), "ids": tf.constant([[1]])}
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        layer(features, [column])
