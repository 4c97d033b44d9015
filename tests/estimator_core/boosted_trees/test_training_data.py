import numpy as np
import tensorflow as tf
from scipy import sparse

from estimator_core.boosted_trees.training_data import read_training_data


def reader_of(batches):
    left = list(batches)

    def next_batch():
        if not left:
            raise tf.errors.OutOfRangeError(None, None, "the end")
        return left.pop(0)

    return next_batch, left


def batch(rows, width=2, value=1.0):
    matrix = np.full((rows, width), value, np.float32)
    return (
        matrix,
        np.full(rows, value, np.float32),
        (np.full((rows, 1), value), {"w": matrix[:, 0]}),
    )


def test_as_many_batches_as_make_the_data_set():
    next_batch, left = reader_of([batch(3, value=1), batch(2, value=2), batch(3, value=3)])
    data = read_training_data(next_batch, 2)
    assert len(left) == 1
    assert data.num_rows == 5
    assert data.matrix[:, 0].tolist() == data.weights.tolist() == [1, 1, 1, 2, 2]
    labels, features = data.loss_data
    assert labels.ravel().tolist() == features["w"].tolist() == [1, 1, 1, 2, 2]


def test_fewer_when_the_input_ends_and_no_weights():
    matrix, _, loss_data = batch(3)
    next_batch, _ = reader_of([(matrix, None, loss_data)])
    data = read_training_data(next_batch, 5)
    assert (data.num_rows, data.weights) == (3, None)


def test_an_input_without_rows_gives_no_training_data():
    assert read_training_data(reader_of([])[0], 5) is None
    assert read_training_data(reader_of([batch(0)])[0], 1) is None


def test_wide_and_mostly_zeros():
    wide = batch(4, width=600, value=0.0)
    wide[0][2, 599] = np.nan
    wide[0][3, 5] = 7
    data = read_training_data(reader_of([wide, wide])[0], 2)
    assert sparse.issparse(data.matrix)
    np.testing.assert_array_equal(data.matrix.toarray(), np.concatenate([wide[0], wide[0]]))
    dense = read_training_data(reader_of([wide, batch(4, width=600)])[0], 2)
    assert sparse.issparse(dense.matrix)  # one batch alone is; the whole stays in one form
    assert dense.num_rows == 8
