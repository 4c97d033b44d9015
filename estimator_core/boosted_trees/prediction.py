"""The logits of a forest by TensorFlow operations, which SavedModels serve, too."""

from __future__ import annotations

import tensorflow as tf

from estimator_core.boosted_trees.forest_variables import ForestVariables

_ROWS_AT_A_TIME = 1024  # keeps intermediate values in the processor's cache


def forest_logits(matrix: tf.Tensor, forest: ForestVariables, logits_dimension: int) -> tf.Tensor:
    """Returns the sums of the trees, float32 `[batch_size, logits_dimension]`, added in float64."""
    with tf.name_scope("forest"):
        # Read each variable once: a batch sees one state of them all.
        nodes = {name: tf.identity(variable) for name, variable in forest.nodes.items()}
        sums = _sums(matrix, nodes, logits_dimension)
        return tf.cast(sums + forest.bias, tf.float32)


def _sums(matrix: tf.Tensor, nodes: dict[str, tf.Tensor], logits_dimension: int) -> tf.Tensor:
    """Returns the sums over trees, float64 `[batch_size, logits_dimension]`, by blocks of rows."""
    table = _table(nodes)
    depth = tf.reduce_max(nodes["depth"])
    num_rows = tf.shape(matrix)[0]
    iterations = tf.size(nodes["root"]) // logits_dimension

    # An empty batch has one block, too, which gives the sums their shape.
    num_blocks = tf.maximum(1, (num_rows + _ROWS_AT_A_TIME - 1) // _ROWS_AT_A_TIME)

    def add_block(block: tf.Tensor, sums: tf.TensorArray) -> tuple[tf.Tensor, tf.TensorArray]:
        begin = block * _ROWS_AT_A_TIME
        rows = matrix[begin : begin + _ROWS_AT_A_TIME]
        leaves = _leaves(rows, table, nodes["root"], depth)
        values = tf.gather(nodes["value"], leaves)
        by_logit = tf.reshape(values, [tf.shape(rows)[0], iterations, logits_dimension])
        return block + 1, sums.write(block, tf.reduce_sum(by_logit, axis=1))

    # Not a tensor that grows: each block would copy the sums of all blocks before.
    sums = tf.TensorArray(tf.float64, num_blocks, element_shape=[None, logits_dimension], infer_shape=False)
    _, sums = tf.while_loop(
        lambda block, _: block < num_blocks, add_block, (tf.constant(0), sums), parallel_iterations=4
    )
    return sums.concat()


def _table(nodes: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the data of a node for a step down a tree, int32 `[nodes, 3]`.

    A row has the column of `_without_nan`'s result to compare, the left child, and the bits of the
    threshold in float32.
    """
    column = 2 * nodes["feature"] + tf.cast(tf.logical_not(nodes["nan_is_left"]), tf.int32)
    # An infinite threshold of a split separates missing values; only a leaf sends all to the left.
    is_leaf = tf.equal(nodes["left"], tf.range(tf.size(nodes["left"])))
    # The largest float32 numbers not above the thresholds: float32 values compare alike with both.
    rounded = tf.cast(nodes["threshold"], tf.float32)
    below = tf.math.nextafter(rounded, tf.constant(float("-inf")))
    threshold = tf.where(tf.cast(rounded, tf.float64) > nodes["threshold"], below, rounded)
    threshold = tf.where(is_leaf, threshold, tf.minimum(threshold, tf.float32.max))
    bits = tf.bitcast(threshold, tf.int32)
    return tf.stack([column, nodes["left"], bits], axis=1)


def _without_nan(matrix: tf.Tensor) -> tf.Tensor:
    """Returns each value twice, `[batch_size, 2 * columns]`: NaN as -inf (left), then as inf (right)."""
    is_missing = tf.math.is_nan(matrix)
    finite = tf.clip_by_value(matrix, tf.float32.min, tf.float32.max)
    sides = [tf.where(is_missing, tf.constant(side), finite) for side in (-float("inf"), float("inf"))]
    return tf.reshape(tf.stack(sides, axis=2), [tf.shape(matrix)[0], 2 * matrix.shape[1]])


def _leaves(matrix: tf.Tensor, table: tf.Tensor, roots: tf.Tensor, depth: tf.Tensor) -> tf.Tensor:
    """Returns the leaf of each row in each tree, int32 `[batch_size, trees]`."""
    num_rows = tf.shape(matrix)[0]
    values = tf.reshape(_without_nan(matrix), [-1])
    row_begins = (tf.range(num_rows) * (2 * matrix.shape[1]))[:, tf.newaxis]
    at_roots = tf.tile(roots[tf.newaxis], [num_rows, 1])

    def step(level: tf.Tensor, at: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        column, left, bits = tf.unstack(tf.gather(table, at), axis=-1)
        value = tf.gather(values, row_begins + column)
        is_right = value > tf.bitcast(bits, tf.float32)
        return level + 1, left + tf.cast(is_right, tf.int32)

    _, leaves = tf.while_loop(lambda level, _: level < depth, step, (tf.constant(0), at_roots))
    return leaves
