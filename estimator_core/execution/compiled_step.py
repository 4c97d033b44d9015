"""A copy of a training step, a part of which XLA compiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.jit_messages import NOT_COMPILED, cant_be_compiled
from estimator_core.execution.step_graph import NEXT_BATCH, StepGraph
from estimator_core.execution.step_parts import AFTER, BEFORE, COMPILED_PART, StepParts
from estimator_core.logs import logger


class CompiledStep:
    """Copies a step, of which XLA compiles the part that it can.

    A copy has the operations before that part, one call of it, and the operations after it. It is compiled for
    batches of one size. For any other shape, the operations of the part themselves are run.

    Args:
        step_graph: The operations of the step, of the default graph.
        train_op: The step.
        loss: Its loss.

    Attributes:
        parts: Which operations are compiled.
        batch_sizes: Tensor of the sizes of a batch, `[number of tensors of unknown size]`.
        feeds: What to feed when a copy runs.
    """

    def __init__(self, step_graph: StepGraph, train_op: tf.Operation, loss: tf.Tensor):
        self._step_graph = step_graph
        self._wanted = (train_op, loss)
        self.parts = StepParts(step_graph, self._wanted)
        self._inside = self._names_inside()
        self._inputs, self._outputs = self._ends()
        self._unknown = self._sized_at_run_time()
        self._handles = self._used_handles()
        self._functions = [self._function(jit_compile) for jit_compile in (True, False)]
        self._shapes = tf1.placeholder(tf.int32, [None], "compiled_shapes")
        self.feeds: dict[Any, Any] = {self._shapes: [-1]}
        unknown = [
            tensor
            for each in self.parts.order
            for tensor in each.outputs
            if each.type in NEXT_BATCH and tensor.shape.rank and tensor.shape[0] is None
        ]
        sizes = [tf.shape(each)[0] for each in unknown]
        self.batch_sizes = tf.stack(sizes) if sizes else tf.zeros([0], tf.int32)
        self._trial = _Trial(self._inputs, self._handles, self._functions[0])

    @property
    def operations(self) -> list[tf.Operation]:
        """Those of the step that are compiled."""
        return [each for each in self.parts.compiled if each.name not in self.parts.fixed]

    @property
    def variable_bytes(self) -> int:
        """Bytes of the variables that the compiled part reads or changes; -1 if they are not known."""
        sizes = [_bytes_of(each) for each in self._handles]
        return -1 if None in sizes else sum(size or 0 for size in sizes)

    def compile(self, session: Any, batch_sizes: Sequence[int], *, chooses: bool) -> None:
        """Compiles the part for batches of a size; copies run the compiled part from then on.

        Nothing is read, and no variable of the model changes: variables of the same shapes stand for them.
        A session that has compiled it does so no more.

        Args:
            session: The `tf.compat.v1.Session`.
            batch_sizes: Values of `self.batch_sizes`.
            chooses: Whether what can't be compiled is run as it is; the log says so.

        Raises:
            ValueError: It can't be compiled, and has to be.
        """
        self.feeds[self._shapes] = [-1]
        different = sorted({int(size) for size in batch_sizes})
        try:
            if len(different) > 1:
                raise ValueError(f"the sizes of a batch differ: {different}")
            batch_size = different[0] if different else 1
            found = self.parts.shapes_with(batch_size)
            shapes = [found.get(each.name, each.shape) for each in self._inputs]
            if not all(shape.is_fully_defined() for shape in shapes):
                raise ValueError(f"shapes do not follow from the size of a batch: {shapes}")
            self._trial.run(session, [shape.as_list() for shape in shapes])
        except (tf.errors.OpError, ValueError) as error:
            if not chooses:
                raise cant_be_compiled(str(error)) from error
            logger.info(NOT_COMPILED, error)
            return
        sizes = [size for position in self._unknown for size in shapes[position].as_list()]
        self.feeds[self._shapes] = [*sizes, 0]
        logger.info(
            "XLA has compiled %s of %s operations of a training step%s.",
            len(self.operations),
            len(self.parts.order) - len(self.parts.fixed),
            f", for batches of {batch_size}; others are not compiled" if different else "",
        )

    def copy(self) -> list[Any]:
        """Returns the copies of the step and its loss, made in the default graph: the body of a loop."""
        order = self.parts.order
        outside = [each for each in order if each.name not in self._compiled_names]
        before = [each for each in outside if self.parts.part_of[each.name] == BEFORE]
        after = [each for each in outside if self.parts.part_of[each.name] == AFTER]
        batches = [each for each in order if each.type in NEXT_BATCH]
        copies = self._import(before, {}, batches, None)
        waits_for = {
            needed.name
            for each in order
            if each.name in self._inside
            for needed in each.control_inputs
            if needed.name not in self._inside
        }
        changing = self._step_graph.waiting()
        waits_for |= {each.name for each in before if each.name in changing or _reads(each)}
        waits_for |= {each.name for each in batches}
        names = {each.name for each in before}
        with tf.control_dependencies([copies[name] for name in sorted(waits_for & names)]):
            outputs, call = self._call([copies[each.name] for each in self._inputs])
        copies |= {each.name: copy for each, copy in zip(self._outputs, outputs, strict=True)}
        with tf.control_dependencies([call, *(copies[each.name] for each in before)]):
            gate = tf.constant(0, name="compiled_part_is_done")
        copies |= self._import(after, copies, (), gate)
        train_op, loss = self._wanted
        return [copies.get(train_op.name, call), copies[loss.name]]

    @property
    def _compiled_names(self) -> set[str]:
        part_of = self.parts.part_of
        return {name for name, part in part_of.items() if part == COMPILED_PART}

    def _names_inside(self) -> set[str]:
        """Returns what the compiled part runs: its operations, and copies of the fixed ones that they need."""
        inside = self._compiled_names
        pending = [tensor.op for each in self.parts.compiled for tensor in each.inputs]
        while pending:
            operation = pending.pop()
            if operation.name in self.parts.fixed and operation.name not in inside:
                inside.add(operation.name)
                pending += [tensor.op for tensor in operation.inputs]
        return inside

    def _ends(self) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Returns the tensors that the compiled part takes, but variables, and those that it gives."""
        compiled = self._compiled_names
        inputs: dict[str, tf.Tensor] = {}
        outputs: dict[str, tf.Tensor] = {}
        for each in self.parts.order:
            for tensor in each.inputs:
                if each.name in self._inside and tensor.op.name not in self._inside:
                    if tensor.dtype != tf.resource:
                        inputs[tensor.name] = tensor
                if each.name not in compiled and tensor.op.name in compiled:
                    outputs[tensor.name] = tensor
        loss = self._wanted[1]
        if loss.op.name in compiled:
            outputs[loss.name] = loss
        return list(inputs.values()), list(outputs.values())

    def _sized_at_run_time(self) -> list[int]:
        """Returns the positions of the inputs whose shapes are not known before, those of one type together."""
        positions = [
            position
            for position, each in enumerate(self._inputs)
            if not each.shape.is_fully_defined()
        ]
        return sorted(positions, key=lambda position: self._inputs[position].dtype.name)

    def _used_handles(self) -> list[tf.Tensor]:
        handles = {
            tensor.name: tensor
            for each in self.parts.compiled
            for tensor in each.inputs
            if tensor.dtype == tf.resource
        }
        return list(handles.values())

    def _function(self, jit_compile: bool) -> Any:
        """Returns the compiled part as a function of what it takes and of the variables."""
        operations = [each for each in self.parts.order if each.name in self._inside]
        graph_def = self._step_graph.graph_def_of({each.name for each in operations})
        graph_def = _in_order_of(graph_def, operations)
        if jit_compile:
            graph_def = _without_strings(graph_def)
        specs = [tf.TensorSpec(each.shape, each.dtype) for each in self._inputs]

        def part(*values: tf.Tensor) -> list[tf.Tensor]:
            graph = tf1.get_default_graph()
            taken = {handle.name: graph.capture(handle) for handle in self._handles}
            taken |= {each.name: value for each, value in zip(self._inputs, values, strict=True)}
            names = [each.name for each in self._outputs]
            return tf.graph_util.import_graph_def(
                graph_def, taken, return_elements=names, name="compiled"
            )

        inner = tf.function(part, autograph=False, jit_compile=jit_compile)
        if not jit_compile:
            return inner.get_concrete_function(*specs)

        def call(*values: tf.Tensor) -> Any:
            graph = tf1.get_default_graph()
            for handle in self._handles:
                graph.capture(handle)
            return inner(*values)

        return tf.function(call, autograph=False).get_concrete_function(*specs)

    def _call(self, values: Sequence[tf.Tensor]) -> tuple[Sequence[tf.Tensor], tf.Operation]:
        graph = tf1.get_default_graph()
        compiled, plain = self._functions
        for each in self._functions:
            each.add_to_graph(graph)
        by_type: dict[Any, list[tf.Tensor]] = {}
        for position in self._unknown:
            by_type.setdefault(values[position].dtype, []).append(values[position])
        each_size = [size for group in by_type.values() for size in tf.shape_n(group)]
        sizes = tf.concat([*each_size, [0]], 0)
        is_same = tf.reduce_all(
            tf.raw_ops.Equal(x=sizes, y=self._shapes, incompatible_shape_error=False)
        )
        capture = getattr(graph, "capture", lambda tensor: tensor)
        called = tf.raw_ops.If(
            cond=is_same,
            input=[*values, *map(capture, self._handles)],
            Tout=[each.dtype for each in self._outputs],
            then_branch=compiled,
            else_branch=plain,
        )
        if isinstance(called, tf.Operation):
            return [], called
        for output, original in zip(called, self._outputs, strict=True):
            output.set_shape(original.shape)
        return called, called[0].op

    def _import(
        self,
        operations: Sequence[tf.Operation],
        taken: dict[str, Any],
        batches: Sequence[tf.Operation],
        gate: tf.Tensor | None,
    ) -> dict[str, Any]:
        """Returns copies of operations and their outputs, by name.

        Args:
            operations: Those before the compiled part, or those after it.
            taken: Names of tensors to what stands for them.
            batches: What changes something waits for these.
            gate: What takes the place of operations that are waited for, and are not copied; None for none.
        """
        graph = tf1.get_default_graph()
        names = {each.name for each in operations}
        graph_def = self._step_graph.graph_def_of(names)
        changing = self._step_graph.waiting() if batches else ()
        for node in graph_def.node:
            original = self._step_graph.operation(node.name)
            waits = {f"^{each.name}" for each in batches} if node.name in changing else set()
            waits -= set(node.input)
            node.input.extend(sorted(waits))
            if gate is not None and any(
                each.name not in names and each.name in self.parts.part_of
                for each in original.control_inputs
            ):
                node.input.append("^compiled_part_is_done")
        inputs = {
            tensor.name: tensor
            for each in operations
            for tensor in each.inputs
            if tensor.op.name not in names
        }
        capture = getattr(graph, "capture", lambda tensor: tensor)
        taken = {
            name: taken[name] if name in taken else capture(tensor)
            for name, tensor in inputs.items()
        }
        if gate is not None:
            taken["^compiled_part_is_done"] = gate
            if not any("^compiled_part_is_done" in node.input for node in graph_def.node):
                del taken["^compiled_part_is_done"]
        elements = [*names, *(output.name for each in operations for output in each.outputs)]
        copies = tf.graph_util.import_graph_def(
            graph_def, taken, return_elements=elements, name="step"
        )
        return dict(zip(elements, copies, strict=True))


