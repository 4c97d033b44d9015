"""Adapters for columns of `tf.compat.v1.feature_column.shared_embedding_columns`."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1

_WEIGHTS = "embedding_weights"


class _Table(NamedTuple):
    """Owner of the variable; its name is the variable's scope."""

    name: str


class V1SharedEmbedding:
    """One of several columns that look up ids in the same table.

    The table is `<variable scope>/<shared name>/embedding_weights`, such as
    `dnn/input_from_feature_columns/input_layer/bought_seen_shared_embedding/embedding_weights`.

    Source: `tf.compat.v1.feature_column.shared_embedding_columns`, whose columns support only the
    input layers of TensorFlow 1. Those of `tf.feature_column.shared_embeddings` need no adapter.
    """

    def __init__(self, column: Any):
        self._column = column
        self._table = _Table(column.shared_embedding_collection_name)

    @property
    def name(self) -> str:
        """Name of the TensorFlow 1 column, `<categorical column>_shared_embedding`."""
        return str(self._column.name)

    @property
    def variable_shape(self) -> tf.TensorShape:
        """Shape of an example's value, `[dimension]`."""
        return tf.TensorShape([self._column.dimension])

    def create_state(self, state_manager: Any) -> None:
        """Creates the table, unless another column has done so."""
        if state_manager.has_variable(self._table, _WEIGHTS):
            return
        column = self._column
        table = state_manager.create_variable(
            self._table,
            _WEIGHTS,
            [column.categorical_column.num_buckets, column.dimension],
            trainable=column.trainable,
            initializer=column.initializer,
        )
        if column.ckpt_to_load_from is not None:
            tf1.train.init_from_checkpoint(
                column.ckpt_to_load_from, {column.tensor_name_in_ckpt: table}
            )

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> tf.Tensor:
        """Returns the combined rows of each example, float32 `[batch_size, dimension]`."""
        ids, id_weights = self._column.categorical_column.get_sparse_tensors(
            transformation_cache, state_manager
        )
        return tf.nn.safe_embedding_lookup_sparse(
            state_manager.get_variable(self._table, _WEIGHTS),
            ids,
            sparse_weights=id_weights,
            combiner=self._column.combiner,
            max_norm=self._column.max_norm,
        )


def adapted(column: Any) -> Any:
    """Returns a `V1SharedEmbedding` for a TensorFlow 1 column, any other column as it is."""
    is_v1 = hasattr(column, "shared_embedding_collection_name")
    return V1SharedEmbedding(column) if is_v1 else column
