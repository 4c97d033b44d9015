"""Adam's updates of small variables, by operations that run on a single thread.

TensorFlow's operation for it, `ResourceApplyAdam`, treats a variable of a few hundred numbers as a large one:
it divides the work among all threads, and waits for them ten times as long as the work takes. The
operations here compute the same, bit for bit, on the processors for which that is tested (x86-64). On other
processors, and if there is a GPU, nothing is replaced.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

import tensorflow as tf

from estimator_core import tf1

_TYPE = "ResourceApplyAdam"
_LEAST, _MOST = 65, 4096  # numbers: fewer run on one thread anyway, more are faster on several


def divides_too_much(operation: tf.Operation) -> bool:
    """Returns whether an operation is Adam's update of a small float32 variable."""
    if operation.type != _TYPE or operation.get_attr("use_nesterov") or not _is_for_here():
        return False
    handle = operation.inputs[0].op
    if handle.type != "VarHandleOp" or handle.get_attr("dtype") != tf.float32:
        return False
    numbers = tf.TensorShape(handle.get_attr("shape")).num_elements()
    return numbers is not None and _LEAST <= numbers <= _MOST


@functools.cache
def _is_for_here() -> bool:
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return is_x86 and not tf.config.list_physical_devices("GPU")


def small_adam_update(update: Any) -> list[Any]:
    """Returns the `NodeDef`s of the single-thread operations that replace a `ResourceApplyAdam`.

    Operations that wait for the update then wait for all of them.

    Source: the formula of TensorFlow's operation, the same as of `tf.keras.optimizers.Adam`.
    """
    var, m, v, power_1, power_2, rate, beta_1, beta_2, epsilon, gradient = (
        name for name in update.input if name[0] != "^"
    )
    new = _Operations(update)
    one_node = new.add("Const", dtype=_FLOAT, value=_ONE)
    scaled = new.made("Mul", rate, new.made("Sqrt", new.made("Sub", one_node, power_2)))
    alpha = new.made("RealDiv", scaled, new.made("Sub", one_node, power_1))

    def moved(old: str, value: str, beta: str) -> str:
        rest = new.made("Sub", one_node, beta)
        return new.made("AddV2", old, new.made("Mul", new.made("Sub", value, old), rest))

    new_m = moved(new.read(m), gradient, beta_1)
    new_v = moved(new.read(v), new.made("Square", gradient), beta_2)
    scale = new.made("AddV2", new.made("Sqrt", new_v), epsilon)
    changes = [
        new.change("AssignVariableOp", m, new_m),
        new.change("AssignVariableOp", v, new_v),
        new.change("AssignSubVariableOp", var, new.made("RealDiv", new.made("Mul", new_m, alpha), scale)),
    ]
    waits = [f"^{name}" for name in changes]
    end = tf1.NodeDef(name=update.name, op="NoOp", input=waits, device=update.device)
    return [*new.nodes, end]


class _Operations:
    """Collects the operations that replace one update."""

    def __init__(self, update: Any):
        self.nodes: list[Any] = []
        self._update = update
        self._waits = [name for name in update.input if name[0] == "^"]

    def made(self, kind: str, *inputs: str) -> str:
        """Adds an arithmetic operation; returns its name."""
        return self.add(kind, *inputs, T=_FLOAT)

    def read(self, variable: str) -> str:
        """Adds a read of a variable; returns its name."""
        return self.add("ReadVariableOp", variable, *self._waits, dtype=_FLOAT)

    def change(self, kind: str, variable: str, value: str) -> str:
        """Adds an assignment to a variable; returns its name."""
        return self.add(kind, variable, value, *self._waits, dtype=_FLOAT)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{self._update.name}/{kind}_{len(self.nodes)}"
        node = tf1.NodeDef(name=name, op=kind, input=inputs, device=self._update.device)
        for attribute, value in attributes.items():
            node.attr[attribute].CopyFrom(value)
        self.nodes.append(node)
        return name


_FLOAT = tf1.AttrValue(type=tf.float32.as_datatype_enum)
_ONE = tf1.AttrValue(tensor=tf.make_tensor_proto(1.0, tf.float32))
