"""Settings of boosted trees: tf.estimator's arguments as LightGBM's parameters."""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import Any

PRUNING_MODES = ("none", "pre", "post")
_MAX_LEAVES = 131072  # LightGBM's maximum
_HISTOGRAM_MEGABYTES = 1024
_MIN_HESSIAN = 1e-6  # with 0, rounding errors make empty leaves, and LightGBM fails
_CELLS_FOR_THREADS = 5_000_000


@dataclasses.dataclass(frozen=True)
class BoostingSettings:
    """Settings of the trees; see `BoostedTreesClassifier` for each."""

    n_batches_per_layer: int  # Number of batches in the data set, and of steps for a layer
    n_trees: int = 100  # Number of iterations; each has a tree for each logit
    max_depth: int = 6  # Number of layers of a tree
    learning_rate: float = 0.1  # Factor of each tree's values
    l1_regularization: float = 0.0  # L1 penalty for each example
    l2_regularization: float = 0.0  # L2 penalty for each example
    # Minimum gain of a split, for each example, with `pruning_mode` "pre".
    tree_complexity: float = 0.0
    # Minimum sum of Hessians in a node, divided by the number of all examples.
    min_node_weight: float = 0.0
    center_bias: bool = False  # Starts from the mean of the labels if true
    pruning_mode: str = "none"  # One of "none", "pre"
    quantile_sketch_epsilon: float = 0.01  # 1 / the number of buckets of a numeric column
    min_node_examples: int = 1  # Minimum number of examples in a leaf

    def __post_init__(self) -> None:
        for name in ("n_batches_per_layer", "n_trees", "max_depth", "min_node_examples"):
            value = getattr(self, name)
            is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not is_number or value % 1 or value < 1:
                raise ValueError(f"{name} must be a whole number above 0. Received: {name}={value!r}")
            object.__setattr__(self, name, int(value))  # np.ceil returns a float
        for name in ("l1_regularization", "l2_regularization", "tree_complexity", "min_node_weight"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} must be a number of 0 or more. Received: {name}={value!r}")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be above 0. Received: learning_rate={self.learning_rate!r}")
        if not 0 < self.quantile_sketch_epsilon < 1:
            raise ValueError(
                "quantile_sketch_epsilon must be between 0 and 1: numbers get 1 / it buckets. "
                f"Received: quantile_sketch_epsilon={self.quantile_sketch_epsilon!r}"
            )
        self._check_pruning()

    def _check_pruning(self) -> None:
        if self.pruning_mode not in PRUNING_MODES:
            raise ValueError(
                f"pruning_mode must be one of {PRUNING_MODES}. Received: pruning_mode={self.pruning_mode!r}"
            )
        if self.pruning_mode == "post":
            raise ValueError(
                "LightGBM can't prune a grown tree: use pruning_mode='pre', which makes no split that "
                "gains less than tree_complexity. Received: pruning_mode='post'"
            )
        if self.pruning_mode == "pre" and not self.tree_complexity:
            raise ValueError(
                "For pruning, tree_complexity must be positive: it is the minimum gain of a split. "
                f"Received: pruning_mode='pre', tree_complexity={self.tree_complexity!r}"
            )

    @property
    def steps_per_tree(self) -> int:
        """Number of training steps for a tree."""
        return self.n_batches_per_layer * self.max_depth

    def parameters(self, num_rows: int, num_columns: int, loss_scale: float) -> dict[str, Any]:
        """Returns the parameters for LightGBM, without the objective.

        tf.estimator's regularization is for each example; LightGBM's is for the sums over examples.
        """
        unit = num_rows / loss_scale
        return {
            "learning_rate": self.learning_rate,
            "max_depth": self.max_depth,
            # Limits only very deep trees: all other nodes are split if possible.
            "num_leaves": max(2, min(2**self.max_depth, num_rows, _MAX_LEAVES)),
            "histogram_pool_size": _HISTOGRAM_MEGABYTES,
            "lambda_l1": self.l1_regularization * unit,
            "lambda_l2": self.l2_regularization * unit,
            "min_gain_to_split": self.tree_complexity * unit if self.pruning_mode == "pre" else 0.0,
            "min_sum_hessian_in_leaf": max(self.min_node_weight * unit, _MIN_HESSIAN),
            "min_data_in_leaf": self.min_node_examples,
            "max_bin": max(2, round(1 / self.quantile_sketch_epsilon)),
            "min_data_in_bin": 1,
            "boost_from_average": False,
            # The same data give the same trees with any number of threads.
            "deterministic": True,
            "force_row_wise": True,
            # On little data, synchronizing threads costs more than they save.
            "num_threads": 1 if num_rows * num_columns < _CELLS_FOR_THREADS else 0,
            "metric": "None",
            "verbosity": -1,
        }
