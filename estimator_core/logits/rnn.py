"""The logits of a recurrent network over sequence feature columns."""

from __future__ import annotations

import importlib
import numbers
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.feature_columns.input_layer import input_layer
from estimator_core.feature_columns.sequence_input_layer import sequence_input_layer
from estimator_core.keras_in_graph import side_effects
from estimator_core.logits.dnn import dense
from estimator_core.logits.rnn_cells import CELLS, unroll
from estimator_core.spec.mode_keys import ModeKeys

USE_DEFAULT: Any = object()
"""The default `cell_type`, "simple_rnn"."""


class SequenceLogits(NamedTuple):
    """The outputs of a recurrent network for a batch."""

    # `[batch_size, units]`, or with `return_sequences` `[batch_size, max_length, units]`.
    logits: tf.Tensor
    sequence_mask: tf.Tensor  # bool `[batch_size, max_length]`, False after the end of an example


Layer = Callable[[tf.Tensor, tf.Tensor, str], tf.Tensor]
"""(inputs `[batch_size, max_length, size]`, mask, mode) -> outputs."""


def rnn_logit_fn_builder(
    units: int,
    sequence_feature_columns: Any,
    context_feature_columns: Any = None,
    rnn_units: int | Iterable[int] | None = None,
    cell_type: Any = USE_DEFAULT,
    rnn_cell_fn: Callable[[], Any] | None = None,
    return_sequences: bool = False,
) -> Callable[[Mapping[str, Any], str], SequenceLogits]:
    """Returns `logit_fn(features, mode)`, which builds the network and returns `SequenceLogits`.

    The variables are `rnn_model/rnn/<cell>/kernel`, `.../recurrent_kernel`, `.../bias` (with several
    layers `rnn_model/rnn/stacked_rnn_cells/<cell>/...`), `rnn_model/logits/kernel`, `.../bias`, and
    for embeddings `sequence_features/<column>/embedding_weights` and
    `dense_features/<column>/embedding_weights`.

    `context_feature_columns`: dense columns, whose values are appended to each time step. None has none.
    `cell_type`: "simple_rnn" (the default), "lstm", "gru", or a class of Keras cells, called with `units`.
    `rnn_cell_fn`: function that returns a cell, or a list of cells, of Keras 3 or tf_keras, instead of
    `rnn_units` and `cell_type`; it is called for each graph.
    `return_sequences`: returns logits of each time step if true, else of the last one.

    Source: the models of `tf.estimator.experimental.RNNEstimator`.
    """
    recurrent_layers = _recurrent_layers(rnn_units, cell_type, rnn_cell_fn, return_sequences)

    def logit_fn(features: Mapping[str, Any], mode: str) -> SequenceLogits:
        inputs, lengths = sequence_input_layer(features, sequence_feature_columns)
        tf1.summary.histogram("rnn_model/sequence_input_layer/sequence_length", lengths)
        if context_feature_columns:
            context = input_layer(features, context_feature_columns, scope="dense_features")
            by_step = tf.repeat(context[:, tf.newaxis], tf.shape(inputs)[1], axis=1)
            inputs = tf.concat([inputs, by_step], axis=-1)
        mask = tf.sequence_mask(lengths, maxlen=tf.shape(inputs)[1])
        with tf1.variable_scope("rnn_model"):
            outputs = recurrent_layers(*_with_a_step(inputs, mask), mode)
            with tf1.variable_scope("logits"):
                logits = dense(outputs, units)
        if return_sequences:
            logits = logits[:, : tf.shape(mask)[1]]
        return SequenceLogits(logits, mask)

    return logit_fn


