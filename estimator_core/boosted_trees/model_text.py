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


def forest_from_text(text: str) -> Forest:
    """Returns the trees of a model with numeric splits only.

    Args:
        text: Text from `model_to_string`, or a part of it that begins before a tree.
    """
    end = text.find("\nend of trees")
    sections = text[: end if end >= 0 else None].split("\nTree=")[1:]
    return concatenated([_tree(section) for section in sections])


def _tree(section: str) -> Forest:
    lines = (line.partition("=") for line in section.splitlines())
    fields = {name: value for name, _, value in lines}
    num_leaves = int(fields["num_leaves"])
    num_inner = num_leaves - 1

    def numbers(name: str, size: int, dtype: Any) -> Any:
        found = np.array(fields.get(name, "").split(), dtype=dtype) if size else np.zeros(0, dtype)
        return found if len(found) == size else np.zeros(size, dtype)  # a lone leaf has no counts

    def of_nodes(inner: str, leaf: str, dtype: Any) -> Any:
        parts = (numbers(inner, num_inner, dtype), numbers(leaf, num_leaves, dtype))
        return np.concatenate(parts)

    children = [
        _unified(numbers(f"{side}_child", num_inner, np.int64), num_inner)
        for side in ("left", "right")
    ]
    order, depth = _by_depth(*children)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))

    decision = numbers("decision_type", num_inner, np.int64)
    threshold = numbers("threshold", num_inner, np.float64)
    is_zero = decision & _MISSING != _NAN
    is_left = np.where(is_zero, threshold >= 0.0, decision & _TO_LEFT != 0)
    is_leaf = order >= num_inner

    def of_inner(values: Any, in_leaf: Any) -> Any:
        padded = np.concatenate([values, np.full(num_leaves, in_leaf, dtype=values.dtype)])
        return padded[order]

    left = place[np.concatenate([children[0], np.zeros(num_leaves, np.int64)])[order]]
    arrays = {
        "feature": of_inner(numbers("split_feature", num_inner, np.int64), 0),
        "threshold": of_inner(threshold, np.inf),
        "left": np.where(is_leaf, np.arange(len(order)), left),
        "nan_is_left": of_inner(is_left, True),
        "nan_is_zero": of_inner(is_zero, False),
        "value": of_nodes("internal_value", "leaf_value", np.float64)[order],
        "gain": of_inner(numbers("split_gain", num_inner, np.float64), 0.0),
        "count": of_nodes("internal_count", "leaf_count", np.int64)[order],
        "depth": depth,
        "root": np.zeros(1),
    }
    return Forest(**{name: arrays[name].astype(dtype) for name, dtype in DTYPES.items()})


def _unified(children: Any, num_inner: int) -> Any:
    """Returns children as node indices: inner nodes first, then leaves."""
    return np.where(children >= 0, children, num_inner - 1 - children)


def _by_depth(left: Any, right: Any) -> tuple[Any, Any]:
    """Returns the nodes in order of depth, siblings side by side, and the depth of each."""
    level: Any = np.zeros(1, np.int64)
    levels = []
    while len(level):
        levels.append(level)
        inner = level[level < len(left)]
        level = np.stack([left[inner], right[inner]], axis=1).reshape(-1)
    depth: Any = np.repeat(np.arange(len(levels)), [len(level) for level in levels])
    return np.concatenate(levels), depth


def text_from_forest(forest: Forest, num_features: int, trees_per_iteration: int) -> str:
    """Returns the model text, without an objective; its raw scores exclude the bias.

    Args:
        forest: The trees.
        num_features: Columns of the input matrix.
        trees_per_iteration: Number of logits.
    """
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
