"""Summaries that an Estimator writes for TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from estimator_core import tf1
from estimator_core.logs import logger

INPUT_WAIT = "input_wait_share"


def add_loss_summary(loss: Any) -> None:
    """Adds the scalar "loss" to the training summaries, unless model_fn has done so."""
    present = tf1.get_collection(tf1.GraphKeys.SUMMARIES)
    if not any(tensor.op.name == "loss" for tensor in present):
        tf1.summary.scalar("loss", loss)


def write_evaluation(eval_dir: str, results: Mapping[str, Any], global_step: int) -> None:
    """Writes the results of one evaluation as an event of `eval_dir`, and logs them.

    Scalars become scalar summaries, arrays tensors; byte strings are parsed as serialized `Summary`
    protos. Other values are skipped with a warning.
    """
    line = ", ".join(f"{name} = {value!s}" for name, value in sorted(results.items()))
    logger.info("Saving dict for global step %d: %s", global_step, line)
    proto = tf1.Summary()
    for name, value in results.items():
        if value is None or name == tf1.GraphKeys.GLOBAL_STEP:
            continue
        if isinstance(value, (bytes, str)):
            try:
                summary = tf1.Summary.FromString(value)
            except (DecodeError, TypeError):
                logger.warning("Skipping summary for %s, cannot parse string to Summary.", name)
                continue
            for index, entry in enumerate(summary.value):
                entry.tag = f"{name}/{index}"
            proto.MergeFrom(summary)
        else:
            _add_numbers(proto, name, value)
    _write_event(eval_dir, proto, global_step)


def write_checkpoint_path(eval_dir: str, checkpoint_path: str, global_step: int) -> None:
    """Writes the path of the evaluated checkpoint as the text summary "checkpoint_path"."""
    logger.info("Saving 'checkpoint_path' summary for global step %d: %s", global_step, checkpoint_path)
    metadata = tf1.SummaryMetadata(plugin_data=tf1.SummaryMetadata.PluginData(plugin_name="text"))
    proto = tf1.Summary()
    proto.value.add(
        tag="checkpoint_path",
        metadata=metadata,
        tensor=tf.make_tensor_proto(checkpoint_path, dtype=tf.string),
    )
    _write_event(eval_dir, proto, global_step)


def write_input_wait(model_dir: str, share: float, global_step: int) -> None:
    """Writes the scalar "input_wait_share" of a training.

    `share`: share of the steps' time that they waited for their batches, from 0 to 1.
    """
    proto = tf1.Summary()
    proto.value.add(tag=INPUT_WAIT, simple_value=share)
    _write_event(model_dir, proto, global_step)


def read_evaluations(eval_dir: str, pattern: str = "*.tfevents.*") -> dict[int, dict[str, float]]:
    """Returns the scalars of all evaluations whose events are in `eval_dir`, by global step.

    `eval_dir`: directory of the event files; one that does not exist holds no evaluations.
    """
    evaluations: dict[int, dict[str, float]] = {}
    for path in sorted(tf.io.gfile.glob(os.path.join(eval_dir, pattern))):
        for event in tf1.train.summary_iterator(path):
            scalars = {
                value.tag: value.simple_value
                for value in event.summary.value
                if value.HasField("simple_value")
            }
            if scalars:
                evaluations.setdefault(event.step, {}).update(scalars)
    return dict(sorted(evaluations.items()))


def _write_event(directory: str, proto: Any, global_step: int) -> None:
    with tf.Graph().as_default():  # graph mode's event writers need a default graph
        writer = tf1.summary.FileWriterCache.get(directory)
    writer.add_summary(proto, global_step)
    writer.flush()


def _add_numbers(proto: Any, name: str, value: Any) -> None:
    try:
        if np.ndim(value) == 0:
            entry = {"simple_value": float(value)}
        else:
            entry = {"tensor": tf.make_tensor_proto(value)}
    except (TypeError, ValueError):
        logger.warning("Skipping summary for %s, it is neither scalar nor array: %r", name, value)
        return
    proto.value.add(tag=name, **entry)
