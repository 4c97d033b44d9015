"""`WarmStartSettings`, and reading an Estimator's `warm_start_from` as such settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1

VocabInfo = tf1.train.VocabInfo


class _Fields(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any
    var_name_to_vocab_info: Mapping[str, Any]
    var_name_to_prev_var_name: Mapping[str, str]


class WarmStartSettings(_Fields):
    """Settings of a warm start: the checkpoint to start from, and the variables that it initializes.

    Args:
        ckpt_to_initialize_from: Checkpoint file, or a directory whose newest checkpoint is used.
        vars_to_warm_start: Regular expression over the names of trainable variables, a list of such
            expressions over all variables, a list of variables, or None for only the variables with a
            vocabulary.
        var_name_to_vocab_info: Variable name to `VocabInfo`, if a vocabulary has changed. None means an
            empty dict.
        var_name_to_prev_var_name: Variable name to its name in the checkpoint, if it has changed. None
            means an empty dict.

    Raises:
        ValueError: `ckpt_to_initialize_from` is empty.

    Source: `tf.estimator.WarmStartSettings`.
    """

    __slots__ = ()

    def __new__(
        cls,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: Mapping[str, Any] | None = None,
        var_name_to_prev_var_name: Mapping[str, str] | None = None,
    ) -> WarmStartSettings:
        """Creates the settings; see the class."""
        if not ckpt_to_initialize_from:
            raise ValueError(
                "ckpt_to_initialize_from must be the path of a checkpoint or its directory. Received: "
                f"ckpt_to_initialize_from={ckpt_to_initialize_from!r}"
            )
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def as_settings(
    warm_start_from: str | bytes | os.PathLike[str] | WarmStartSettings | None,
) -> WarmStartSettings | None:
    """Returns an Estimator's `warm_start_from` as settings.

    `warm_start_from`: `WarmStartSettings`, None, or a path: of a checkpoint, of a directory whose newest
    checkpoint is used, or of a SavedModel whose variables are used. Paths may be bytes, as
    `export_saved_model` returns them.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    if isinstance(warm_start_from, bytes):
        warm_start_from = warm_start_from.decode()
    if not isinstance(warm_start_from, (str, os.PathLike)):
        raise ValueError(
            f"warm_start_from must be a path or WarmStartSettings. Received: {warm_start_from!r}"
        )
    path = os.fspath(warm_start_from)
    if tf.saved_model.contains_saved_model(path):
        path = os.path.join(path, tf.saved_model.VARIABLES_DIRECTORY, tf.saved_model.VARIABLES_FILENAME)
    return WarmStartSettings(ckpt_to_initialize_from=path)
