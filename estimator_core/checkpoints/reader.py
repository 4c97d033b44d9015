"""What the checkpoints of a model_dir hold."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator_core import tf1


def saved_global_step(model_dir: str) -> int:
    """Returns the global step of the newest checkpoint in `model_dir`; 0 when there is none."""
    path = tf.train.latest_checkpoint(model_dir)
    return 0 if path is None else global_step_of(path)


def global_step_of(checkpoint_path: str) -> int:
    """Returns the global step that the checkpoint at `checkpoint_path` holds.

    Raises:
        ValueError: It holds none.
    """
    reader = tf.train.load_checkpoint(checkpoint_path)
    name = tf1.GraphKeys.GLOBAL_STEP
    if not reader.has_tensor(name):
        raise ValueError(f"The checkpoint has no variable {name!r}. Received: {checkpoint_path}")
    return int(reader.get_tensor(name))


def variable_names(model_dir: str) -> list[str]:
    """Returns the names of all variables in the newest checkpoint of `model_dir`.

    Raises:
        ValueError: There is no checkpoint.
    """
    return [name for name, _ in tf.train.list_variables(_newest(model_dir))]


def variable_value(model_dir: str, name: str) -> Any:
    """Returns the value of the variable `name` in the newest checkpoint of `model_dir`.

    Raises:
        ValueError: There is no checkpoint, or no such variable.
    """
    reader = tf.train.load_checkpoint(_newest(model_dir))
    if not reader.has_tensor(name):
        raise ValueError(
            f"No variable {name!r} in {model_dir}. It has: {variable_names(model_dir)}"
        )
    return reader.get_tensor(name)


def _newest(model_dir: str) -> str:
    path = tf.train.latest_checkpoint(model_dir)
    if path is None:
        raise ValueError(f"Estimator has not been trained yet: no checkpoint in {model_dir}")
    return path
