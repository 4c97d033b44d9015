import tensorflow as tf

from pipelines.tabular.held_out import Part, only


def rows(part, values):
    return [
        row.decode()
        for row in only(part, tf.data.Dataset.from_tensor_slices(values)).as_numpy_iterator()
    ]


def test_each_row_is_in_one_of_two_parts_and_a_sixth_is_held_out():
    values = [f"row {number}" for number in range(6_000)]
    train, held_out = rows(Part.TRAIN, values), rows(Part.VALIDATION, values)
    assert sorted(train + held_out) == sorted(values)
    assert not set(train) & set(held_out)
    assert 900 < len(held_out) < 1_100
    assert train == [value for value in values if value in set(train)]  # in order
    assert rows(Part.VALIDATION, values) == held_out
    assert rows(Part.ALL, values) == values


def test_copies_of_a_row_spread():
    assert 900 < len(rows(Part.VALIDATION, ["the same"] * 6_000)) < 1_100


def test_what_is_in_a_row_has_no_say():
    one, other = ([f"{word} {number}" for number in range(600)] for word in ("one", "other"))
    held_out, also = rows(Part.VALIDATION, one), rows(Part.VALIDATION, other)
    assert [row.split()[1] for row in held_out] == [row.split()[1] for row in also]
