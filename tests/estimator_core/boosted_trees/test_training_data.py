import numpy as np
import tensorflow as tf
from scipy import sparse

from estimator_core.boosted_trees.training_data import read_training_data, without_rare_values


def reader_of(batches):
    left = list(batches)

    def next_batch():
        if not left:
            raise tf.errors.OutOfRangeError(None, None, "the end")
        return left.pop(0)

    return next_batch, left


def batch(rows, width=2, value=1.0):
    matrix = np.full((rows, width), value, np.float32)
    return (matrix, np.full(rows, value, np.float32), (np.full((rows, 1), value), {"w": matrix[:, 0]}), None)


def test_as_many_batches_as_make_the_data_set():
    next_batch, left = reader_of([batch(3, value=1), batch(2, value=2), batch(3, value=3)])
    data, held_out = read_training_data(next_batch, 2)
    assert len(left) == 1
    assert held_out is None
    assert data.num_rows == 5
    assert data.matrix[:, 0].tolist() == data.weights.tolist() == [1, 1, 1, 2, 2]
    labels, features = data.loss_data
    assert labels.ravel().tolist() == features["w"].tolist() == [1, 1, 1, 2, 2]


def test_fewer_when_the_input_ends_and_no_weights():
    matrix, _, loss_data, _ = batch(3)
    next_batch, _ = reader_of([(matrix, None, loss_data, None)])
    data, _ = read_training_data(next_batch, 5)
    assert (data.num_rows, data.weights) == (3, None)


def test_an_input_without_rows_gives_no_training_data():
    assert read_training_data(reader_of([])[0], 5) == (None, None)
    assert read_training_data(reader_of([batch(0)])[0], 1) == (None, None)


def test_rows_that_are_held_out_are_apart():
    parts = [batch(3, value=1), batch(2, value=2), batch(2, width=2, value=3)]
    masks = ([True, False, False], [False, False], [True, True])
    batches = [(*part[:3], np.array(mask)) for part, mask in zip(parts, masks, strict=True)]
    data, held_out = read_training_data(reader_of(batches)[0], 3)
    for found, expected in ((data, [1, 1, 2, 2]), (held_out, [1, 3, 3])):
        labels, features = found.loss_data
        assert found.matrix[:, 1].tolist() == found.weights.tolist() == expected
        assert labels.ravel().tolist() == features["w"].tolist() == expected


def test_wide_and_mostly_zeros():
    wide = batch(4, width=600, value=0.0)
    wide[0][2, 599] = np.nan
    wide[0][3, 5] = 7
    data, _ = read_training_data(reader_of([wide, wide])[0], 2)
    assert sparse.issparse(data.matrix)
    np.testing.assert_array_equal(data.matrix.toarray(), np.concatenate([wide[0], wide[0]]))
    dense, _ = read_training_data(reader_of([wide, batch(4, width=600)])[0], 2)
    assert sparse.issparse(dense.matrix)  # one batch alone is; the whole stays in one form
    assert dense.num_rows == 8


def test_columns_that_no_split_can_use():
    matrix = np.zeros((6, 4), np.float32)
    matrix[:3, 0] = [5, np.nan, -1]
    matrix[:2, 1] = 1
    matrix[:, 3] = 2
    found = without_rare_values(sparse.csr_matrix(matrix), 3)
    expected = matrix.copy()
    expected[:, 1] = 0
    np.testing.assert_array_equal(found.toarray(), expected)
    assert without_rare_values(matrix, 3) is matrix  # a dense one stays
    np.testing.assert_array_equal(without_rare_values(sparse.csr_matrix(matrix), 0).toarray(), matrix)
