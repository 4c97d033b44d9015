"""Conversion of an input_fn's features and labels to the inputs and targets of a Keras model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

_FEATURES, _SAMPLE_WEIGHTS = "features", "sample_weights"


def as_tensors(batch: Any) -> Any:
    """Returns features, labels or both with tensors in place of the NumPy arrays in them."""
    if not any(map(_is_numpy, tf.nest.flatten(batch))):
        return batch
    return tf.nest.map_structure(lambda each: tf.convert_to_tensor(each) if _is_numpy(each) else each, batch)


def _is_numpy(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def split_sample_weights(features: Any) -> tuple[Any, Any]:
    """Returns (features, sample weights or None).

    Weights come in a dict with exactly the keys "features" and "sample_weights".
    """
    if isinstance(features, Mapping) and set(features) == {_FEATURES, _SAMPLE_WEIGHTS}:
        return features[_FEATURES], features[_SAMPLE_WEIGHTS]
    return features, None


def check_needs_no_labels(model: Any) -> None:
    """Checks that a model works without labels, such as one whose layers add all losses."""
    if getattr(model, "loss", None) is not None:
        raise ValueError(
            "The Keras model is compiled with a loss, which needs labels: input_fn must return "
            f"(features, labels). Received: labels=None, loss={model.loss!r}"
        )


def order_tensors(names: Sequence[str], values: Any, what: str, aliases: Mapping[str, str]) -> list[Any]:
    """Returns tensors, given by name, in order or as a single tensor, in the order of the names."""
    if isinstance(values, Mapping):
        by_name = {aliases.get(name, name): tensor for name, tensor in values.items()}
        missing = [name for name in names if name not in by_name]
        if missing:
            raise KeyError(
                f"The dict of {what} lacks {missing} of the Keras model's names {list(names)}. "
                f"Received: {sorted(values)}"
            )
        return [by_name[name] for name in names]
    tensors = list(values) if isinstance(values, (list, tuple)) else [values]
    if len(tensors) != len(names):
        raise ValueError(
            f"The Keras model takes {len(names)} {what}, {list(names)}: give a dict by these names, or "
            f"a tuple in their order. Received: {len(tensors)}"
        )
    return tensors


def named_outputs(output_names: Sequence[str] | None, outputs: Any) -> dict[str, Any]:
    """Returns a model's outputs by name: "output_1" and so on if the model has no names."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    flat = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    names = output_names or [f"output_{number}" for number in range(1, len(flat) + 1)]
    return dict(zip(names, flat, strict=True))
