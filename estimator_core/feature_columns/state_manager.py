"""The variables and lookup tables of feature columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1


class StateManager:
    """Creates and finds the variables and lookup tables of feature columns.

    Variables are named `<variable scope>/<column name>/<variable name>`, and follow the partitioner,
    the reuse and the regularizer of the variable scope in which they are created.

    `trainable`: False keeps every variable out of training, even if its column trains it.

    Source: the `state_manager` argument of `tf.feature_column` columns.
    """

    def __init__(self, trainable: bool = True):
        self._trainable = trainable
        self._variables: dict[tuple[Any, str], Any] = {}
        self._resources: dict[tuple[Any, str], Any] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Sequence[int],
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Creates, or in a reusing scope finds, a variable below the scope of its column."""
        if not use_resource:
            raise ValueError(f"Only resource variables are supported. Received: use_resource={use_resource}")
        if (feature_column, name) in self._variables:
            raise ValueError(f"Variable {name} of column {feature_column.name} already exists.")
        with tf1.variable_scope(feature_column.name):
            variable = tf1.get_variable(
                name,
                shape=shape,
                dtype=tf.float32 if dtype is None else dtype,
                initializer=initializer,
                trainable=self._trainable and trainable,
                use_resource=True,
            )
        self._variables[feature_column, name] = variable
        return variable

    def add_variable(self, feature_column: Any, var: Any) -> None:
        self._variables[feature_column, var.name] = var

    def has_variable(self, feature_column: Any, name: str) -> bool:
        """Returns whether the column has a variable of that name."""
        return (feature_column, name) in self._variables

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """Returns a variable that the column has created."""
        if (feature_column, name) not in self._variables:
            raise ValueError(f"Column {feature_column.name} has no variable named {name}.")
        return self._variables[feature_column, name]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Registers a resource of a column, such as a lookup table."""
        self._resources[feature_column, name] = resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        """Returns whether the column has a resource of that name."""
        return (feature_column, name) in self._resources

    def get_resource(self, feature_column: Any, name: str) -> Any:
        if (feature_column, name) not in self._resources:
            raise ValueError(f"Column {feature_column.name} has no resource named {name}.")
        return self._resources[feature_column, name]


def create_state(feature_columns: Sequence[Any], state_manager: StateManager) -> None:
    """Creates the variables of all columns in the current variable scope.

    The table of shared embeddings belongs to no single scope: it is created at the root, under its
    own name, as tf.estimator 2.15 does (there, it is left out of training; here it is trained).
    """
    for column in feature_columns:
        shared = getattr(column, "shared_embedding_column_creator", None)
        if shared is None:
            column.create_state(state_manager)
            continue
        outer = tf1.get_variable_scope()
        root = tf1.VariableScope(outer.reuse, name="", partitioner=outer.partitioner)
        with tf1.variable_scope(root, auxiliary_name_scope=False):
            _ = shared.embedding_weights  # the first access in a graph creates the variable
