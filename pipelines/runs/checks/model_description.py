"""Describes a model for the report: its signatures and its size."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import BadInputError

MAX_TENSORS = 300
"""Maximal number of inputs, or of outputs, of a signature."""


def describe_model(model: Any) -> dict[str, Any]:
    """Returns the `signatures` of a model, and the size of its serving files in `bytes`.

    A signature has its `name`, `method`, `inputs` and `outputs`; a tensor its `name`, `type` and `shape`,
    where None is an unknown size.
    """
    from components.tfx.model_paths import serving_model_path

    folder = serving_model_path(model)
    return {"signatures": describe_signatures(Path(folder)), "bytes": folder_size(folder)}


def describe_signatures(folder: Path) -> list[dict[str, Any]]:
    """Returns the signatures of a SavedModel, `serving_default` first; empty if it has none."""
    from pipelines.serving.saved_model import read_signatures  # imports TensorFlow

    try:
        signatures = read_signatures(folder)
    except BadInputError:
        return []
    return [
        {
            "name": name,
            "method": signature.method,
            "inputs": _tensors(signature.inputs),
            "outputs": _tensors(signature.outputs),
        }
        for name, signature in signatures.items()
    ]


def folder_size(folder: str) -> int:
    """Returns the size of the files of a folder on this machine, in bytes."""
    return sum(
        os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names
    )


def _tensors(tensors: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "type": tensor.dtype.name,
            "shape": None if tensor.shape is None else list(tensor.shape),
        }
        for name, tensor in list(tensors.items())[:MAX_TENSORS]
    ]
