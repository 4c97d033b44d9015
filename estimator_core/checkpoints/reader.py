"""Reading the global step, variables and shapes of a checkpoint."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from estimator_core import tf1
from estimator_core.checkpoints.latest import latest_checkpoint
from estimator_core.checkpoints.whole import open_checkpoint
from estimator_core.run_config import check_path

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def saved_global_step(model_dir: str) -> int:
    """Returns the global step of the newest checkpoint in `model_dir`; 0 when there is none."""
    path = latest_checkpoint(model_dir)
    return 0 if path is None else read_global_step(path)


def read_global_step(checkpoint_path: str) -> int:
    reader = open_checkpoint(checkpoint_path)
    name = tf1.GraphKeys.GLOBAL_STEP
    if reader.has_tensor(_OBJECT_GRAPH):
        name = _keys_by_variable_name(reader.get_tensor(_OBJECT_GRAPH)).get(name, name)
    if not reader.has_tensor(name):
        raise ValueError(f"The checkpoint has no variable {name!r}. Received: {checkpoint_path}")
    return int(reader.get_tensor(name))


def saved_shapes(checkpoint_path: str) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the variables in a checkpoint, by name.

    In an object-based checkpoint, variables have the names that they had when it was written.
    """
    reader = open_checkpoint(checkpoint_path)
    shapes = {name: tuple(shape) for name, shape in reader.get_variable_to_shape_map().items()}
    if reader.has_tensor(_OBJECT_GRAPH):
        keys = _keys_by_variable_name(reader.get_tensor(_OBJECT_GRAPH))
        shapes = {name: shapes[key] for name, key in keys.items() if key in shapes}
    return shapes


def _keys_by_variable_name(object_graph: bytes) -> dict[str, str]:
    """Returns the key of each variable's value in an object-based checkpoint, by variable name."""
    graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(object_graph)
    return {
        attribute.full_name: attribute.checkpoint_key for node in graph.nodes for attribute in node.attributes
    }


def variable_names(model_dir: str) -> list[str]:
    """Returns the names of all variables in the newest checkpoint of `model_dir`."""
    return sorted(open_checkpoint(_newest(model_dir)).get_variable_to_shape_map())


def variable_value(model_dir: str, name: str) -> Any:
    """Returns the value of a variable, or of the variable of a tensor ("w:0"), in the newest checkpoint."""
    reader = open_checkpoint(_newest(model_dir))
    name = name.removesuffix(":0")
    if not reader.has_tensor(name):
        raise ValueError(f"No variable {name!r} in {model_dir}. It has: {variable_names(model_dir)}")
    return reader.get_tensor(name)


def check_shapes(checkpoint_path: str) -> None:
    """Checks that the variables of the default graph have the shapes stored in the checkpoint.

    Restoring alone would not fail: a variable takes the shape of any value it is given.
    """
    try:
        saved = open_checkpoint(checkpoint_path).get_variable_to_shape_map()
    except tf.errors.NotFoundError as error:
        check_path("checkpoint_path", str(checkpoint_path))
        raise ValueError(
            "The path is not a valid checkpoint: give it as in the file `checkpoint`, without "
            f'".index" or ".data-...". Received: checkpoint_path={str(checkpoint_path)!r}'
        ) from error
    differences = [
        f"{name}: {saved[name]} in the checkpoint, {variable.shape.as_list()} in the model"
        for variable in tf1.global_variables()
        if (name := variable.op.name) in saved and not variable.shape.is_compatible_with(saved[name])
    ]
    if differences:
        raise ValueError(
            f"The checkpoint {checkpoint_path} has another architecture than the model: use the "
            "model that wrote it, or another model_dir. Variables that differ in shape: "
            + "; ".join(differences)
        )


def _newest(model_dir: str) -> str:
    path = latest_checkpoint(model_dir)
    if path is None:
        raise ValueError(f"Estimator has not been trained yet: no checkpoint in {model_dir}")
    return path
