"""The weights of a Keras model in sessions and checkpoints of an Estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.whole import open_checkpoint
from estimator_core.execution.current import current_execution
from estimator_core.keras_in_graph import graph_variables
from estimator_core.keras_models.graph_model import GLOBAL_STEP_ATTRIBUTE, OBJECT_BASED


class ModelWeights:
    """Initial values of a model's variables, and their names in checkpoints."""

    def __init__(self, values: Sequence[Any], checkpoint_format: str):
        self.values = list(values)
        self._is_object_based = checkpoint_format == OBJECT_BASED

    def scaffold(
        self, copy: Any, variables: Sequence[Any], optimizer: Any = None, for_writing: bool = False
    ) -> Any:
        """Returns a scaffold that starts from the values and saves in the format."""

        def init_fn(_: Any, session: Any) -> None:
            for variable, value in zip(variables, self.values, strict=True):
                graph_variables.load_value(variable, value, session)

        return tf1.train.Scaffold(
            saver=self._saver(copy, variables, optimizer, for_writing),
            init_fn=init_fn if self.values else None,
        )

    def _saver(self, copy: Any, variables: Sequence[Any], optimizer: Any, for_writing: bool) -> Any:
        """Returns the saver of object-based checkpoints; None leaves it to the Estimator."""
        if not self._is_object_based:
            return None
        global_step = tf1.train.get_global_step()
        # A saver writes each object at the first path that it finds. Without these short paths,
        # it might find variables through the optimizer, which only training has.
        by_name = dict(zip(_numbered_names(variables), variables, strict=True))
        tracked = {"variables": by_name, GLOBAL_STEP_ATTRIBUTE: global_step}
        if for_writing:
            tracked["model"] = copy
            if optimizer is not None:
                tracked["optimizer"] = optimizer
        elif current_execution().num_models == 1:
            by_key = dict(zip(self.keys(variables), variables, strict=True))
            return tf1.train.Saver({_object_key(GLOBAL_STEP_ATTRIBUTE): global_step, **by_key}, sharded=True)
        # A Scaffold makes a saver of this outside of the replicas, for all of them.
        return tf.train.Checkpoint(**tracked)

    def keys(self, variables: Sequence[Any]) -> list[str]:
        """Returns the names of the variables in a checkpoint.

        An object-based checkpoint does not depend on names that Keras numbers ("dense_3").
        """
        if self._is_object_based:
            return [_object_key(f"variables/{name}") for name in _numbered_names(variables)]
        return [_name(variable) for variable in variables]

    def save(self, copy: Any, variables: Sequence[Any], path: str) -> str:
        """Writes the values as a checkpoint, and returns its path; finalizes the current graph."""
        tf.io.gfile.makedirs(os.path.dirname(path))
        scaffold = self.scaffold(copy, variables, for_writing=True)
        scaffold.finalize()
        with tf1.Session() as session:
            session.run(scaffold.init_op)
            scaffold.init_fn(session)
            return scaffold.saver.save(session, path)

    def read(self, variables: Sequence[Any], checkpoint_path: str) -> list[Any]:
        """Returns the values in a checkpoint, NumPy arrays in the order of the variables."""
        saved = open_checkpoint(checkpoint_path)
        shapes = saved.get_variable_to_shape_map()
        keys = self.keys(variables)
        wrong = [
            key
            for key, variable in zip(keys, variables, strict=True)
            if shapes.get(key) != variable.shape.as_list()
        ]
        if wrong:
            raise ValueError(
                f"The checkpoint {checkpoint_path} is not of this Keras model: it lacks {wrong}, or has them "
                f"in other shapes. It has: {dict(sorted(shapes.items()))}"
            )
        return [saved.get_tensor(key) for key in keys]


def check_is_not_of_layers(checkpoint_path: str) -> None:
    """Checks that tf.estimator 2.15 did not write an object-based checkpoint, layer by layer."""
    keys = open_checkpoint(checkpoint_path).get_variable_to_shape_map()
    has_ours = any(key.startswith("variables/") for key in keys)
    if not has_ours and any(key.startswith("layer_with_weights-") for key in keys):
        raise ValueError(
            "tf.estimator wrote this checkpoint of a Keras model, in a layout that can't be trained further. "
            "Build the model of tf_keras, call tf.train.Checkpoint(root=model).read(path).expect_partial(), "
            f"compile it, and use another model_dir. Received: {checkpoint_path}"
        )


def _object_key(path: str) -> str:
    """Returns the key of a variable in an object-based checkpoint."""
    return f"{path}/.ATTRIBUTES/VARIABLE_VALUE"


def _name(variable: Any) -> str:
    return variable.name.partition(":")[0]


def _numbered_names(variables: Sequence[Any]) -> list[str]:
    names = [_name(variable).rpartition("/")[2] for variable in variables]
    return [f"{number}_{name}" for number, name in enumerate(names)]
