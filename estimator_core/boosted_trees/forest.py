"""Forest: decision trees as NumPy arrays of nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

DTYPES = {
    "feature": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "nan_is_left": np.bool_,
    "nan_is_zero": np.bool_,
    "value": np.float64,
    "gain": np.float64,
    "count": np.int64,
    "depth": np.int32,
    "root": np.int32,
}


@dataclasses.dataclass(frozen=True)
class Forest:
    """Trees, one after the other; the nodes of a tree in order of depth, siblings side by side.

    An example goes to the left child if its value is at most the threshold, else to the right child, which
    is the node after the left one. A leaf is its own left child, with a threshold of infinity.
    """

    feature: Any  # `[nodes]`, the column of the input matrix that a node splits; 0 in a leaf
    threshold: Any  # `[nodes]`, float64
    left: Any  # `[nodes]`, index of the left child among all nodes
    nan_is_left: Any  # `[nodes]`, True if a missing value goes to the left
    nan_is_zero: Any  # `[nodes]`, True if a missing value counts as 0, since training saw none
    value: Any  # `[nodes]`, float64: value that the node would add to the logit if it were a leaf
    # `[nodes]`, decrease of the minimized loss by the split, in the library's unit; 0 in a leaf.
    gain: Any
    count: Any  # `[nodes]`, number of examples of the training data
    depth: Any  # `[nodes]`, 0 in a root
    # `[trees]`, index of each root. The trees of one iteration, one for each logit, are consecutive.
    root: Any

    @property
    def num_trees(self) -> int:
        return len(self.root)

    @property
    def num_nodes(self) -> int:
        """Number of nodes in all trees."""
        return len(self.feature)

    @property
    def is_leaf(self) -> Any:
        """`[nodes]`, True for a leaf."""
        return self.left == np.arange(self.num_nodes)

    def trees(self, first: int, last: int) -> Forest:
        """Returns the trees from `first` to before `last`."""
        ends: Any = np.append(self.root, self.num_nodes)
        begin, end = int(ends[first]), int(ends[last])
        nodes = {name: getattr(self, name)[begin:end] for name in _NODE_FIELDS}
        nodes["left"] = nodes["left"] - np.int32(begin)
        return Forest(**nodes, root=self.root[first:last] - np.int32(begin))

    def truncated(self, depth: int) -> Forest:
        """Returns the trees cut at `depth`: nodes at that depth become leaves."""
        kept = self.depth <= depth
        index = np.cumsum(kept, dtype=np.int32) - 1
        is_end = self.depth[kept] == depth
        nodes = {name: getattr(self, name)[kept] for name in _NODE_FIELDS}
        here: Any = np.arange(len(is_end), dtype=np.int32)
        ended = {"left": here, **{name: np.asarray(end) for name, end in _LEAF_VALUES.items()}}
        nodes["left"] = index[nodes["left"]]
        for name, value in ended.items():
            nodes[name] = np.where(is_end, value, nodes[name]).astype(DTYPES[name])
        return Forest(**nodes, root=index[self.root])


_NODE_FIELDS = tuple(name for name in DTYPES if name != "root")
_LEAF_VALUES = {"feature": 0, "threshold": np.inf, "nan_is_left": True, "nan_is_zero": False, "gain": 0.0}


def constant_trees(count: int) -> Forest:
    """Returns trees of one leaf each, which add nothing."""
    here: Any = np.arange(count, dtype=np.int32)
    zeros: dict[str, Any] = {name: np.zeros(count, dtype) for name, dtype in DTYPES.items()}
    nodes: dict[str, Any] = {name: np.full(count, end, DTYPES[name]) for name, end in _LEAF_VALUES.items()}
    return Forest(**{**zeros, **nodes, "left": here, "root": here})


def concatenated(forests: Sequence[Forest]) -> Forest:
    """Returns the trees of all forests, in order."""
    parts: dict[str, list[Any]] = {name: [] for name in DTYPES}
    begin = 0
    for forest in forests:
        for name, values in parts.items():
            value = getattr(forest, name)
            values.append(value + np.int32(begin) if name in ("left", "root") else value)
        begin += forest.num_nodes
    empty: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in DTYPES.items()}
    return Forest(**{name: np.concatenate([empty[name], *parts[name]]) for name in parts})