class _Trial:
    """Runs a function once with zeros, and with variables of its own.

    Args:
        inputs: What it takes, but variables.
        handles: The variables that it changes.
        function: The function, of the inputs and then the variables.
    """

    def __init__(self, inputs: Sequence[tf.Tensor], handles: Sequence[tf.Tensor], function: Any):
        graph = tf1.get_default_graph()
        self._inputs = [tf1.placeholder(each.dtype, each.shape) for each in inputs]
        twins = []
        for handle in handles:
            dtype = tf.as_dtype(handle.op.get_attr("dtype"))
            shape = handle.op.get_attr("shape")
            name = graph.unique_name("compile_trial")
            twins.append(
                (tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=name), dtype, shape)
            )
        self._start = [
            tf.raw_ops.AssignVariableOp(resource=twin, value=tf.zeros(shape, dtype))
            for twin, dtype, shape in twins
        ]
        self._end = [
            tf.raw_ops.DestroyResourceOp(resource=twin, ignore_lookup_error=True)
            for twin, _, _ in twins
        ]
        self._run = tf.raw_ops.StatefulPartitionedCall(
            args=[*self._inputs, *(twin for twin, _, _ in twins)],
            Tout=[each.dtype for each in function.outputs],
            f=function,
        )

    def run(self, session: Any, shapes: Sequence[Sequence[int]]) -> None:
        """Runs it with zeros of these shapes.

        Raises:
            tf.errors.OpError: It can't be run.
        """
        feeds = {
            each: np.zeros(shape, each.dtype.as_numpy_dtype)
            for each, shape in zip(self._inputs, shapes, strict=True)
        }
        try:
            session.run(self._start)
            session.run(self._run, feeds)
        finally:
            session.run(self._end)


