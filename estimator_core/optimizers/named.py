"""The optimizers with a name: Adagrad, Adam, Ftrl, RMSProp and SGD, on TensorFlow's kernels.

Updates, defaults and variable names are those of the Keras optimizers that tf.estimator 2.15 chose
for these names, so that its checkpoints continue: `training/<optimizer>/<hyperparameter>`,
`training/<optimizer>/<variable>/<slot>`. Dense updates are one fused kernel; the gradient of an
embedding table updates only the looked-up rows.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.keras_in_graph.faster_updates import are_different

_EPSILON = 1e-7


class NamedOptimizer(tf1.train.Optimizer):
    """Base of the named optimizers: hyperparameter variables, slots and a step count.

    The hyperparameters are variables, so a checkpoint restores them, as in tf.estimator. An object
    serves one graph.

    `iterations`: int64 variable that counts steps, incremented elsewhere; None creates
    `training/<keras_name>/iter` and counts there. It may be set until the first update is built.
    """

    keras_name: str  # First part of the variable names, after "training/"
    # Initial values by name, besides a learning rate of 0.001 and a decay of 0.
    hyperparameters: Mapping[str, float] = {}
    # Initial values of the slots, variables of the shape of the trained one, by name.
    slots: Mapping[str, float] = {}

    def __init__(self, learning_rate: float | None = None, iterations: Any = None):
        super().__init__(use_locking=False, name=self.keras_name)
        values = {"learning_rate": 0.001, "decay": 0.0, **self.hyperparameters}
        if learning_rate is not None:
            values["learning_rate"] = learning_rate
        self._initial_hyperparameters = values
        self.iterations = iterations
        self._own_iterations: Any = None
        self._hyperparameters: dict[str, Any] = {}
        self._values: dict[str, Any] = {}

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        # As in tf.estimator, the slots of a `MultiHead` of two heads are below "training_2".
        scope = tf1.get_default_graph().get_name_scope()
        scope = scope if re.fullmatch(r"training_\d+", scope) else "training"
        with tf1.variable_scope(_free_scope(f"{scope}/{self.get_name()}")):
            if self.iterations is None:
                self._own_iterations = self.iterations = _untrained("iter", 0, tf.int64)
            # In the order of tf.estimator, which on parameter servers determines their placement.
            for name, value in sorted(self._initial_hyperparameters.items()):
                self._hyperparameters[name] = _untrained(name, value, tf.float32)
            for var in var_list:
                for slot, value in self.slots.items():
                    self._get_or_make_slot_with_initializer(
                        var, tf1.initializers.constant(value), var.shape, var.dtype.base_dtype, slot, slot
                    )

    def _prepare(self) -> None:
        self._values = {
            name: tf.convert_to_tensor(variable)
            for name, variable in self._hyperparameters.items()
            if name in self._used_hyperparameters
        }

    # Hyperparameters that the update uses. The others are in checkpoints only, as in 2.15.
    _used_hyperparameters: tuple[str, ...] = ("learning_rate",)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, handle: Any, indices: tf.Tensor
    ) -> Any:
        if are_different(indices):
            return self._resource_apply_sparse(grad, handle, indices)
        return super()._resource_apply_sparse_duplicate_indices(grad, handle, indices)

    def _value(self, name: str, var: Any) -> tf.Tensor:
        return tf.cast(self._values[name], var.dtype.base_dtype)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        if self._own_iterations is not None:
            with tf.control_dependencies(list(update_ops)):
                update_ops = [*update_ops, self._own_iterations.assign_add(1, read_value=False)]
        return tf.group(*update_ops, name=name_scope)


def _free_scope(scope: str) -> str:
    """Returns a variable scope without variables: training/Adam, then training/Adam_1."""
    outer = tf1.get_variable_scope().name
    prefix = f"{outer}/" if outer else ""
    names = [variable.op.name for variable in tf1.global_variables()]
    candidates = itertools.chain([scope], (f"{scope}_{i}" for i in itertools.count(1)))
    return next(
        candidate
        for candidate in candidates
        if not any(name.startswith(f"{prefix}{candidate}/") for name in names)
    )


def _untrained(name: str, value: float, dtype: Any) -> Any:
    return tf1.get_variable(
        name,
        [],
        dtype,
        initializer=tf1.initializers.constant(value),
        trainable=False,
        use_resource=True,
        partitioner=None,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


class Adagrad(NamedOptimizer):
    """Adagrad. Source: Duchi et al. 2011, Adaptive Subgradient Methods."""

    keras_name = "Adagrad"
    slots = {"accumulator": 0.1}

    def _kernel_arguments(self, handle: Any) -> dict[str, Any]:
        return {
            "var": handle.handle,
            "accum": self.get_slot(handle, "accumulator").handle,
            "lr": self._value("learning_rate", handle),
            "epsilon": tf.constant(_EPSILON, handle.dtype.base_dtype),
        }

    def _resource_apply_dense(self, grad: tf.Tensor, handle: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdagradV2(grad=grad, **self._kernel_arguments(handle))

    def _resource_apply_sparse(self, grad: tf.Tensor, handle: Any, indices: tf.Tensor) -> Any:
        return tf.raw_ops.ResourceSparseApplyAdagradV2(
            grad=grad, indices=indices, **self._kernel_arguments(handle)
        )


class Adam(NamedOptimizer):
    """Adam; a sparse gradient still decays the moments of every row.

    Source: Kingma and Ba 2014, Adam: A Method for Stochastic Optimization.
    """

    keras_name = "Adam"
    hyperparameters = {"beta_1": 0.9, "beta_2": 0.999}
    slots = {"m": 0.0, "v": 0.0}
    _used_hyperparameters = ("learning_rate", "beta_1", "beta_2")

    def _prepare(self) -> None:
        super()._prepare()
        step = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        self._values["beta_1_power"] = tf.pow(self._values["beta_1"], step)
        self._values["beta_2_power"] = tf.pow(self._values["beta_2"], step)

    def _resource_apply_dense(self, grad: tf.Tensor, handle: Any) -> Any:
        return tf.raw_ops.ResourceApplyAdam(
            var=handle.handle,
            m=self.get_slot(handle, "m").handle,
            v=self.get_slot(handle, "v").handle,
            beta1_power=self._value("beta_1_power", handle),
            beta2_power=self._value("beta_2_power", handle),
            lr=self._value("learning_rate", handle),
            beta1=self._value("beta_1", handle),
            beta2=self._value("beta_2", handle),
            epsilon=tf.constant(_EPSILON, handle.dtype.base_dtype),
            grad=grad,
        )

    def _resource_apply_sparse(self, grad: tf.Tensor, handle: Any, indices: tf.Tensor) -> Any:
        beta_1, beta_2 = self._value("beta_1", handle), self._value("beta_2", handle)
        m = _decay_and_scatter(self.get_slot(handle, "m"), beta_1, grad, indices)
        v = _decay_and_scatter(self.get_slot(handle, "v"), beta_2, tf.square(grad), indices)
        bias_correction = tf.sqrt(1 - self._value("beta_2_power", handle)) / (
            1 - self._value("beta_1_power", handle)
        )
        learning_rate = self._value("learning_rate", handle) * bias_correction
        return handle.assign_sub(learning_rate * m / (tf.sqrt(v) + _EPSILON), read_value=False)


class Ftrl(NamedOptimizer):
    """FTRL-proximal without regularization. Source: McMahan et al. 2013, Ad Click Prediction."""

    keras_name = "Ftrl"
    hyperparameters = {
        "learning_rate_power": -0.5,
        "l1_regularization_strength": 0.0,
        "l2_regularization_strength": 0.0,
        "beta": 0.0,
    }
    slots = {"accumulator": 0.1, "linear": 0.0}

    def _kernel_arguments(self, handle: Any) -> dict[str, Any]:
        zero = tf.constant(0.0, handle.dtype.base_dtype)
        return {
            "var": handle.handle,
            "accum": self.get_slot(handle, "accumulator").handle,
            "linear": self.get_slot(handle, "linear").handle,
            "lr": self._value("learning_rate", handle),
            "l1": zero,
            "l2": zero,
            "lr_power": tf.constant(-0.5, handle.dtype.base_dtype),
        }

    def _resource_apply_dense(self, grad: tf.Tensor, handle: Any) -> Any:
        return tf.raw_ops.ResourceApplyFtrl(grad=grad, **self._kernel_arguments(handle))

    def _resource_apply_sparse(self, grad: tf.Tensor, handle: Any, indices: tf.Tensor) -> Any:
        return tf.raw_ops.ResourceSparseApplyFtrl(
            grad=grad, indices=indices, **self._kernel_arguments(handle)
        )


class RMSProp(NamedOptimizer):
    """RMSProp without momentum. Source: Hinton 2012, Neural Networks for Machine Learning, 6e."""

    keras_name = "RMSprop"
    hyperparameters = {"rho": 0.9, "momentum": 0.0}
    slots = {"rms": 0.0}
    _used_hyperparameters = ("learning_rate", "rho")

    def _resource_apply_dense(self, grad: tf.Tensor, handle: Any) -> Any:
        slot = self.get_slot(handle, "rms")
        rho = self._value("rho", handle)
        rms = slot.assign(rho * slot + (1 - rho) * tf.square(grad))
        step = self._value("learning_rate", handle) * grad / (tf.sqrt(rms) + _EPSILON)
        return handle.assign_sub(step, read_value=False)

    def _resource_apply_sparse(self, grad: tf.Tensor, handle: Any, indices: tf.Tensor) -> Any:
        slot = self.get_slot(handle, "rms")
        rms = _decay_and_scatter(slot, self._value("rho", handle), tf.square(grad), indices)
        rows = tf.gather(rms, indices)
        step = self._value("learning_rate", handle) * grad / (tf.sqrt(rows) + _EPSILON)
        return tf.raw_ops.ResourceScatterSub(resource=handle.handle, indices=indices, updates=step)


class SGD(NamedOptimizer):
    """Gradient descent."""

    keras_name = "SGD"
    hyperparameters = {"learning_rate": 0.01, "momentum": 0.0}

    def _resource_apply_dense(self, grad: tf.Tensor, handle: Any) -> Any:
        return tf.raw_ops.ResourceApplyGradientDescent(
            var=handle.handle, alpha=self._value("learning_rate", handle), delta=grad
        )

    def _resource_apply_sparse(self, grad: tf.Tensor, handle: Any, indices: tf.Tensor) -> Any:
        return tf.raw_ops.ResourceScatterSub(
            resource=handle.handle, indices=indices, updates=self._value("learning_rate", handle) * grad
        )


def _decay_and_scatter(slot: Any, decay: tf.Tensor, values: tf.Tensor, indices: tf.Tensor) -> Any:
    """Returns `slot` after slot = decay * slot + (1 - decay) * values at the rows `indices`."""
    decayed = slot.assign(decay * slot, read_value=False)
    with tf.control_dependencies([decayed]):
        added = tf.raw_ops.ResourceScatterAdd(
            resource=slot.handle, indices=indices, updates=(1 - decay) * values
        )
    with tf.control_dependencies([added]):
        return slot.read_value()


NAMED_OPTIMIZERS: dict[str, type[Any]] = {
    "Adagrad": Adagrad,
    "Adam": Adam,
    "Ftrl": Ftrl,
    "RMSProp": RMSProp,
    "SGD": SGD,
}


def optimizer_named(name: str, choices: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if name in choices:
        return choices[name]
    nearest = difflib.get_close_matches(name, choices, n=len(choices), cutoff=0.0)
    raise ValueError(f"Unsupported optimizer name: it must be one of {nearest}. Received: optimizer={name!r}")
