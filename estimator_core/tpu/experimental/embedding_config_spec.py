"""EmbeddingConfigSpec: embedding tables in the memory of a TPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1

_PARTITION_STRATEGIES = ("mod", "div")


class _Fields(NamedTuple):
    feature_columns: Sequence[Any] | None
    tensor_core_feature_columns: Sequence[Any] | None
    optimization_parameters: Any
    clipping_limit: float | None
    pipeline_execution_with_tensor_core: bool
    experimental_gradient_multiplier_fn: Callable[[Any], Any] | None
    feature_to_config_dict: Mapping[str, Any] | None
    table_to_config_dict: Mapping[str, Any] | None
    partition_strategy: str
    profile_data_directory: str | None


class EmbeddingConfigSpec(_Fields):
    """The embedding tables in a TPU's memory, and the settings of their updates. Immutable.

    model_fn looks the columns up. With `use_tpu=True` these settings update their tables; with
    `use_tpu=False` they are variables like others, trained by model_fn's optimizer.

    Args:
        feature_columns: Numeric and embedding columns, including those of `tf.compat.v1.tpu.experimental`.
            Give either these or the two dicts below.
        optimization_parameters: Optimizer of the tables, from `tf.tpu.experimental.embedding`. Needed
            with `feature_columns`.
        clipping_limit: Maximum absolute value of the gradient of a row; None does not clip.
        pipeline_execution_with_tensor_core: Overlaps the lookups of the next batch with a step if true.
        experimental_gradient_multiplier_fn: Function from the global step to a factor for the
            gradients; None means 1.
        feature_to_config_dict: Dict of feature name to `FeatureConfig`.
        table_to_config_dict: Dict of table name to `TableConfig`.
        partition_strategy: Distribution of rows over hosts: "mod" or "div".
        profile_data_directory: Directory for measurements of the tables; or None.

    Raises:
        ValueError: Both or neither of columns and dicts are given, or a value is invalid.
        TypeError: A column or a dict's value has a wrong kind.

    Source: `tf.compat.v1.estimator.tpu.experimental.EmbeddingConfigSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        feature_columns: Sequence[Any] | None = None,
        optimization_parameters: Any = None,
        clipping_limit: float | None = None,
        pipeline_execution_with_tensor_core: bool = False,
        experimental_gradient_multiplier_fn: Callable[[Any], Any] | None = None,
        feature_to_config_dict: Mapping[str, Any] | None = None,
        table_to_config_dict: Mapping[str, Any] | None = None,
        partition_strategy: str = "div",
        profile_data_directory: str | None = None,
    ) -> EmbeddingConfigSpec:
        """Returns the checked EmbeddingConfigSpec."""
        dicts = (feature_to_config_dict, table_to_config_dict)
        if any(dicts) != all(dicts) or bool(feature_columns) == all(dicts):
            raise ValueError(
                "Exactly one of feature_columns, and the pair of feature_to_config_dict and "
                f"table_to_config_dict, must be specified. Received: feature_columns="
                f"{feature_columns!r}, feature_to_config_dict={feature_to_config_dict!r}, "
                f"table_to_config_dict={table_to_config_dict!r}"
            )
        if partition_strategy not in _PARTITION_STRATEGIES:
            raise ValueError(
                f"partition_strategy must be one of {_PARTITION_STRATEGIES}. "
                f"Received: partition_strategy={partition_strategy!r}"
            )
        on_tensor_core: list[Any] | None = None
        if feature_columns:
            _check_columns(feature_columns)
            # All optimizers of TPU tables have these attributes, including those of TensorFlow 1, which have
            # no public name any more; other optimizers don't.
            attributes = ("learning_rate", "clip_weight_min")
            if not all(hasattr(optimization_parameters, name) for name in attributes):
                raise ValueError(
                    "optimization_parameters must be an optimizer of tf.tpu.experimental.embedding, such as "
                    f"Adam(). Received: optimization_parameters={optimization_parameters!r}"
                )
            on_tensor_core = [column for column in feature_columns if _is_on_tensor_core(column)]
            feature_columns = [column for column in feature_columns if not _is_on_tensor_core(column)]
        else:
            _check_configs(feature_to_config_dict, "feature", "FeatureConfig", "table_id")
            _check_configs(table_to_config_dict, "table", "TableConfig", "vocabulary_size")
        return super().__new__(
            cls,
            feature_columns,
            on_tensor_core,
            optimization_parameters,
            clipping_limit,
            pipeline_execution_with_tensor_core,
            experimental_gradient_multiplier_fn,
            feature_to_config_dict,
            table_to_config_dict,
            partition_strategy,
            profile_data_directory,
        )


def _is_on_tensor_core(column: Any) -> bool:
    """Returns whether a column has an `embedding_lookup_device`, and no table in the TPU's own memory."""
    return getattr(column, "_embedding_lookup_device", None) is not None


def _check_columns(columns: Sequence[Any]) -> None:
    # TensorFlow has no public names for the classes of its columns: take them from examples.
    identity = tf.feature_column.categorical_column_with_identity("example", 2)
    allowed = tuple(
        type(column)
        for column in (
            tf.feature_column.numeric_column("example"),
            tf.feature_column.embedding_column(identity, 1),
            tf1.tpu.experimental.embedding_column(identity, 1),
            *tf1.tpu.experimental.shared_embedding_columns([identity], 1),
        )
    )
    for column in columns:
        if not isinstance(column, allowed):
            raise TypeError(
                "feature_columns must be numeric or embedding columns: "
                f"{sorted(kind.__name__ for kind in allowed)}. Received: {column!r}"
            )


def _check_configs(configs: Mapping[str, Any] | None, what: str, kind: str, attribute: str) -> None:
    for name, config in (configs or {}).items():
        if not hasattr(config, attribute):
            raise TypeError(f"Config for {what} {name} must be of type {kind}. Received: {config!r}")
