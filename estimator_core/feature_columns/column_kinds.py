"""Kinds of feature columns, and the order of columns in models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1

_WEIGHTS = "embedding_weights"


def is_categorical(column: Any) -> bool:
    """Returns whether the column gives ids, `[batch_size, any]`, below its `num_buckets`."""
    return hasattr(column, "get_sparse_tensors") and hasattr(column, "num_buckets")


def is_dense(column: Any) -> bool:
    """Returns whether the column gives numbers, `[batch_size] + variable_shape`."""
    return hasattr(column, "get_dense_tensor") and hasattr(column, "variable_shape")


def is_numeric(column: Any) -> bool:
    """Returns whether the column is a `tf.feature_column.numeric_column`."""
    return is_dense(column) and hasattr(column, "normalizer_fn") and hasattr(column, "key")


def is_sequence(column: Any) -> bool:
    """Returns whether the column may give numbers for each time step, `[batch_size, steps, ...]`.

    An embedding or an indicator column does so only over a `sequence_categorical_column_*`; else
    its own `get_sequence_dense_tensor` raises an error.
    """
    return hasattr(column, "get_sequence_dense_tensor")


def sorted_columns(feature_columns: Any) -> list[Any]:
    """Returns the columns sorted by name, the order in which tf.estimator concatenates and adds them."""
    if feature_columns is None:
        raise ValueError("feature_columns must not be empty. Received: None")
    is_one = _is_column(adapted(feature_columns))
    columns = [adapted(c) for c in ([feature_columns] if is_one else _as_list(feature_columns))]
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    by_name: dict[str, Any] = {}
    for column in columns:
        if not _is_column(column):
            raise ValueError(
                "Items of feature_columns must be feature columns, made by the functions of "
                f"tf.feature_column. Received: {column!r}"
            )
        if column.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found: {column.name}. Two columns over one base "
                f"feature need different settings, or one of them is too many. Received: {column} "
                f"and {by_name[column.name]}"
            )
        by_name[column.name] = column
    return [by_name[name] for name in sorted(by_name)]


def _is_column(column: Any) -> bool:
    return is_dense(column) or is_categorical(column) or is_sequence(column)


def _as_list(feature_columns: Any) -> list[Any]:
    if isinstance(feature_columns, (str, dict)) or not isinstance(feature_columns, Iterable):
        raise ValueError(
            "feature_columns must be a list of feature columns, made by the functions of "
            f"tf.feature_column. Received: {feature_columns!r}"
        )
    return list(feature_columns)


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
            tf1.train.init_from_checkpoint(column.ckpt_to_load_from, {column.tensor_name_in_ckpt: table})

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
