import pytest
import tensorflow as tf

from components.errors import SettingError
from pipelines.tabular.inputs import (
    HELD_OUT_KEY,
    Part,
    check_held_out,
    eval_input_receiver_fn,
    in_memory,
    read,
    read_marked,
    serving_input_receiver_fn,
)
from pipelines.tabular.plan import GROUP_KEY, LABEL_KEY
from tests.pipelines.tabular.one_number_one_city import BINARY, FakeTransform, make_plan, serialize

ROWS = 60


@pytest.fixture
def files(tmp_path):
    """Two files of thirty rows; the number of a row is its position."""
    for part in range(2):
        with tf.io.TFRecordWriter(str(tmp_path / f"data-{part}.gz"), "GZIP") as writer:
            for number in range(30 * part, 30 * part + 30):
                features = {"numeric": float(number), "numeric_bucket": 0, "category_0": 1}
                writer.write(serialize(**features, label=b"yes"))
    return [str(tmp_path / "data-*.gz")]


def numbers(batches):
    return [int(x) for features, _ in batches for x in features["numeric"].numpy().ravel()]


def test_rows_come_once_and_in_order_without_a_seed(files):
    batches = list(read(FakeTransform(tf.string), files, Part.ALL, 6, 25))
    assert [len(label) for _, label in batches] == [25, 25, 10]
    assert numbers(batches) == list(range(ROWS))
    assert set(batches[0][0]) == {"numeric", "numeric_bucket", "category_0"}
    assert batches[0][1][0] == b"yes"


def test_rows_are_shuffled_and_repeat_with_a_seed(files):
    def first(seed):
        return numbers(read(FakeTransform(tf.string), files, Part.ALL, 6, 20, seed).take(6))

    once = first(3)
    assert sorted(once[:ROWS]) == sorted(once[ROWS:]) == list(range(ROWS))
    assert once[:ROWS] != once[ROWS:] != list(range(ROWS))
    assert first(3) == once
    assert first(4) != once


@pytest.mark.parametrize(("one_in", "low", "high"), [(3, 12, 28), (30, 1, 6)])
def test_the_share_of_rows_that_are_held_out(files, one_in, low, high):
    parts = (read(FakeTransform(tf.string), files, part, one_in, 8) for part in (Part.TRAIN, Part.VALIDATION))
    parts = [*map(numbers, parts)]
    assert sorted(parts[0] + parts[1]) == list(range(ROWS))
    assert low <= len(parts[1]) <= high


def test_marked_rows_are_those_of_the_validation(files):
    marked = [
        int(x)
        for features, _ in read_marked(FakeTransform(tf.string), files, 6, 25)
        for x in features["numeric"].numpy()[features[HELD_OUT_KEY].numpy()].ravel()
    ]
    assert marked == numbers(read(FakeTransform(tf.string), files, Part.VALIDATION, 6, 8))
    assert 3 < len(marked) < 20


def test_rows_in_memory_come_in_the_same_batches(files):
    batches = list(read_marked(FakeTransform(tf.string), files, 6, 25))
    text = tf.sparse.from_dense([[1]] * 25)
    with_text = [({**features, "text_0": text}, label) for features, label in batches]
    input_fn = in_memory(with_text, 25)
    for _ in range(2):  # a training may begin again
        found = list(input_fn())
        assert len(found) == len(batches) == 3
        for (features, label), (expected, expected_label) in zip(found, batches, strict=True):
            assert label.numpy().tolist() == expected_label.numpy().tolist()
            assert sorted(features) == sorted(expected)
            for name, value in features.items():
                assert value.dtype == expected[name].dtype
                assert value.numpy().tolist() == expected[name].numpy().tolist()


def test_serving_needs_no_label_and_evaluation_does():
    from tensorflow_transform.tf_metadata import schema_utils

    spec = {"x": tf.io.VarLenFeature(tf.float32), "city": tf.io.VarLenFeature(tf.int64)}
    spec["row"] = tf.io.VarLenFeature(tf.int64)  # an id, which the model does not use
    schema = schema_utils.schema_from_feature_spec({**spec, "y": tf.io.VarLenFeature(tf.string)})
    plan, transform = make_plan(BINARY), FakeTransform(tf.string)
    with tf.Graph().as_default():
        served = serving_input_receiver_fn(plan, transform, schema)()
        assert sorted(served.features) == ["category_0", "numeric", "numeric_bucket"]
        assert list(served.receiver_tensors) == ["examples"]
        assert sorted(served.receiver_tensors_alternatives["serving_rows"]) == ["city", "x"]
        judged = eval_input_receiver_fn(plan, transform, schema)()
        assert sorted(judged.features) == sorted(served.features)
        assert judged.labels.dtype == tf.string


def test_groups_are_held_out_whole_and_no_feature_of_a_model(tmp_path):
    class WithGroups(FakeTransform):
        def transformed_feature_spec(self):
            group = tf.io.FixedLenFeature([], tf.int64)
            return {**super().transformed_feature_spec(), "held_out_group": group}

    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for number in range(400):
            features = {"numeric": float(number % 20), "numeric_bucket": 0, "category_0": 1}
            writer.write(serialize(**features, held_out_group=number % 20, label=b"yes"))
    parts = [list(read(WithGroups(tf.string), [path], part, 4, 50)) for part in (Part.TRAIN, Part.VALIDATION)]
    seen = [set(numbers(part)) for part in parts]
    assert seen[0] | seen[1] == set(range(20))
    assert not seen[0] & seen[1]
    assert seen[1]
    assert sum(len(label) for part in parts for _, label in part) == 400
    assert set(parts[0][0][0]) == {"numeric", "numeric_bucket", "category_0"}


class GroupTransform:
    """Transform's output for a group."""

    def transformed_feature_spec(self):
        return {name: tf.io.FixedLenFeature([], tf.int64) for name in (GROUP_KEY, LABEL_KEY)}


@pytest.mark.more
def test_a_fold_in_which_no_group_or_each_is_held_out_is_refused(tmp_path):
    path = str(tmp_path / "data.gz")
    with tf.io.TFRecordWriter(path, "GZIP") as writer:
        for number in range(60):
            features = {GROUP_KEY: number % 2, LABEL_KEY: 1}
            writer.write(
                tf.train.Example(
                    features=tf.train.Features(
                        feature={
                            name: tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
                            for name, value in features.items()
                        }
                    )
                ).SerializeToString()
            )

    def message(fold, one_in=6):
        try:
            check_held_out(GroupTransform(), [path], one_in, "city", fold)
        except SettingError as error:
            return str(error)
        return ""

    names = [f"group {number}" for number in range(2)]
    held_out = set(tf.strings.to_hash_bucket_fast(names, 6).numpy().tolist())
    assert len(held_out) == 2
    for fold in range(6):
        assert ("" if fold in held_out else f"fold {fold} would hold out no rows") in message(fold)
        fix = f"tuner.folds = {fold}" if fold else "trainer.early_stopping = false"
        assert ("" if fold in held_out else f"Set {fix}.") in message(fold)
        assert bool(message(fold)) == (fold not in held_out)
    assert "fold 0 would hold out all rows" in message(0, one_in=1)