def _reads(operation: tf.Operation) -> bool:
    return any(each.dtype == tf.resource for each in operation.inputs)


def _in_order_of(graph_def: Any, operations: Sequence[tf.Operation]) -> Any:
    """Returns the `GraphDef` with its nodes in the order of the operations, which is that of their effects."""
    position = {each.name: index for index, each in enumerate(operations)}
    nodes = sorted(graph_def.node, key=lambda node: position[node.name])
    ordered = tf1.GraphDef()
    ordered.versions.CopyFrom(graph_def.versions)
    ordered.library.CopyFrom(graph_def.library)
    ordered.node.extend(nodes)
    return ordered


def _without_strings(graph_def: Any) -> Any:
    """Returns the `GraphDef` without its texts, and without the checks of shapes that have them."""
    changed = tf1.GraphDef()
    changed.versions.CopyFrom(graph_def.versions)
    changed.library.CopyFrom(graph_def.library)
    for each in graph_def.node:
        if each.op == "Assert":
            waits = [name for name in each.input if name[0] == "^"]
            changed.node.add(name=each.name, op="NoOp", input=waits)
        elif each.op != "Const" or each.attr["dtype"].type != tf.string.as_datatype_enum:
            changed.node.add().CopyFrom(each)
    return changed


def _bytes_of(handle: tf.Tensor) -> int | None:
    shape = tf.TensorShape(handle.op.get_attr("shape"))
    elements = shape.num_elements()
    return None if elements is None else elements * tf.as_dtype(handle.op.get_attr("dtype")).size
