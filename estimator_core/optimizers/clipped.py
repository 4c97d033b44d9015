"""An optimizer that clips gradients by norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1


class ClippedOptimizer(tf1.train.Optimizer):
    """Scales each variable's gradient down to a norm, and applies it by another optimizer.

    The gradient of a replicated model is clipped after it has been summed over the replicas.

    `optimizer`: optimizer that updates the variables; it must not be used otherwise.
    `clipnorm`: maximum L2 norm of the gradient of a variable, above 0.

    Source: `clipnorm` of Keras optimizers.
    """

    def __init__(self, optimizer: Any, clipnorm: float):
        super().__init__(use_locking=False, name=optimizer.get_name())
        self._optimizer = optimizer
        self._clipnorm = clipnorm

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns the slot variable of the other optimizer."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the other optimizer's slots."""
        return self._optimizer.get_slot_names()

    # The methods for subclasses of `tf.compat.v1.train.Optimizer` to override have an underscore. Only they
    # get the summed gradients of single variables, so a wrapper has to call them.

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        self._optimizer._create_slots(var_list)  # noqa: SLF001

    def _prepare(self) -> None:
        self._optimizer._prepare()  # noqa: SLF001

    def _resource_apply_dense(self, grad: tf.Tensor, handle: Any) -> Any:
        clipped = tf.clip_by_norm(grad, self._clipnorm)
        return self._optimizer._resource_apply_dense(clipped, handle)  # noqa: SLF001

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, handle: Any, indices: tf.Tensor
    ) -> Any:
        # As in Keras: before the gradients of repeated rows are summed.
        clipped = tf.clip_by_norm(grad, self._clipnorm)
        return self._optimizer._resource_apply_sparse_duplicate_indices(  # noqa: SLF001
            clipped, handle, indices
        )

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        return self._optimizer._finish(update_ops, name_scope)  # noqa: SLF001
