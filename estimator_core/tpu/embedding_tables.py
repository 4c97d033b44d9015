"""Embedding tables on virtual shards, trained as an `EmbeddingConfigSpec` specifies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.current import current_execution
from estimator_core.execution.shards.shard_copies import sources
from estimator_core.execution.shards.shards import as_operation
from estimator_core.execution.shards.updates import is_handle, is_update
from estimator_core.logs import logger
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.tpu.experimental.embedding_config_spec import EmbeddingConfigSpec
from estimator_core.tpu.table_optimizers import update_rows


class EmbeddingTables:
    """The tables of one model in mode TRAIN.

    They are the variables that the columns make when model_fn looks them up. model_fn's optimizer computes
    their gradients and does not update them; the step does, by the sum over the shards.

    Source: `tf.compat.v1.estimator.tpu.experimental.EmbeddingConfigSpec`. A TPU records the gradients of
    lookups when an optimizer's `compute_gradients` returns them. So `CrossShardOptimizer`, which divides
    the loss by the number of shards unless its `reduction` is SUM, divides these gradients as well.
    """

    def __init__(self, spec: EmbeddingConfigSpec):
        self._spec = spec
        columns = spec.feature_columns or ()
        self._columns = {
            _name_suffix(column): column
            for column in columns
            if hasattr(column, "categorical_column")  # others have no table
        }
        self._gradients: dict[str, Any] = {}

    # Called by the Execution

    def computed(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns pairs of gradient and variable, with 0 for the tables, and records the real gradients."""
        remaining = []
        for gradient, variable in pairs:
            if gradient is not None and self._find_column(variable) is not None:
                self._record(gradient, variable)
                # A gradient of 0 is left out of norms of gradients.
                if isinstance(gradient, tf.IndexedSlices):
                    values, indices = gradient.values[:0], gradient.indices[:0]
                    gradient = tf.IndexedSlices(values, indices, gradient.dense_shape)
                else:
                    gradient = tf.zeros_like(gradient)
            remaining.append((gradient, variable))
        return remaining

    def summed_when_applied(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the pairs of other variables; records gradients of tables that no optimizer computed."""
        others = []
        for gradient, variable in pairs:
            if self._find_column(variable) is None:
                others.append((gradient, variable))
            elif gradient is not None and variable.name not in self._gradients:
                self._record(gradient, variable)
        return others

    def applied(self, pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Returns the pairs of other variables."""
        others = []
        for gradient, variable in pairs:
            if self._find_column(variable) is None:
                others.append((gradient, variable))
            elif gradient is not None and variable.name not in self._gradients:
                raise RuntimeError(
                    "The gradient of an embedding table must come from compute_gradients or minimize of an "
                    "optimizer of tf.compat.v1.train, or be given to CrossShardOptimizer. Received: variable "
                    f"{variable.name}"
                )
        return others

    # For the step

    def with_updates(self, spec: EstimatorSpec) -> EstimatorSpec:
        """Returns the spec of a shard with a `train_op` that updates the tables as well."""
        tables = {end: self._find_table(end) for end in self._columns}
        self._check_updates(spec.train_op, list(tables.values()))
        step = tf.identity(tf1.train.get_global_step())
        updates = []
        for end, table in tables.items():
            if table.name not in self._gradients:
                logger.warning(
                    "The loss does not depend on the embedding table %s, which stays as it is.", table.name
                )
                continue
            gradient = current_execution().sum_over_replicas(self._gradients[table.name])
            updates.append(
                update_rows(
                    table,
                    self._multiplied(gradient, step),
                    self._spec.optimization_parameters,
                    self._learning_rate(self._columns[end], step),
                    self._spec.clipping_limit,
                )
            )
        return spec._replace(train_op=tf.group(spec.train_op, *updates))

    def _multiplied(self, gradient: Any, step: tf.Tensor) -> Any:
        if self._spec.experimental_gradient_multiplier_fn is None:
            return gradient
        factor = tf.cast(self._spec.experimental_gradient_multiplier_fn(step), gradient.dtype)
        if isinstance(gradient, tf.IndexedSlices):
            values = gradient.values * factor
            return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
        return gradient * factor

    def _learning_rate(self, column: Any, step: tf.Tensor) -> Any:
        of_column = getattr(column, "get_learning_rate_fn", lambda: None)()
        if of_column is not None:
            return of_column(step)
        rate = self._spec.optimization_parameters.learning_rate
        return rate() if callable(rate) else rate

    def _record(self, gradient: Any, variable: Any) -> None:
        if variable.name in self._gradients:
            raise RuntimeError(
                "A step takes the gradient of an embedding table once: let one optimizer minimize the sum of "
                f"the losses, or give the others var_list. Received: variable {variable.name}"
            )
        self._gradients[variable.name] = gradient

    def _find_column(self, variable: Any) -> Any:
        name = variable.name.partition(":")[0]
        return next((self._columns[end] for end in self._columns if _has_suffix(name, end)), None)

    def _find_table(self, end: str) -> Any:
        tables = [
            variable
            for variable in tf1.global_variables()
            if _has_suffix(variable.name.partition(":")[0], end)
        ]
        if not tables:
            raise RuntimeError(
                "Each embedding column of embedding_config_spec must be looked up in model_fn, by "
                "tf.compat.v1.feature_column.input_layer or a DenseFeatures layer. Received: column "
                f"{self._columns[end].name!r}, and no variable named {end!r}"
            )
        if len(tables) > 1:
            raise ValueError(
                "An embedding column has one table: look it up in one variable scope. Received: column "
                f"{self._columns[end].name!r} with {[variable.name for variable in tables]}"
            )
        return tables[0]

    def _check_updates(self, train_op: Any, tables: Sequence[Any]) -> None:
        names = {}
        for table in tables:
            handle = table.handle if hasattr(table, "handle") else table.op.outputs[0]
            names[handle.op] = table.name
        reached: set[Any] = set()
        pending = [as_operation(train_op)]
        while pending:
            operation = pending.pop()
            if operation in reached:
                continue
            reached.add(operation)
            pending += sources(operation)
            updated = [
                names[tensor.op]
                for tensor in operation.inputs
                if is_handle(tensor) and tensor.op in names and is_update(operation)
            ]
            if updated:
                raise ValueError(
                    "The tables of embedding_config_spec are updated by its optimization_parameters: train "
                    "the other variables by an optimizer of tf.compat.v1.train in a CrossShardOptimizer, "
                    f"which leaves them out. Received: variable {updated[0]}, updated by {operation.name!r}"
                )


def _name_suffix(column: Any) -> str:
    """Returns the end of the name of a column's variable."""
    if hasattr(column, "shared_embedding_column_creator"):
        return column.get_embedding_var_name()
    return f"{column.name}/embedding_weights"


def _has_suffix(name: str, end: str) -> bool:
    return name == end or name.endswith(f"/{end}")
