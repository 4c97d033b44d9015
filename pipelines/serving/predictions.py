"""Outputs of a signature as plain columns: class, probability, value."""

from collections.abc import Mapping
from typing import Any

import numpy as np

MAX_CLASSES = 20
"""Number of classes up to which each has a column with its probability."""


def plain_columns(outputs: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Returns the predictions as NumPy arrays of shape [num_rows], by column."""
    if method == "regress" and list(outputs) == ["outputs"]:
        return _columns("value", outputs["outputs"])
    if method == "classify" and "scores" in outputs:
        return _of_classes(outputs["scores"], outputs.get("classes"))
    if "probabilities" in outputs and "all_classes" in outputs:  # of a canned classifier
        return _of_classes(outputs["probabilities"], outputs["all_classes"])
    if list(outputs) == ["predictions"]:  # of a canned regressor
        return _columns("value", outputs["predictions"])
    found: dict[str, Any] = {}
    for name, values in outputs.items():
        found.update(_columns(name, values))
    return found


def _of_classes(scores: Any, classes: Any) -> dict[str, Any]:
    scores = scores.reshape(len(scores), int(np.prod(scores.shape[1:])))
    best = scores.argmax(axis=1) if len(scores) else np.zeros(0, np.int64)
    rows = np.arange(len(scores))
    if classes is None:
        names = np.array([str(number) for number in range(scores.shape[1])], object)
        classes = np.broadcast_to(names, scores.shape)
    classes = _text(classes)
    probability = scores[rows, best]
    names = classes[rows, best]
    names[np.isnan(probability)] = None  # the model has no answer
    found = {"class": names, "probability": probability}
    if len(rows) and scores.shape[1] <= MAX_CLASSES:
        for position, name in enumerate(classes[0]):
            found[f"probability_{name}"] = scores[:, position]
    return found


def _columns(name: str, values: Any) -> dict[str, Any]:
    """Returns one column, or one for each number of a row, `NAME_0` and so on."""
    if values.dtype == object:
        values = _text(values)
    rest = int(np.prod(values.shape[1:]))
    flat = values.reshape(len(values), rest)
    if rest == 1:
        return {name: flat[:, 0]}
    return {f"{name}_{position}": flat[:, position] for position in range(rest)}


def _text(values: Any) -> Any:
    flat = [
        value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        for value in values.ravel()
    ]
    return np.array(flat, object).reshape(values.shape)
