import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.feature_columns import column_kinds

fc = tf.feature_column
IDS = fc.categorical_column_with_identity("ids", 4)
WORDS = fc.sequence_categorical_column_with_identity("words", 4)
with tf.Graph().as_default():
    (SHARED,) = fc.shared_embeddings([IDS], 2)

# column: is_categorical, is_dense, is_numeric, is_sequence
KINDS = [
    (fc.numeric_column("age"), (False, True, True, False)),
    (fc.bucketized_column(fc.numeric_column("size"), [1.0]), (True, True, False, False)),
    (IDS, (True, False, False, False)),
    (fc.crossed_column(["a", "b"], 10), (True, False, False, False)),
    (fc.indicator_column(IDS), (False, True, False, True)),
    (fc.embedding_column(IDS, 2), (False, True, False, True)),
    (SHARED, (False, True, False, True)),
    (fc.sequence_numeric_column("values"), (False, False, False, True)),
    (WORDS, (True, False, False, False)),
    ("age", (False, False, False, False)),
    (None, (False, False, False, False)),
]


@pytest.mark.parametrize(("column", "kinds"), KINDS, ids=[type(c).__name__ for c, _ in KINDS])
def test_each_column_is_of_its_kinds(column, kinds):
    assert kinds == (
        column_kinds.is_categorical(column),
        column_kinds.is_dense(column),
        column_kinds.is_numeric(column),
        column_kinds.is_sequence(column),
    )


def test_columns_are_sorted_by_name():
    columns = [fc.numeric_column(name) for name in ("b", "c", "a", "B")]
    assert [column.name for column in column_kinds.sorted_columns(columns)] == ["B", "a", "b", "c"]
    assert column_kinds.sorted_columns(column for column in columns[:1]) == columns[:1]


@pytest.mark.parametrize("column", [column for column, kinds in KINDS if any(kinds)])
def test_one_column_needs_no_list(column):
    assert column_kinds.sorted_columns(column) == [column]


def test_shared_embeddings_of_tensorflow_1_are_adapted(graph):
    columns = tf1.feature_column.shared_embedding_columns([IDS], 2)
    for given in (columns, columns[0]):
        (adapted,) = column_kinds.sorted_columns(given)
        assert column_kinds.is_dense(adapted)
        assert adapted.name == "ids_shared_embedding"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (None, "must not be empty. Received: None"),
        ([], "must not be empty"),
        ("age", "must be a list of feature columns.*'age'"),
        ({"age": fc.numeric_column("age")}, "must be a list of feature columns"),
        (3, "must be a list of feature columns.*3"),
        ([fc.numeric_column("age"), "size"], "must be feature columns.*'size'"),
        (
            [fc.numeric_column("age"), fc.numeric_column("age", shape=2)],
            "Duplicate feature column name found: age",
        ),
    ],
)
def test_what_are_no_columns(columns, message):
    with pytest.raises(ValueError, match=message):
        column_kinds.sorted_columns(columns)
