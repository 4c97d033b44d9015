import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.spec.rows import batch_weight


def fed(*shape, dtype=tf.float32):
    return tf1.placeholder(dtype, list(shape))


def test_a_batch_weighs_nothing_when_none_of_its_tensors_has_rows(session):
    dense, words = fed(None, 3), fed(None, dtype=tf.string)
    sparse, rows = tf1.sparse_placeholder(tf.int64, [None, None]), fed(None)
    ragged = tf.RaggedTensor.from_row_lengths(rows, fed(None, dtype=tf.int64), validate=False)
    scalar = tf1.placeholder_with_default(7.0, [])
    weight = batch_weight(({"x": dense, "s": sparse, "r": ragged, "rate": scalar}, [words, None]))

    def weight_of(dense_rows, sparse_rows, ragged_rows, word_rows):
        of_sparse = (np.zeros([0, 2], np.int64), np.zeros([0], np.int64), [sparse_rows, 0])
        feeds = {dense: np.zeros([dense_rows, 3]), sparse: of_sparse, words: np.full([word_rows], "a")}
        return session.run(
            weight, {**feeds, rows: [], ragged.row_splits: np.zeros(ragged_rows + 1, np.int64)}
        )

    assert weight.dtype == tf.float32
    assert weight_of(0, 0, 0, 0) == 0.0
    # Rows whose values are all missing are rows.
    assert [weight_of(*each) for each in np.eye(4, dtype=int) * 2] == [1.0] * 4


@pytest.mark.parametrize(
    "shapes", [[], [[]], [[None], [4]], [[None, 3], [4, None]]], ids=lambda shapes: str(shapes)
)
def test_nothing_is_computed_where_shapes_say_that_there_are_rows_or_do_not_tell(shapes, graph):
    assert batch_weight([fed(*shape) for shape in shapes]) is None
