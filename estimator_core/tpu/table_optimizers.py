"""Updates of an embedding table's rows on a TPU: the formulas of `tf.tpu.experimental.embedding`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1

_Rows = Sequence[tf.Tensor]


@dataclasses.dataclass(frozen=True)
class RowOptimizer:
    """Updates rows of a table by one gradient for each row."""

    # Dict of the slots' names to initial values. A name is the end of the variable's name, after
    # that of the table; the names are those of `tf.compat.v1.train` optimizers.
    slots: Mapping[str, float]
    # Function of (rows, values of the slots, gradients, learning rate), with `[rows, dimension]`
    # each, that returns the new rows and the new values of the slots.
    update: Callable[[tf.Tensor, _Rows, tf.Tensor, tf.Tensor], tuple[tf.Tensor, _Rows]]
    # True if rows that no example looks up are updated as well, by gradients of 0.
    updates_all_rows: bool = False


def row_optimizer(parameters: Any) -> RowOptimizer:
    """Returns the row optimizer for one of `tf.tpu.experimental.embedding`."""
    for kind, make in _OPTIMIZERS.items():
        if isinstance(parameters, kind):
            for setting, supported in _SUPPORTED.items():
                if getattr(parameters, setting, None) not in (None, supported):
                    raise RuntimeError(
                        f"Virtual shards have no {setting} for embedding tables: leave it out of "
                        f"optimization_parameters. Received: {setting}={getattr(parameters, setting)!r}"
                    )
            return make(parameters)
    raise RuntimeError(
        "On virtual shards, optimization_parameters must be one of tf.tpu.experimental.embedding's "
        f"{[kind.__name__ for kind in _OPTIMIZERS]}. Received: {parameters!r}"
    )


def update_rows(
    table: Any, gradient: Any, parameters: Any, learning_rate: Any, clipping_limit: float | None = None
) -> tf.Operation:
    """Returns the op that updates a table by the gradient of all shards.

    `table`: variable, `[vocabulary_size, dimension]`.
    `gradient`: `IndexedSlices` with a row for each lookup, or a `Tensor` in the shape of the table. Several
    gradients of a row are summed first.
    `clipping_limit`: maximum absolute value of the gradient of a row; None does not clip.
    """
    optimizer = row_optimizer(parameters)
    size = table.shape[0]
    with tf.name_scope("update_table"):
        if isinstance(gradient, tf.IndexedSlices):
            ids, lookups = tf.unique(gradient.indices)
            gradients = tf.math.unsorted_segment_sum(gradient.values, lookups, tf.size(ids))
        else:
            ids, gradients = tf.range(size), gradient
        if optimizer.updates_all_rows:
            gradients = tf.math.unsorted_segment_sum(gradients, ids, size)
            ids = tf.range(size)
        gradients = _clipped(gradients, parameters.clip_gradient_min, parameters.clip_gradient_max)
        if clipping_limit is not None:
            gradients = _clipped(gradients, -clipping_limit, clipping_limit)
        slots = [_slot(table, name, value) for name, value in optimizer.slots.items()]
        rate = tf.cast(learning_rate, table.dtype.base_dtype)
        old_slots = [tf.gather(slot, ids) for slot in slots]
        rows, kept = optimizer.update(tf.gather(table, ids), old_slots, gradients, rate)
        rows = _clipped(rows, parameters.clip_weight_min, parameters.clip_weight_max)
        return tf.group(
            tf1.scatter_update(table, ids, rows),
            *(tf1.scatter_update(slot, ids, new) for slot, new in zip(slots, kept, strict=True)),
        )


def _slot(table: Any, name: str, value: float) -> Any:
    return tf1.get_variable(
        f"{table.op.name}/{name}",
        table.shape,
        table.dtype.base_dtype,
        tf1.initializers.constant(value),
        trainable=False,
    )


def _clipped(values: tf.Tensor, lower: float | None, upper: float | None) -> tf.Tensor:
    values = values if lower is None else tf.maximum(values, lower)
    return values if upper is None else tf.minimum(values, upper)


def _sgd(parameters: Any) -> RowOptimizer:
    del parameters
    return RowOptimizer({}, lambda rows, _, gradients, rate: (rows - rate * gradients, []))


def _adagrad(parameters: Any) -> RowOptimizer:
    def update(rows: tf.Tensor, slots: _Rows, gradients: tf.Tensor, rate: tf.Tensor) -> Any:
        total = slots[0] + tf.square(gradients)
        return rows - rate * gradients * tf.math.rsqrt(total), [total]

    return RowOptimizer({"Adagrad": parameters.initial_accumulator_value}, update)


def _adam(parameters: Any) -> RowOptimizer:
    """Returns Adam without bias correction, as on a TPU: a program may add it to its learning rate."""
    beta_1, beta_2, epsilon = parameters.beta_1, parameters.beta_2, parameters.epsilon

    def update(rows: tf.Tensor, slots: _Rows, gradients: tf.Tensor, rate: tf.Tensor) -> Any:
        mean = beta_1 * slots[0] + (1.0 - beta_1) * gradients
        square = beta_2 * slots[1] + (1.0 - beta_2) * tf.square(gradients)
        inside, outside = (epsilon**2, 0.0) if parameters.sum_inside_sqrt else (0.0, epsilon)
        return rows - rate * mean / (tf.sqrt(square + inside) + outside), [mean, square]

    return RowOptimizer({"Adam/m": 0.0, "Adam/v": 0.0}, update, not parameters.lazy_adam)


def _ftrl(parameters: Any) -> RowOptimizer:
    power = -parameters.learning_rate_power
    l1, l2 = parameters.l1_regularization_strength, parameters.l2_regularization_strength

    def update(rows: tf.Tensor, slots: _Rows, gradients: tf.Tensor, rate: tf.Tensor) -> Any:
        total, linear = slots
        new_total = total + tf.square(gradients)
        sigma = (new_total**power - total**power) / rate
        linear = linear + gradients - sigma * rows
        quadratic = (new_total**power + parameters.beta) / rate + 2.0 * l2
        shrunk = tf.sign(linear) * l1 - linear
        return tf.where(tf.abs(linear) > l1, shrunk / quadratic, 0.0), [new_total, linear]

    return RowOptimizer({"Ftrl": parameters.initial_accumulator_value, "Ftrl_1": 0.0}, update)


_OPTIMIZERS: dict[type, Callable[[Any], RowOptimizer]] = {
    tf.tpu.experimental.embedding.SGD: _sgd,
    tf.tpu.experimental.embedding.Adagrad: _adagrad,
    tf.tpu.experimental.embedding.Adam: _adam,
    tf.tpu.experimental.embedding.FTRL: _ftrl,
}
_SUPPORTED = {
    "weight_decay_factor": 0,
    "multiply_linear_by_learning_rate": False,
    "allow_zero_accumulator": False,
    "use_gradient_accumulation": True,  # several gradients of a row are summed
    "slot_variable_creation_fn": None,
}
