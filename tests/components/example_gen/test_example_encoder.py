import math
import random

import pyarrow as pa
import tensorflow as tf

from components.example_gen.example_encoder import serialize

LISTS = {
    pa.int64(): lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
    pa.float32(): lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
    pa.binary(): lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
    pa.null(): lambda values: tf.train.Feature(),
}


def by_protobuf(batch):
    """Returns what protobuf makes of each row, in the order of the features' names."""
    found = []
    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        features = {
            field.name: LISTS[field.type]([] if value is None else [value])
            for field, value in zip(batch.schema, row, strict=True)
        }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        found.append(example.SerializeToString(deterministic=True))
    return found


def test_the_bytes_are_those_of_protobuf():
    draw = random.Random(3)
    integers = [sign * (2**bits) - less for bits in range(63) for sign in (1, -1) for less in (0, 1)]
    integers += [None, 2**63 - 1, -(2**63)]
    number = len(integers)
    texts = [b"x" * size for size in (0, 1, 100, 112, 113, 127, 128, 129, 16_383, 16_384, 70_000)]
    columns = {
        "b": pa.array(integers, pa.int64()),
        "": pa.array([draw.choice([*texts, None]) for _ in range(number)], pa.binary()),
        "a" * 200: pa.array([draw.choice([0.1, -0.0, None, math.inf]) for _ in range(number)], pa.float32()),
        "ab": pa.array([1.5] * number, pa.float32()),
        "é": pa.nulls(number),
        "ab c": pa.array([7] * number, pa.int64()),
        "B": pa.array([None] * number, pa.binary()),
        "aa": pa.array([b"\xff\0"] * number, pa.binary()),
    }
    batch = pa.record_batch(columns)
    assert [row for rows in serialize(batch) for row in rows.to_pylist()] == by_protobuf(batch)
    for begin in range(10):
        part = batch.slice(begin, 20)
        assert [row for rows in serialize(part) for row in rows.to_pylist()] == by_protobuf(part)
    assert [row for rows in serialize(batch.slice(0, 0)) for row in rows.to_pylist()] == []


def test_of_two_columns_with_one_name_the_last_one_counts():
    columns = [pa.array([value], pa.int64()) for value in (1, 2, 3)]
    (rows,) = serialize(pa.RecordBatch.from_arrays(columns, ["a", "b", "a"]))
    (row,) = rows.to_pylist()
    features = tf.train.Example.FromString(row).features.feature
    values = {name: list(feature.int64_list.value) for name, feature in features.items()}
    assert values == {"a": [3], "b": [2]}
