"""The recurrent cells with a name: simple_rnn, lstm and gru."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from estimator_core import tf1


class Cell(abc.ABC):
    """The computation of one time step of a recurrent layer.

    `project` depends only on the input, so that a single matrix product serves all time steps; `step` adds
    the contribution of the previous step. An object serves one graph: its constructor creates its
    variables in the current variable scope, named and initialized as in Keras: `kernel` (Glorot uniform),
    `recurrent_kernel` (orthogonal) and `bias` (zeros).

    `num_states`: Number of state tensors `[batch_size, units]` of a step; the first is also the output.
    `kernel`: `[input_size, num_gates * units]`.
    `recurrent_kernel`: `[units, num_gates * units]`.
    `bias`: `[num_gates * units]`.
    """

    name: str
    num_gates: int  # Number of blocks of `units` columns in the kernels
    num_states = 1

    def __init__(self, input_size: int, units: int):
        self.units = units
        columns = self.num_gates * units
        self.kernel = _variable("kernel", [input_size, columns], tf1.initializers.glorot_uniform())
        self.recurrent_kernel = _variable("recurrent_kernel", [units, columns], tf1.initializers.orthogonal())
        self.bias = self._make_bias(columns)

    def _make_bias(self, columns: int) -> tf.Tensor:
        return _variable("bias", [columns], tf1.initializers.zeros())

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the input's contribution to all gates, `[..., num_gates * units]`."""
        return tf.nn.bias_add(tf.tensordot(inputs, self.kernel, axes=1), self.bias)

    @abc.abstractmethod
    def step(self, projected: tf.Tensor, states: list[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the states after a time step."""


class SimpleRNNCell(Cell):
    """h' = tanh(W x + U h + b)."""

    name = "simple_rnn"
    num_gates = 1

    def step(self, projected: tf.Tensor, states: list[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the new output, as a list of one; see `Cell.step`."""
        return [tf.tanh(projected + tf.matmul(states[0], self.recurrent_kernel))]


_MAX_KERNEL_SIZE = 24_576  # kernel values; with more, a loop's matrix products are faster
_MAX_INPUTS_PER_UNIT = 2  # with more, a loop is faster, because it projects all steps together


class LSTMCell(Cell):
    """Long short-term memory, whose forget gate starts with a bias of one.

    The columns of the kernels are the input gate, the forget gate, the candidate, the output gate.

    Source: Hochreiter and Schmidhuber 1997, Long Short-Term Memory.
    """

    name = "lstm"
    num_gates = 4
    num_states = 2

    def _make_bias(self, columns: int) -> tf.Tensor:
        def initial(shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> tf.Tensor:
            del shape, partition_info
            zeros, ones = tf.zeros([self.units], dtype), tf.ones([self.units], dtype)
            return tf.concat([zeros, ones, zeros, zeros], axis=0)

        return _variable("bias", [columns], initial)

    def step(self, projected: tf.Tensor, states: list[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the new output and the new memory; see `Cell.step`."""
        output, memory = states
        gates = projected + tf.matmul(output, self.recurrent_kernel)
        write, forget, candidate, read = tf.split(gates, 4, axis=-1)
        memory = tf.sigmoid(forget) * memory + tf.sigmoid(write) * tf.tanh(candidate)
        return [tf.sigmoid(read) * tf.tanh(memory), memory]

    @classmethod
    def from_parts(cls, kernel: tf.Tensor, recurrent_kernel: tf.Tensor, bias: tf.Tensor) -> LSTMCell:
        """Returns a cell with given values, without variables."""
        cell = cls.__new__(cls)
        cell.units = recurrent_kernel.shape[0]
        cell.kernel, cell.recurrent_kernel, cell.bias = kernel, recurrent_kernel, bias
        return cell

    @property
    def is_small(self) -> bool:
        """True if `all_outputs` is at least about as fast as a loop over `step`."""
        input_size = self.kernel.shape[0]
        if input_size > _MAX_INPUTS_PER_UNIT * self.units or self.units % 2:
            return False  # the operation logs a warning about odd sizes in each step
        return (input_size + self.units) * 4 * self.units <= _MAX_KERNEL_SIZE

    def all_outputs(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns the outputs of all time steps, `[max_length, batch_size, units]`, by one operation.

        They equal those of `step` up to rounding.

        `inputs`: float32 `[batch_size, max_length, input_size]`.
        """
        batch_size = tf.shape(inputs)[0]
        # For an empty batch, TensorFlow leaves the gradient of the kernel uninitialized.
        padding = tf.cast(tf.equal(batch_size, 0), tf.int32)
        inputs = tf.pad(inputs, [[0, padding], [0, 0], [0, 0]])
        kernel = tf.concat([self.kernel, self.recurrent_kernel], axis=0)
        no_peephole = tf.zeros([self.units])
        start = tf.zeros([tf.shape(inputs)[0], self.units])
        # (BlockLSTMV2 has the order of Keras, but TensorFlow computes wrong gradients for it.)
        with tf1.get_default_graph().gradient_override_map({"BlockLSTM": _GRADIENT}):
            outputs = tf.raw_ops.BlockLSTM(
                seq_len_max=tf.shape(inputs, out_type=tf.int64)[1],
                x=tf.transpose(inputs, [1, 0, 2]),
                cs_prev=start,
                h_prev=start,
                w=_other_order(kernel),
                wci=no_peephole,
                wcf=no_peephole,
                wco=no_peephole,
                b=_other_order(self.bias),
                forget_bias=0,  # it is in the bias
                cell_clip=-1,  # none
            )
        return outputs.h[:, :batch_size]


def _other_order(weights: tf.Tensor) -> tf.Tensor:
    """Returns weights `[..., 4 * units]` with the second and third block swapped.

    In BlockLSTM, the candidate precedes the forget gate.
    """
    first, second, third, fourth = tf.split(weights, 4, axis=-1)
    return tf.concat([first, third, second, fourth], axis=-1)


# TensorFlow's gradient of BlockLSTM has no gradient itself, which a gradient penalty needs.
_GRADIENT = "EstimatorCoreBlockLSTM"
_SECOND_GRADIENT = "EstimatorCoreBlockLSTMGrad"


@tf.RegisterGradient(_GRADIENT)
def _gradient(operation: tf.Operation, *gradients: tf.Tensor) -> list[Any]:
    """Returns the gradients of a `BlockLSTM`."""
    names = ("seq_len_max", "x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")
    inputs = dict(zip(names, operation.inputs, strict=True))
    outputs = dict(zip(("i", "cs", "f", "o", "ci", "co", "h"), operation.outputs, strict=True))
    with operation.graph.gradient_override_map({"BlockLSTMGrad": _SECOND_GRADIENT}):
        cell_gradients = tf.raw_ops.BlockLSTMGrad(
            **inputs, **outputs, cs_grad=gradients[1], h_grad=gradients[-1], use_peephole=False
        )
    return [None, *cell_gradients]


@tf.RegisterGradient(_SECOND_GRADIENT)
def _gradient_of_gradient(operation: tf.Operation, *gradients: tf.Tensor) -> list[Any]:
    """Returns the gradients of a `BlockLSTMGrad`, by the gradients of a loop over the steps."""
    # Copies, since the gradients of the outputs may depend on the other inputs.
    upstream = [tf.identity(operation.inputs[index]) for index in (1, 4, 8, -1)]
    x, kernel, bias, of_outputs = upstream
    input_size = x.shape[-1]
    in_order = _other_order(kernel)
    cell = LSTMCell.from_parts(in_order[:input_size], in_order[input_size:], _other_order(bias))
    inputs = tf.transpose(x, [1, 0, 2])
    everything = tf.ones(tf.shape(inputs)[:2], tf.bool)
    outputs = unroll(cell, inputs, everything, return_sequences=True, is_served=True)
    first = tf.gradients(tf.transpose(outputs, [1, 0, 2]), [x, kernel, bias], of_outputs)
    of_first = [gradients[index] for index in (0, 3, 7)]
    second = tf.gradients(first, upstream, of_first)
    results: list[Any] = [None] * len(operation.inputs)
    results[1], results[4], results[8], results[-1] = second
    return results


class GRUCell(Cell):
    """Gated recurrent unit, with the reset gate applied after the matrix product.

    The columns of the kernels are the update gate, the reset gate, the candidate. `bias` has two rows:
    for the input's contribution and for the recurrent one.

    Source: Cho et al. 2014, Learning Phrase Representations using RNN Encoder-Decoder.
    """

    name = "gru"
    num_gates = 3

    def _make_bias(self, columns: int) -> tf.Tensor:
        both = _variable("bias", [2, columns], tf1.initializers.zeros())
        bias, self._recurrent_bias = tf.unstack(both)
        return bias

    def step(self, projected: tf.Tensor, states: list[tf.Tensor]) -> list[tf.Tensor]:
        """Returns the new output, as a list of one; see `Cell.step`."""
        output = states[0]
        recurrent = tf.matmul(output, self.recurrent_kernel) + self._recurrent_bias
        update, reset, candidate = tf.split(projected, 3, axis=-1)
        recurrent_update, recurrent_reset, recurrent_candidate = tf.split(recurrent, 3, axis=-1)
        keep = tf.sigmoid(update + recurrent_update)
        new = tf.tanh(candidate + tf.sigmoid(reset + recurrent_reset) * recurrent_candidate)
        return [keep * output + (1.0 - keep) * new]


CELLS: dict[str, type[Cell]] = {cell.name: cell for cell in (SimpleRNNCell, LSTMCell, GRUCell)}


def _variable(name: str, shape: list[int], initializer: Any) -> tf.Tensor:
    variable = tf1.get_variable(name, shape, tf.float32, initializer=initializer, use_resource=True)
    return tf.convert_to_tensor(variable)


def unroll(
    cell: Cell, inputs: tf.Tensor, mask: tf.Tensor, return_sequences: bool, is_served: bool
) -> tf.Tensor:
    """Returns the cell's outputs over time.

    A padding step changes nothing: its output is that of the previous step, or zeros
    before the first.

    `inputs`: float32 `[batch_size, max_length, input_size]`, of at least one step.
    `mask`: bool `[batch_size, max_length]`, False for padding.
    `return_sequences`: returns all outputs, `[batch_size, max_length, units]`, if true, else the output of
    the last step, `[batch_size, units]`.
    `is_served`: True in the graph of PREDICT, which is exported. In other graphs, a small LSTM is one
    operation for all steps, which assumes a mask of `tf.sequence_mask`. For a small batch, it is three
    times as fast; but neither XLA nor TensorFlow Lite supports it.
    """
    if isinstance(cell, LSTMCell) and cell.is_small and not is_served:
        return _last_valid(cell.all_outputs(inputs), mask, return_sequences)
    num_steps = tf.shape(mask)[1]
    # TensorArrays, since the gradient of a slice would be as large as all steps together.
    projected = tf.TensorArray(tf.float32, num_steps).unstack(tf.transpose(cell.project(inputs), [1, 0, 2]))
    outputs = tf.TensorArray(tf.float32, num_steps if return_sequences else 0)
    states = [tf.zeros([tf.shape(mask)[0], cell.units]) for _ in range(cell.num_states)]

    def body(step: tf.Tensor, states: list[tf.Tensor], outputs: Any) -> tuple[Any, ...]:
        # No transpose: TensorFlow logs an error for one of bool.
        is_valid = mask[:, step, tf.newaxis]
        new = cell.step(projected.read(step), states)
        states = [
            tf.ensure_shape(tf.where(is_valid, after, old), old.shape)
            for after, old in zip(new, states, strict=True)
        ]
        if return_sequences:
            outputs = outputs.write(step, states[0])
        return step + 1, states, outputs

    _, states, outputs = tf.while_loop(
        lambda step, *_: step < num_steps,
        body,
        (tf.constant(0), states, outputs),
        maximum_iterations=num_steps,
    )
    if not return_sequences:
        return states[0]
    return tf.transpose(outputs.stack(), [1, 0, 2])


def _last_valid(outputs: tf.Tensor, mask: tf.Tensor, return_sequences: bool) -> tf.Tensor:
    """Returns the outputs of `unroll`, from the outputs of a cell that ignores the mask."""
    last = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1) - 1
    batch_size, num_steps = tf.unstack(tf.shape(mask))
    rows = tf.range(batch_size)
    if return_sequences:
        last = tf.minimum(tf.range(num_steps), last[:, tf.newaxis])
        rows = tf.broadcast_to(rows[:, tf.newaxis], [batch_size, num_steps])
    # `gather_nd`, since the gradient of `gather` would be sparse, of unknown shape.
    last_outputs = tf.gather_nd(outputs, tf.stack([tf.maximum(last, 0), rows], axis=-1))
    return tf.where((last >= 0)[..., tf.newaxis], last_outputs, tf.zeros_like(last_outputs))
