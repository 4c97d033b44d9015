import pytest
import tensorflow as tf

from pipelines.tabular.inputs import Part, only


def rows(part, values):
    return [*map(bytes.decode, only(part, tf.data.Dataset.from_tensor_slices(values)).as_numpy_iterator())]


@pytest.mark.more
def test_each_row_is_in_one_of_two_parts_and_in_one_fold():
    values = [f"row {number}" for number in range(6_000)]
    train, held_out = rows(Part.TRAIN, values), rows(Part.VALIDATION, values)
    assert sorted(train + held_out) == sorted(values)
    assert not set(train) & set(held_out)
    assert 900 < len(held_out) < 1_100
    assert train == [value for value in values if value in set(train)]  # in order
    assert rows(Part.VALIDATION, values) == held_out
    assert rows(Part.ALL, values) == values
    dataset = tf.data.Dataset.range(3_000).map(tf.strings.as_string)
    folds = [{*only(Part.VALIDATION, dataset, 6, fold=fold).as_numpy_iterator()} for fold in range(6)]
    assert sum(map(len, folds)) == len(set.union(*folds)) == 3_000
    learned = {*only(Part.TRAIN, dataset, 6, fold=4).as_numpy_iterator()}
    assert learned == set.union(*folds) - folds[4]


def test_copies_of_a_row_spread_and_what_is_in_a_row_has_no_say():
    assert 900 < len(rows(Part.VALIDATION, ["the same"] * 6_000)) < 1_100
    one, other = ([f"{word} {number}" for number in range(600)] for word in ("one", "other"))
    held_out, also = rows(Part.VALIDATION, one), rows(Part.VALIDATION, other)
    assert [row.split()[1] for row in held_out] == [row.split()[1] for row in also]


def test_the_rows_of_a_group_are_in_one_part():
    """Of 3,000 rows each third one belongs to no group; the others to 200 groups."""
    values = [f"{number} {-1 if number % 3 == 0 else number % 200}" for number in range(3_000)]

    def group_ids(rows):
        return tf.strings.to_number(tf.strings.split(rows).to_tensor()[:, 1], tf.int64)

    data = tf.data.Dataset.from_tensor_slices(values)
    parts = [
        [row.decode().split() for row in only(part, data, 6, group_ids).as_numpy_iterator()]
        for part in (Part.TRAIN, Part.VALIDATION)
    ]
    assert sorted(int(row[0]) for part in parts for row in part) == list(range(3_000))
    groups = [{row[1] for row in part if row[1] != "-1"} for part in parts]
    assert not groups[0] & groups[1]
    assert 15 < len(groups[1]) < 55  # a sixth of 200
    alone = [sum(row[1] == "-1" for row in part) for part in parts]
    assert 120 < alone[1] < 220  # a sixth of 1,000
