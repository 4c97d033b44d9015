"""Cache of the raw and transformed features of a model."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.column_kinds import is_numeric
from estimator_core.spec.arguments import checked_features


class FeatureTransformationCache:
    """Computes each feature once, on demand, so that columns share their common sources.

    `tf.feature_column` columns call `get` with the name of a raw feature or with another column.

    `features`: tensors of any kind by name, `[batch_size, ...]`; rank 1 is read as `[batch_size, 1]`. A key
    may also be a column whose transformed value is already known.

    Source: the `transformation_cache` argument of `tf.feature_column` columns.
    """

    def __init__(self, features: Mapping[Any, Any]):
        self._features = dict(checked_features(features))
        self._transformed: dict[Any, Any] = {}

    def get(self, key: Any, state_manager: Any, training: bool | None = None) -> Any:
        """Returns the `Tensor` or `SparseTensor` of a raw feature or of a column."""
        if key not in self._transformed:
            self._transformed[key] = self._compute(key, state_manager, training)
        return self._transformed[key]

    def _compute(self, key: Any, state_manager: Any, training: bool | None) -> Any:
        if key in self._features:
            return _with_rank_of_two_or_more(key, self._features[key])
        if isinstance(key, str):
            raise ValueError(
                f"Feature {key} is not in features dictionary. Received: {sorted(map(str, self._features))}"
            )
        if not hasattr(key, "transform_feature"):
            raise TypeError(f"key must be a feature name or a feature column. Received: key={key!r}")
        if is_numeric(key):
            _check_numbers(key, self.get(key.key, state_manager, training))
        if "training" in inspect.signature(key.transform_feature).parameters:
            transformed = key.transform_feature(self, state_manager, training=training)
        else:
            transformed = key.transform_feature(self, state_manager)
        if transformed is None:
            raise ValueError(f"Column {key.name} is not supported: it transforms into nothing.")
        return transformed


def _check_numbers(column: Any, feature: Any) -> None:
    """Finds errors that a numeric column reports only when the graph runs, or as a failed reshape."""
    if isinstance(feature, tf.SparseTensor):
        raise ValueError(
            f"Feature {column.key} of a numeric column must be dense; parse it with "
            f"tf.io.FixedLenFeature, or use tf.sparse.to_dense. Received: {feature}"
        )
    if feature.dtype == tf.string:
        raise ValueError(
            f"Feature {column.key} of a numeric column must hold numbers; text needs a "
            f"categorical column, or tf.strings.to_number. Received: {feature}"
        )
    size = feature.shape[1:].num_elements()
    wanted = tf.TensorShape(column.shape).num_elements()
    if size is not None and size != wanted:
        raise ValueError(
            f"Feature {column.key} must have {wanted} numbers for each example, the shape "
            f"{tuple(column.shape)} of its numeric column. Received: {size} numbers, {feature}"
        )


def _with_rank_of_two_or_more(key: Any, feature: Any) -> Any:
    if isinstance(feature, tf.RaggedTensor):
        feature = feature.to_sparse()
    if not isinstance(feature, tf.SparseTensor):
        feature = tf.convert_to_tensor(feature)
    rank = feature.shape.rank
    if rank == 0:
        raise ValueError(
            f"Feature {key} cannot have rank 0: features have a batch dimension. Received: {feature}"
        )
    if rank == 1:
        return _expand_last(feature)
    if rank is not None:
        return feature
    # A placeholder of unknown shape: the rank is known when the graph runs.
    actual_rank = tf.rank(feature) if tf.is_tensor(feature) else tf.size(feature.dense_shape)
    has_batch = tf.raw_ops.Assert(
        condition=actual_rank > 0, data=[f"Feature {key} cannot have rank 0.", actual_rank]
    )
    with tf1.get_default_graph().control_dependencies([has_batch]):
        return tf.cond(
            tf.equal(actual_rank, 1),
            lambda: _expand_last(feature),
            lambda: tf.nest.map_structure(tf.identity, feature, expand_composites=True),
        )


def _expand_last(feature: Any) -> Any:
    if isinstance(feature, tf.SparseTensor):
        return tf.sparse.reshape(feature, [tf.shape(feature, out_type=tf.int64)[0], 1])
    return tf.expand_dims(feature, -1)
