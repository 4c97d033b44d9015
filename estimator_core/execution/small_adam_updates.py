"""Adam's updates of small variables, by operations that one thread does.

TensorFlow's operation for it, `ResourceApplyAdam`, takes a variable of a few hundred numbers for a large one:
it divides the work among all threads, and waits for them ten times as long as the work takes. The
operations here compute the same, bit for bit.
"""

from __future__ import annotations

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


def add_update(graph_def: Any, update: Any) -> None:
    """Adds the operations for one thread to a `GraphDef`, in the place of a `ResourceApplyAdam`.

    What waits for the update waits for all of them.

    Args:
        graph_def: To which they are added.
        update: The `NodeDef` of the update.

    Source: the formula is that of TensorFlow's operation, which is that of `tf.keras.optimizers.Adam`.
    """
    var, m, v, power_1, power_2, rate, beta_1, beta_2, epsilon, gradient = (
        name for name in update.input if name[0] != "^"
    )
    new = _Operations(graph_def, update)
    one = new.add("Const", dtype=_FLOAT, value=_ONE)
    scaled = new.made("Mul", rate, new.made("Sqrt", new.made("Sub", one, power_2)))
    alpha = new.made("RealDiv", scaled, new.made("Sub", one, power_1))

    def moved(old: str, value: str, beta: str) -> str:
        rest = new.made("Sub", one, beta)
        return new.made("AddV2", old, new.made("Mul", new.made("Sub", value, old), rest))

    new_m = moved(new.read(m), gradient, beta_1)
    new_v = moved(new.read(v), new.made("Square", gradient), beta_2)
    scale = new.made("AddV2", new.made("Sqrt", new_v), epsilon)
    changes = [
        new.change("AssignVariableOp", m, new_m),
        new.change("AssignVariableOp", v, new_v),
        new.change(
            "AssignSubVariableOp", var, new.made("RealDiv", new.made("Mul", new_m, alpha), scale)
        ),
    ]
    waits = [f"^{name}" for name in changes]
    graph_def.node.add(name=update.name, op="NoOp", input=waits, device=update.device)


class _Operations:
    """Adds the operations of one update.

    Args:
        graph_def: To which they are added.
        update: The `NodeDef` that they stand for.
    """

    def __init__(self, graph_def: Any, update: Any):
        self._graph_def = graph_def
        self._update = update
        self._waits = [name for name in update.input if name[0] == "^"]
        self._count = 0

    def made(self, kind: str, *inputs: str) -> str:
        """Adds arithmetic; returns its name."""
        return self.add(kind, *inputs, T=_FLOAT)

    def read(self, variable: str) -> str:
        """Adds what reads a variable; returns its name."""
        return self.add("ReadVariableOp", variable, *self._waits, dtype=_FLOAT)

    def change(self, kind: str, variable: str, value: str) -> str:
        """Adds what changes a variable; returns its name."""
        return self.add(kind, variable, value, *self._waits, dtype=_FLOAT)

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds an operation; returns its name."""
        self._count += 1
        node = self._graph_def.node.add(
            name=f"{self._update.name}/{kind}_{self._count}",
            op=kind,
            input=inputs,
            device=self._update.device,
        )
        for name, value in attributes.items():
            node.attr[name].CopyFrom(value)
        return node.name


_FLOAT = tf1.AttrValue(type=tf.float32.as_datatype_enum)
_ONE = tf1.AttrValue(tensor=tf.make_tensor_proto(1.0, tf.float32))
