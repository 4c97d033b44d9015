"""Conversion of trees from and to the text format of LightGBM's models.

Source: the format that `lightgbm.Booster.model_to_string` writes, version 4: a header and a section for
each tree of `name=values` lines. Its inner nodes and leaves are numbered separately; a negative child -n - 1
is leaf n. Bits of a decision type: 1 for a categorical split, 2 for missing values to the left, and 4s for
the values that count as missing: none (0), zeros (1), NaN (2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from estimator_core.boosted_trees.forest import DTYPES, Forest, concatenated

_TO_LEFT, _NAN = 2, 8
_MISSING = 12


def forest_from_text(model_text: str) -> Forest:
    """Returns the trees of a model with numeric splits only.

    All trees are parsed together, because a forest has hundreds of them with few nodes each.
    """
    end = model_text.find("\nend of trees")
    sections = model_text[: end if end >= 0 else None].split("\nTree=")[1:]
    if not sections:
        return concatenated([])
    fields = [
        {name: value for name, _, value in (line.partition("=") for line in section.split("\n"))}
        for section in sections
    ]
    num_leaves: Any = np.array([int(tree["num_leaves"]) for tree in fields])
    num_inner = num_leaves - 1

    def inner_values(name: str, dtype: Any, in_leaf: Any) -> Any:
        values: Any = np.full(num_nodes, in_leaf, dtype)
        values[is_inner] = _numbers([tree.get(name, "") for tree in fields], num_inner, dtype)
        return values

    def node_values(inner: str, leaf: str, dtype: Any) -> Any:
        values = inner_values(inner, dtype, 0)
        values[~is_inner] = _numbers([tree.get(leaf, "") for tree in fields], num_leaves, dtype)
        return values

    # The nodes of a tree, in the text's numbering: inner ones first, then leaves.
    sizes = num_inner + num_leaves
    num_nodes = int(sizes.sum())
    root = np.cumsum(sizes) - sizes
    is_inner = np.arange(num_nodes) - np.repeat(root, sizes) < np.repeat(num_inner, sizes)

    def children(side: str) -> Any:
        """Returns the children on one side, as node indices; a negative one in the text is a leaf."""
        child = inner_values(f"{side}_child", np.int64, 0)
        child = np.where(child < 0, np.repeat(num_inner - 1, sizes) - child, child)
        return child + np.repeat(root, sizes)

    left = children("left")
    order, depth = _by_depth(root, left, children("right"), is_inner)
    position = np.empty_like(order)
    position[order] = np.arange(num_nodes)

    decision = inner_values("decision_type", np.int64, _NAN + _TO_LEFT)
    threshold = inner_values("threshold", np.float64, np.inf)
    is_zero = decision & _MISSING != _NAN
    arrays = {
        "feature": inner_values("split_feature", np.int64, 0),
        "threshold": threshold,
        "left": np.where(is_inner, position[left], position),
        "nan_is_left": np.where(is_zero, threshold >= 0.0, decision & _TO_LEFT != 0),
        "nan_is_zero": is_zero,
        "value": node_values("internal_value", "leaf_value", np.float64),
        "gain": inner_values("split_gain", np.float64, 0.0),
        "count": node_values("internal_count", "leaf_count", np.int64),
        "depth": depth,
    }
    nodes = {name: values[order].astype(DTYPES[name]) for name, values in arrays.items()}
    return Forest(**nodes, root=root.astype(DTYPES["root"]))


def _numbers(texts: list[str], sizes: Any, dtype: Any) -> Any:
    """Returns the numbers of all trees, one after the other; zeros for a tree whose text has none."""
    numbers: Any = np.fromstring(" ".join(texts), dtype, sep=" ")
    if len(numbers) == sizes.sum():
        return numbers
    padded = [
        values if values.strip() or not size else "0 " * size
        for values, size in zip(texts, sizes.tolist(), strict=True)
    ]
    return np.fromstring(" ".join(padded), dtype, sep=" ")


def _by_depth(root: Any, left: Any, right: Any, is_inner: Any) -> tuple[Any, Any]:
    """Returns the nodes by tree and depth, siblings side by side, and the depth of each node."""
    level, tree = root, np.arange(len(root))
    levels: list[Any] = []
    trees: list[Any] = []
    depth: Any = np.zeros(len(is_inner), np.int64)
    while len(level):
        depth[level] = len(levels)
        levels.append(level)
        trees.append(tree)
        splits = is_inner[level]
        inner = level[splits]
        level = np.stack([left[inner], right[inner]], axis=1).reshape(-1)
        tree = np.repeat(tree[splits], 2)
    # Within a tree, a stable sort keeps the order of the levels.
    order = np.argsort(np.concatenate(trees), kind="stable")
    return np.concatenate(levels)[order], depth


def text_from_forest(forest: Forest, num_features: int, trees_per_iteration: int) -> str:
    """Returns the model text, without an objective; its raw scores exclude the bias."""
    names = " ".join(f"Column_{index}" for index in range(num_features))
    header = [
        "tree",
        "version=v4",
        f"num_class={trees_per_iteration}",
        f"num_tree_per_iteration={trees_per_iteration}",
        "label_index=0",
        f"max_feature_idx={num_features - 1}",
        f"feature_names={names}",
        f"feature_infos={' '.join(['none'] * num_features)}",
        "",
    ]
    trees = []
    for index in range(forest.num_trees):
        lines = [f"Tree={index}", *_section(forest.trees(index, index + 1)), "", ""]
        trees.append("\n".join(lines))
    return "\n".join([*header, *trees, "end of trees", ""])


def _section(tree: Forest) -> list[str]:
    is_leaf = tree.is_leaf
    inner = np.flatnonzero(~is_leaf)
    leaves = np.flatnonzero(is_leaf)
    child: Any = np.empty(tree.num_nodes, np.int64)
    child[inner] = np.arange(len(inner))
    child[leaves] = -1 - np.arange(len(leaves))
    decision = np.where(tree.nan_is_zero, 0, _NAN + _TO_LEFT * tree.nan_is_left)[inner]
    left = tree.left[inner]
    values = {
        "split_feature": tree.feature[inner],
        "split_gain": tree.gain[inner],
        "threshold": tree.threshold[inner],
        "decision_type": decision,
        "left_child": child[left],
        "right_child": child[left + 1] if len(inner) else left,
        "leaf_value": tree.value[leaves],
        "leaf_weight": np.zeros(len(leaves)),
        "leaf_count": tree.count[leaves],
        "internal_value": tree.value[inner],
        "internal_weight": np.zeros(len(inner)),
        "internal_count": tree.count[inner],
    }
    lines = [f"num_leaves={len(leaves)}", "num_cat=0"]
    for name, numbers in values.items():
        lines.append(f"{name}={' '.join(map(repr, numbers.tolist()))}")
    return [*lines, "is_linear=0", "shrinkage=1"]
