"""Reads the signatures of a SavedModel without loading it."""

import os
from typing import Any

_SERVE = "serve"
_LEFT_OUT = ("__saved_model_init_op", "__saved_model_train_op")
MAX_TENSORS = 300
"""Maximal number of inputs, or of outputs, of a signature."""


def describe_model(model: Any) -> dict[str, Any]:
    """Returns the `signatures` of a model, and the size of its serving files in `bytes`.

    A signature has its `name`, `method`, `inputs` and `outputs`; a tensor its `name`, `type` and `shape`,
    where None is an unknown size.
    """
    from components.tfx.model_paths import serving_model_path

    folder = serving_model_path(model)
    return {"signatures": read_signatures(folder), "bytes": folder_size(folder)}


def read_signatures(folder: str) -> list[dict[str, Any]]:
    """Returns the signatures of a SavedModel, `serving_default` first."""
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2
    from tfx.dsl.io import fileio

    proto = saved_model_pb2.SavedModel()
    binary = os.path.join(folder, "saved_model.pb")
    if fileio.exists(binary):
        with fileio.open(binary, "rb") as stream:
            proto.ParseFromString(stream.read())
    else:
        with fileio.open(f"{binary}txt", "r") as text:
            text_format.Parse(text.read(), proto)
    for graph in proto.meta_graphs:
        if _SERVE in graph.meta_info_def.tags:
            names = sorted(
                (name for name in graph.signature_def if name not in _LEFT_OUT),
                key=lambda name: (name != "serving_default", name),
            )
            return [
                {
                    "name": name,
                    "method": graph.signature_def[name].method_name.rpartition("/")[2],
                    "inputs": _tensors(graph.signature_def[name].inputs),
                    "outputs": _tensors(graph.signature_def[name].outputs),
                }
                for name in names
            ]
    return []


def folder_size(folder: str) -> int:
    """Returns the size of the files of a folder on this machine, in bytes."""
    return sum(
        os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(folder) for name in names
    )


def _tensors(tensors: Any) -> list[dict[str, Any]]:
    import tensorflow as tf

    described = []
    for name in sorted(tensors)[:MAX_TENSORS]:
        tensor = tensors[name]
        shape = None
        if not tensor.tensor_shape.unknown_rank:
            shape = [None if dim.size < 0 else int(dim.size) for dim in tensor.tensor_shape.dim]
        described.append({"name": name, "type": tf.as_dtype(tensor.dtype).name, "shape": shape})
    return described