def _with_a_step(inputs: tf.Tensor, mask: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns inputs and mask, with one step of padding if all sequences of the batch are empty.

    A loop without iterations has no outputs to stack.
    """
    padding = tf.cast(tf.equal(tf.shape(mask)[1], 0), tf.int32)
    return (tf.pad(inputs, [[0, 0], [0, padding], [0, 0]]), tf.pad(mask, [[0, 0], [0, padding]]))


def _recurrent_layers(
    rnn_units: Any, cell_type: Any, rnn_cell_fn: Callable[[], Any] | None, return_sequences: bool
) -> Layer:
    """Returns the function that builds the recurrent layers in the current graph."""
    if rnn_cell_fn is not None:
        if rnn_units or cell_type is not USE_DEFAULT:
            raise ValueError(
                "units and cell_type must not be specified when using rnn_cell_fn. "
                f"Received: units={rnn_units!r}, cell_type={cell_type!r}"
            )
        return _keras_layer(rnn_cell_fn, return_sequences)
    is_one_layer = isinstance(rnn_units, numbers.Integral)
    sizes = [rnn_units] if is_one_layer else list(rnn_units or [])
    if not sizes or not all(isinstance(size, numbers.Integral) and int(size) > 0 for size in sizes):
        raise ValueError(
            "units must be the size of a recurrent layer or a list of sizes, each at least 1, or "
            f"rnn_cell_fn must make the cells. Received: units={rnn_units!r}"
        )
    if cell_type is USE_DEFAULT:
        cell_type, is_one_layer = "simple_rnn", False
    if cell_type in CELLS:
        scope = cell_type if is_one_layer else "rnn"
        return _named_layers(cell_type, sizes, scope, return_sequences)
    if not callable(cell_type):
        raise ValueError(
            "`cell_type` should be a class producing a RNN cell, or a string specifying the cell "
            f"type. Supported strings are: {sorted(CELLS)}. Received: cell_type={cell_type!r}"
        )

    def make_cells() -> Any:
        cells = [cell_type(units=size) for size in sizes]
        return cells[0] if len(cells) == 1 else cells

    return _keras_layer(make_cells, return_sequences)


def _named_layers(cell_type: str, sizes: Sequence[int], scope: str, return_sequences: bool) -> Layer:
    """Returns a stack of layers with a cell of `CELLS`."""

    def layers(inputs: tf.Tensor, mask: tf.Tensor, mode: str) -> tf.Tensor:
        is_served = mode == ModeKeys.PREDICT
        for index, size in enumerate(sizes):
            stack = "stacked_rnn_cells/" if len(sizes) > 1 else ""
            number = f"_{index}" if index else ""
            with tf1.variable_scope(f"{scope}/{stack}{cell_type}_cell{number}"):
                cell = CELLS[cell_type](inputs.shape[-1], size)
            is_last = index == len(sizes) - 1
            inputs = unroll(cell, inputs, mask, return_sequences or not is_last, is_served)
        return inputs

    return layers


def _keras_layer(make_cell: Callable[[], Any], return_sequences: bool) -> Layer:
    """Returns a layer for Keras cells, of the Keras of the cell or list of cells."""

    def layer(inputs: tf.Tensor, mask: tf.Tensor, mode: str) -> tf.Tensor:
        with side_effects.collected_side_effects(inputs):  # renumbers the names of cells
            cell = make_cell()
            rnn = _rnn_class(cell)(cell, return_sequences=return_sequences)
            return rnn(inputs, mask=mask, training=mode == ModeKeys.TRAIN)

    return layer


def _rnn_class(cell: Any) -> Any:
    """Returns `keras.layers.RNN` or `tf_keras.layers.RNN`."""
    cells = cell if isinstance(cell, (list, tuple)) else [cell]
    for cell in cells:
        if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
            raise ValueError(
                "An RNN cell must have a `call` method and a `state_size`, as Keras cells do. "
                f"Received: {cell!r}"
            )
    tf_keras: Any = sys.modules.get("tf_keras")  # imported if a cell is one of its
    is_tf_keras = tf_keras is not None and isinstance(cells[0], tf_keras.layers.Layer)
    return (tf_keras if is_tf_keras else importlib.import_module("keras")).layers.RNN
