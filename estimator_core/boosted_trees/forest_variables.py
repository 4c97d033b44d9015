"""A forest in the variables of a graph, which checkpoints hold and sessions restore."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.boosted_trees.boosting import BoostingState
from estimator_core.boosted_trees.forest import DTYPES, Forest
from estimator_core.checkpoints.whole import open_checkpoint

SCOPE = "boosted_trees"
_COUNTS = ("finished", "steps_in_tree", "warm_started")


class ForestVariables:
    """The variables of a `BoostingState`, below `boosted_trees/`; a new model has no trees.

    Their length is unknown to the graph: it restores checkpoints with any number of trees. They are
    trainable variables, so that a warm start takes them from another model.

    `logits_dimension`: number of logits; an iteration has a tree for each.
    `bias`: Variable of the logits before the first tree, float64 `[logits_dimension]`.
    """

    def __init__(self, logits_dimension: int):
        with tf1.variable_scope(SCOPE, reuse=tf1.AUTO_REUSE):
            self.nodes = {}
            for name, dtype in DTYPES.items():
                empty = tf1.placeholder_with_default(np.zeros(0, dtype), [None])
                self.nodes[name] = tf1.get_variable(
                    name, initializer=empty, validate_shape=False, use_resource=True
                )
            self.bias = _zeros("bias", [logits_dimension], tf.float64)
            # A warm start leaves `warm_started` out: each model counts its own.
            self.counts = {
                name: _zeros(name, [], tf.int64, trainable=name != "warm_started") for name in _COUNTS
            }
        self._logits_dimension = logits_dimension

    def read(self, session: Any) -> BoostingState:
        nodes, bias, counts = session.run((self.nodes, self.bias, self.counts))
        forest = Forest(**nodes)
        if forest.num_trees % self._logits_dimension:
            raise ValueError(
                "The checkpoint has another number of classes or labels than this model: an iteration has "
                f"a tree for each logit. Received: {forest.num_trees} trees, {self._logits_dimension} logits"
            )
        return BoostingState(forest, bias, **{name: int(value) for name, value in counts.items()})


def _zeros(name: str, shape: list[int], dtype: tf.DType, trainable: bool = True) -> Any:
    return tf1.get_variable(
        name, shape, dtype, tf1.initializers.zeros(), trainable=trainable, use_resource=True
    )


def read_checkpoint(checkpoint_path: str) -> BoostingState:
    """Returns the forest in a checkpoint."""
    reader = open_checkpoint(checkpoint_path)

    def value(name: str) -> Any:
        if not reader.has_tensor(f"{SCOPE}/{name}"):
            raise ValueError(
                f"The checkpoint has no boosted trees, no variable {SCOPE}/{name}. "
                f"Received: {checkpoint_path}"
            )
        return reader.get_tensor(f"{SCOPE}/{name}")

    forest = Forest(**{name: value(name) for name in DTYPES})
    return BoostingState(forest, value("bias"), **{name: int(value(name)) for name in _COUNTS})


class ForestAssignment:
    """Assigns a state to the variables of a forest. Make it once, in their graph."""

    def __init__(self, variables: ForestVariables):
        self._nodes = _placeholders(variables.nodes, [None])
        self._bias = tf1.placeholder(tf.float64, variables.bias.shape)
        self._counts = _placeholders(variables.counts, [])
        pairs = [(variables.bias, self._bias)]
        pairs += [(variables.nodes[name], value) for name, value in self._nodes.items()]
        pairs += [(variables.counts[name], value) for name, value in self._counts.items()]
        self._op = tf.group(*(variable.assign(value) for variable, value in pairs))

    def run(self, session: Any, state: BoostingState) -> None:
        feed = {tensor: getattr(state.forest, name) for name, tensor in self._nodes.items()}
        feed.update({tensor: getattr(state, name) for name, tensor in self._counts.items()})
        session.run(self._op, {**feed, self._bias: state.bias})


def _placeholders(variables: dict[str, Any], shape: list[Any]) -> dict[str, tf.Tensor]:
    return {name: tf1.placeholder(variable.dtype, shape) for name, variable in variables.items()}
