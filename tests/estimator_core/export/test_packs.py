import pytest
import tensorflow as tf

from estimator_core.export import packed_name, parse_packed
from tests.estimator_core.programs import example

SPEC = {
    "a": tf.io.VarLenFeature(tf.float32),
    "b": tf.io.VarLenFeature(tf.string),
    "c": tf.io.FixedLenFeature([1], tf.float32),
    "d": tf.io.VarLenFeature(tf.int64),
    "e": tf.io.VarLenFeature(tf.int64),
}


def cells(matrix):
    """Returns {(row, position): value}, the number of rows and the number of columns."""
    places = [tuple(place) for place in matrix.indices.numpy().tolist()]
    assert places == sorted(places)
    return dict(zip(places, matrix.values.numpy().tolist(), strict=True)), matrix.dense_shape.numpy().tolist()


def test_columns_of_a_type_are_one_matrix_and_the_others_stay():
    rows = [example(a=1.0, b=b"x", c=2.0, d=3, e=4), example(c=7.0), example(a=5.0, c=8.0, d=6)]
    found = parse_packed(tf.constant(rows), SPEC, {"p": ["a", "b", "c", "d"], "q": ["d"]})
    assert sorted(found) == ["e", "p/float32", "p/int64", "p/string", "q/int64"]
    assert cells(found["p/float32"]) == ({(0, 0): 1, (0, 2): 2, (1, 2): 7, (2, 0): 5, (2, 2): 8}, [3, 4])
    assert cells(found["p/string"]) == ({(0, 1): b"x"}, [3, 4])
    assert cells(found["p/int64"]) == ({(0, 3): 3, (2, 3): 6}, [3, 4])
    assert cells(found["q/int64"]) == ({(0, 0): 3, (2, 0): 6}, [3, 1])
    assert cells(found["e"]) == ({(0, 0): 4}, [3, 1])


def test_rows_follow_the_examples_and_their_marks_are_missing_values():
    rows = {
        "a": tf.constant([float("nan"), 7.0]),
        "b": tf.constant([b"y", b""]),
        "c": tf.constant([8.0, float("nan")]),
        "d": tf.constant([-(2**63), 9], tf.int64),
    }
    found = parse_packed(tf.constant([example(a=1.0, c=2.0)]), SPEC, {"p": ["d", "c", "b", "a"]}, rows)
    assert cells(found[packed_name("p", tf.float32)]) == (
        {(0, 1): 2, (0, 3): 1, (1, 1): 8, (2, 3): 7},
        [3, 4],
    )
    assert cells(found[packed_name("p", tf.string)]) == ({(1, 2): b"y"}, [3, 4])
    assert cells(found[packed_name("p", tf.int64)]) == ({(2, 0): 9}, [3, 4])


@pytest.mark.parametrize(
    ("features", "pack", "error", "message"),
    [
        ({}, ["a", "z"], ValueError, r"'p' has a column that is not a feature\. Received: 'z'"),
        ({"a": 1.0}, ["a", "c"], tf.errors.InvalidArgumentError, r"c .* is required"),
    ],
)
def test_columns_without_a_feature_or_a_value_are_named(features, pack, error, message):
    with pytest.raises(error, match=message):
        parse_packed(tf.constant([example(c=1.0), example(**features)]), SPEC, {"p": pack})


@pytest.mark.parametrize(
    ("shape", "value", "default", "filled"),
    [
        ([], 1.0, 7.0, 7.0),
        ([1], 1.0, [7.0], 7.0),
        ([1], 3, 9, 9),
        ([], b"x", "", b""),
        ([1], b"x", [b"none"], b"none"),
    ],
)
def test_a_missing_value_of_a_column_with_a_default_is_the_default(shape, value, default, filled):
    dtype = {float: tf.float32, int: tf.int64, bytes: tf.string}[type(value)]
    spec = {"f": tf.io.FixedLenFeature(shape, dtype, default_value=default), "v": tf.io.VarLenFeature(dtype)}
    mark = {tf.float32: float("nan"), tf.int64: -(2**63), tf.string: b""}[dtype]
    rows = {"v": tf.constant([mark, value], dtype), "f": tf.constant([mark, value], dtype)}
    serialized = tf.constant([example(f=value, v=value), example()])
    assert cells(parse_packed(serialized, spec, {"p": ["v", "f"]}, rows)[packed_name("p", dtype)]) == (
        {(0, 0): value, (0, 1): value, (1, 1): filled, (2, 1): filled, (3, 0): value, (3, 1): value},
        [4, 2],
    )
