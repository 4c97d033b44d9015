"""Adam's updates of small variables, by operations that one thread does.

TensorFlow's operation for it, `ResourceApplyAdam`, takes a variable of a few hundred numbers for a large one:
it divides the work among all threads, and waits for them ten times as long as the work takes. The
operations here compute the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1

_TYPE = "ResourceApplyAdam"
_LEAST, _MOST = 65, 4096  # numbers: fewer are done by one thread, and more pay for several


def is_small(shape: tf.TensorShape) -> bool:
    """Returns whether a variable of the shape is updated faster by many operations than by the one."""
    numbers = shape.num_elements()
    return numbers is not None and _LEAST <= numbers <= _MOST


def divides_too_much(operation: tf.Operation) -> bool:
    """Returns whether an operation is Adam's update of a small float32 variable."""
    if operation.type != _TYPE or operation.get_attr("use_nesterov"):
        return False
    handle = operation.inputs[0].op
    return (
        handle.type == "VarHandleOp"
        and handle.get_attr("dtype") == tf.float32
        and is_small(tf.TensorShape(handle.get_attr("shape")))
    )


class SmallAdamUpdates:
    """Puts operations for one thread into a `GraphDef`, in the place of `ResourceApplyAdam`.

    Args:
        graph_def: To which they are added.
    """

    def __init__(self, graph_def: Any):
        self._graph_def = graph_def
        self._known: dict[tuple[str, ...], str] = {}  # what is the same for several variables

    def add(self, update: Any) -> None:
        """Adds what updates a variable.

        Args:
            update: `NodeDef` of a `ResourceApplyAdam`. What waits for it waits for the new operations.

        Source: the formula is that of TensorFlow's operation, which is that of `tf.keras.optimizers.Adam`.
        """
        inputs = [name for name in update.input if name[0] != "^"]
        waits = [name for name in update.input if name[0] == "^"]
        var, m, v, power_1, power_2, rate, beta_1, beta_2, epsilon, gradient = inputs
        new = _Operations(self._graph_def, update, waits, self._known)

        one = new.shared("Const")
        rest_1, rest_2 = new.shared("Sub", one, beta_1), new.shared("Sub", one, beta_2)
        scaled = new.shared("Mul", rate, new.shared("Sqrt", new.shared("Sub", one, power_2)))
        alpha = new.shared("RealDiv", scaled, new.shared("Sub", one, power_1))

        def moved(old: str, value: str, rest: str) -> str:
            return new.made("AddV2", old, new.made("Mul", new.made("Sub", value, old), rest))

        new_m = moved(new.read(m), gradient, rest_1)
        new_v = moved(new.read(v), new.made("Square", gradient), rest_2)
        scale = new.made("AddV2", new.made("Sqrt", new_v), epsilon)
        step = new.made("RealDiv", new.made("Mul", new_m, alpha), scale)
        new.change("AssignVariableOp", m, new_m)
        new.change("AssignVariableOp", v, new_v)
        new.change("AssignSubVariableOp", var, step)
        new.end()


class _Operations:
    """Adds the operations of one update.

    Args:
        graph_def: To which they are added.
        update: The `NodeDef` that they stand for.
        waits: The control inputs of what reads or changes a variable.
        known: Name of an operation by its type and inputs, for those that updates have in common.
    """

    def __init__(
        self,
        graph_def: Any,
        update: Any,
        waits: Sequence[str],
        known: dict[tuple[str, ...], str],
    ):
        self._graph_def = graph_def
        self._update = update
        self._waits = list(waits)
        self._known = known
        self._count = 0
        self._changes: list[str] = []

    def made(self, kind: str, *inputs: str) -> str:
        """Adds arithmetic; returns its name."""
        return self._node(kind, inputs, T=_FLOAT).name

    def shared(self, kind: str, *inputs: str) -> str:
        """Returns the name of arithmetic with scalars, which is added once; "Const" is a 1."""
        key = (kind, *inputs)
        if key not in self._known:
            attributes = {"dtype": _FLOAT, "value": _ONE} if kind == "Const" else {"T": _FLOAT}
            self._known[key] = self._node(kind, inputs, **attributes).name
        return self._known[key]

    def read(self, variable: str) -> str:
        """Adds what reads a variable; returns its name."""
        return self._node("ReadVariableOp", [variable, *self._waits], dtype=_FLOAT).name

    def change(self, kind: str, variable: str, value: str) -> None:
        """Adds what changes a variable."""
        node = self._node(kind, [variable, value, *self._waits], dtype=_FLOAT)
        self._changes.append(f"^{node.name}")

    def end(self) -> None:
        """Adds what has the name of the update."""
        self._graph_def.node.add(
            name=self._update.name, op="NoOp", input=self._changes, device=self._update.device
        )

    def _node(self, kind: str, inputs: Sequence[str], **attributes: Any) -> Any:
        self._count += 1
        node = self._graph_def.node.add(
            name=f"{self._update.name}/{kind}_{self._count}",
            op=kind,
            input=inputs,
            device=self._update.device,
        )
        for name, value in attributes.items():
            node.attr[name].CopyFrom(value)
        return node


_FLOAT = tf1.AttrValue(type=tf.float32.as_datatype_enum)
_ONE = tf1.AttrValue(tensor=tf.make_tensor_proto(1.0, tf.float32))
