"""Many training steps in one call of a loop compiled by XLA, over batches that were read before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.loops.kept_batches import KeptBatches
from estimator_core.execution.loops.step_graph import NEXT_BATCH, StepGraph
from estimator_core.execution.loops.step_parts import BEFORE, COMPILED_PART, StepParts
from estimator_core.hooks.nan_loss import report_infinite_loss
from estimator_core.logs import logger

_FEWEST_OPERATIONS = 40
_MOST_PRODUCTS = 100_000_000  # for a batch of the assumed size: about 5 ms on one core
# TensorFlow's kernels are faster than XLA's on a CPU, or use more cores.
_HEAVY = ("BatchMatMul", "Conv", "DepthwiseConv", "If", "MaxPool", "PartitionedCall", "Stateful", "While")
NOT_COMPILED = "XLA does not compile training steps, as %s."
_MOST_BATCHES = 50
_MOST_BYTES = 64 << 20
_MOST_OTHER_SHAPES = 10


class CompiledSteps:
    """Makes training steps by a loop that is a single XLA computation.

    A session call reads batches, runs the part of the step that precedes the compiled part on each, and keeps
    the results, from which the loop makes its steps. A batch of another shape than the first is trained on by
    the operations of the graph. Batches read before an error or the end of the input are trained on before
    the error is raised, so no batch is lost.

    `last_loss`: Loss of the last step of `run`; None if it made none.
    """

    def __init__(self, step_graph: StepGraph, train_op: tf.Operation, loss: tf.Tensor):
        self._step_graph = step_graph
        self._train_op, self._loss = train_op, loss
        self.parts = StepParts(step_graph, (train_op, loss))
        self._inside = self._names_inside()
        taken = self._external_inputs(self._inside).values()
        self._inputs = [tensor for tensor in taken if tensor.dtype != tf.resource]
        self._handles = [tensor for tensor in taken if tensor.dtype == tf.resource]
        self._others = 0
        self.last_loss: Any = None

    def why_not(self) -> str | None:
        """Returns the reason why XLA can't run the steps in a loop; None if it can."""
        for operation in self.parts.order:
            if operation.name in self.parts.fixed:
                continue
            name = f"{operation.name!r} ({operation.type})"
            if operation in (self._train_op, self._loss.op) and operation.name not in self._inside:
                return f"{self._first_outside()} cannot be compiled by XLA"
            part = self.parts.part_of[operation.name]
            if part not in (BEFORE, COMPILED_PART):
                return f"{self._first_outside()} cannot be compiled by XLA, and is needed within a step"
            uses_variable = any(tensor.op.type == "VarHandleOp" for tensor in operation.inputs)
            if part == BEFORE and uses_variable:
                return f"{self._first_outside()} cannot be compiled by XLA, and needs a variable"
            if part == BEFORE and operation.type in ("Print", "PrintV2", "Timestamp"):
                return f"{name} would not run at its own step"
        if sum(operation.type in NEXT_BATCH for operation in self.parts.order) != 1:
            return "a step does not read one iterator"
        if self._loss.shape.rank != 0:
            return f"the loss is not a scalar: {self._loss.shape}"
        if not self._handles or not self._inputs:
            return "the compiled part would have no variables, or no input"
        return None

    @property
    def operations(self) -> list[tf.Operation]:
        return [operation for operation in self.parts.compiled if operation.name not in self.parts.fixed]

    def add_to_graph(self) -> None:
        self._kept = KeptBatches(self._inputs)
        function = self._loop_function()
        stacks = self._kept.stacks()
        self._made, self._last_loss, _, self._first_infinite = function(self._kept.count(), *stacks)
        graph_def = self._part_graph_def()

        def part(*values: tf.Tensor) -> tf.Tensor:
            return self._one_step(graph_def, values)

        # Not compiled: it trains on a batch of another shape.
        with tf.control_dependencies(None):
            self._other_loss = tf.function(part, autograph=False)(*self._kept.other())
        self._read = self._kept.read_loop(self._copy_before)
        unknown = [
            tensor
            for operation in self.parts.order
            for tensor in operation.outputs
            if operation.type in NEXT_BATCH and tensor.shape.rank and tensor.shape[0] is None
        ]
        sizes = [tf.shape(tensor)[0] for tensor in unknown]
        self._sizes = tf.stack(sizes) if sizes else tf.zeros([0], tf.int32)

    def first_step(self, session: Any, *, chooses: bool) -> tuple[bool, Any]:
        """Makes a step by the operations of the graph, and compiles the loop for batches of the same size.

        `chooses`: True to only log that the loop can't be compiled, and run the steps without it.
        """
        _, loss, sizes = session.run([self._train_op, self._loss, self._sizes])
        try:
            self._compile(session, sorted({int(size) for size in sizes}))
        except (tf.errors.OpError, ValueError) as error:
            if not chooses:
                raise cant_be_compiled(str(error)) from error
            logger.info(NOT_COMPILED, error)
            return False, loss
        return True, loss

    def run(self, session: Any, steps: int) -> Any:
        """Makes steps, stopping after one whose loss is NaN; returns the last loss."""
        self.last_loss = None
        made = 0
        while made < steps and not is_nan(self.last_loss):
            wanted = min(self._most, steps - made)
            try:
                is_other = session.run(self._read, {self._kept.wanted: wanted, **self._feeds})
            except tf.errors.OpError:
                self._train_on_kept(session)
                if is_nan(self.last_loss):
                    break
                raise
            made += self._train_on_kept(session)
            if is_other and not is_nan(self.last_loss):
                self.last_loss = session.run(self._other_loss)
                if np.isinf(self.last_loss).any():
                    report_infinite_loss(session, self._loss)
                made += 1
                self._others += 1
                if not self.is_worthwhile:
                    logger.info(
                        "XLA does not compile training steps from here on, as %s batches had other shapes "
                        "than the first.",
                        self._others,
                    )
        return self.last_loss

    @property
    def is_worthwhile(self) -> bool:
        """True as long as most batches have the shape that the loop is compiled for."""
        return self._others <= _MOST_OTHER_SHAPES

    def _train_on_kept(self, session: Any) -> int:
        made, loss, first_infinite = session.run([self._made, self._last_loss, self._first_infinite])
        if made:
            self.last_loss = loss
        if first_infinite:
            report_infinite_loss(session, self._loss, steps_ago=int(made - first_infinite))
        return int(made)

    def _compile(self, session: Any, batch_sizes: Sequence[int]) -> None:
        if len(batch_sizes) > 1:
            raise ValueError(f"the sizes of a batch differ: {batch_sizes}")
        shapes_by_name = self.parts.infer_shapes(batch_sizes[0] if batch_sizes else 1)
        shapes = [shapes_by_name.get(tensor.name, tensor.shape) for tensor in self._inputs]
        if not all(shape.is_fully_defined() for shape in shapes):
            raise ValueError(f"shapes do not follow from the size of a batch: {shapes}")
        both = zip(self._inputs, shapes, strict=True)
        batch_bytes = sum(tensor.dtype.size * shape.num_elements() for tensor, shape in both)
        self._most = max(1, min(_MOST_BATCHES, _MOST_BYTES // max(1, batch_bytes)))
        self._feeds = self._kept.start(session, [[self._most, *shape.as_list()] for shape in shapes])
        session.run(self._read, {self._kept.wanted: 0, **self._feeds})
        self._train_on_kept(session)  # no batches are kept: this only compiles the loop
        logger.info(
            "XLA has compiled %s of %s operations of a training step%s.",
            len(self.operations),
            len(self.parts.order) - len(self.parts.fixed),
            f", for batches of {batch_sizes[0]}; others are not compiled" if batch_sizes else "",
        )

    def _copy_before(self) -> list[tf.Tensor]:
        """Returns the inputs of the compiled part for the next batch, computed in the default graph."""
        graph = tf1.get_default_graph()
        names = {
            operation.name for operation in self.parts.order if self.parts.part_of[operation.name] == BEFORE
        }
        taken = {name: graph.capture(tensor) for name, tensor in self._external_inputs(names).items()}
        elements = [tensor.name for tensor in self._inputs]
        checks = [
            operation.name
            for operation in self.parts.order
            if operation.name in names and operation.op_def is not None and operation.op_def.is_stateful
        ]
        copies = tf.graph_util.import_graph_def(
            self._step_graph.subgraph_def(names), taken, return_elements=[*elements, *checks], name="before"
        )
        with tf.control_dependencies(copies[len(elements) :]):
            return [tf.identity(copied) for copied in copies[: len(elements)]]

    def _names_inside(self) -> set[str]:
        """Returns the names of the compiled part's operations, and of the fixed operations they need."""
        inside = {operation.name for operation in self.parts.compiled}
        pending = [tensor.op for operation in self.parts.compiled for tensor in operation.inputs]
        while pending:
            operation = pending.pop()
            if operation.name in self.parts.fixed and operation.name not in inside:
                inside.add(operation.name)
                pending += [tensor.op for tensor in operation.inputs]
        return inside

    def _external_inputs(self, names: set[str]) -> dict[str, tf.Tensor]:
        return {
            tensor.name: tensor
            for operation in self.parts.order
            for tensor in operation.inputs
            if operation.name in names and tensor.op.name not in names
        }

    def _first_outside(self) -> str:
        outside = [f"{operation.name!r} ({operation.type})" for operation in self.parts.not_for_xla]
        return outside[0] if outside else "the step"

    def _one_step(self, graph_def: Any, values: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns the loss of a step with these inputs; it is computed after the step's updates."""
        graph = tf1.get_default_graph()
        taken = {handle.name: graph.capture(handle) for handle in self._handles}
        taken |= {tensor.name: value for tensor, value in zip(self._inputs, values, strict=True)}
        step, loss = tf.graph_util.import_graph_def(
            graph_def, taken, return_elements=[self._train_op.name, self._loss.name], name="compiled"
        )
        with tf.control_dependencies([step]):
            return tf.identity(loss)

    def _part_graph_def(self) -> Any:
        operations = [operation for operation in self.parts.order if operation.name in self._inside]
        graph_def = self._step_graph.subgraph_def({operation.name for operation in operations})
        # The order of the nodes decides the order of their effects.
        position: Mapping[str, int] = {operation.name: index for index, operation in enumerate(operations)}
        ordered = tf1.GraphDef()
        ordered.versions.CopyFrom(graph_def.versions)
        ordered.library.CopyFrom(graph_def.library)
        ordered.node.extend(sorted(graph_def.node, key=lambda node: position[node.name]))
        return ordered

    def _loop_function(self) -> Any:
        """Returns the compiled loop: a function of the number of batches and the stacked inputs of all."""
        graph_def = _without_strings(self._part_graph_def())

        def loop(count: tf.Tensor, *stacks: tf.Tensor) -> Any:
            def continues(done: Any, loss: Any, has_nan: Any, first_infinite: Any) -> Any:
                del loss, first_infinite
                return (done < count) & ~has_nan

            def one_step(done: Any, loss: Any, has_nan: Any, first_infinite: Any) -> Any:
                del loss, has_nan
                values = [stack[done] for stack in stacks]
                for value, original in zip(values, self._inputs, strict=True):
                    value.set_shape(original.shape)
                new_loss = self._one_step(graph_def, values)
                with tf.control_dependencies([new_loss]):
                    new_loss.set_shape([])
                    any_infinite = tf.constant(False)
                    if new_loss.dtype.is_floating:
                        any_infinite = tf.reduce_any(tf.math.is_inf(new_loss))
                    # The other batches are read already, so the loop continues after an infinite loss.
                    is_first = tf.equal(first_infinite, 0) & any_infinite
                    first_infinite = tf.where(is_first, done + 1, first_infinite)
                    return done + 1, new_loss, any_nan(new_loss), first_infinite

            start = [tf.constant(0), tf.zeros([], self._loss.dtype), tf.constant(False), tf.constant(0)]
            return tf.while_loop(continues, one_step, start)

        return tf.function(loop, autograph=False, jit_compile=True)


def is_nan(loss: Any) -> bool:
    """Returns whether a fetched loss is NaN; None is not."""
    return loss is not None and bool(np.isnan(loss).any())


def any_nan(loss: tf.Tensor) -> tf.Tensor:
    """Returns a bool scalar tensor: True if a loss tensor has a NaN. An integer loss never has one."""
    return tf.reduce_any(tf.math.is_nan(loss)) if loss.dtype.is_floating else tf.constant(False)


def _without_strings(graph_def: Any) -> Any:
    """Returns the `GraphDef` without string constants, and without the shape checks that use them."""
    changed = tf1.GraphDef()
    changed.versions.CopyFrom(graph_def.versions)
    changed.library.CopyFrom(graph_def.library)
    for node in graph_def.node:
        if node.op == "Assert":
            waits = [name for name in node.input if name[0] == "^"]
            changed.node.add(name=node.name, op="NoOp", input=waits)
        elif node.op != "Const" or node.attr["dtype"].type != tf.string.as_datatype_enum:
            changed.node.add().CopyFrom(node)
    return changed


def cant_be_compiled(reason: str) -> ValueError:
    """Returns the error for steps that must be compiled but can't be."""
    return ValueError(
        f"XLA can't compile the training steps: {reason}. Set RunConfig's jit_compile to 'auto' or False. "
        "Received: jit_compile=True"
    )


def why_not_compiled(step: CompiledSteps, *, chooses: bool) -> str | None:
    """Returns the reason why a step is not compiled; None if it is.

    `chooses`: True to compile only if it is worthwhile. Otherwise, the step only has to be compilable.
    """
    reason = step.why_not()
    if reason or not chooses:
        return reason
    compiled = step.operations
    everything = [operation for operation in step.parts.order if operation.name not in step.parts.fixed]
    if len(compiled) < _FEWEST_OPERATIONS:
        return f"only {len(compiled)} operations of {len(everything)} would be compiled"
    for operation in everything:
        if operation.type.startswith(_HEAVY):
            return f"{operation.name!r} ({operation.type}) may be slower with it"
    products = sum(_products(step, operation) for operation in everything if operation.type == "MatMul")
    if products > _MOST_PRODUCTS:
        return f"they mostly multiply matrices: {products:.1e} scalar multiplications"
    return None


def _products(step: CompiledSteps, operation: tf.Operation) -> int:
    """Returns the number of scalar multiplications of a MatMul; 0 if a shape is unknown."""
    shapes = [step.parts.shape(tensor) for tensor in operation.inputs]
    if not all(shape.is_fully_defined() for shape in shapes):
        return 0
    left, right = (shape.as_list() for shape in shapes)
    rows = left[1] if operation.get_attr("transpose_a") else left[0]
    return rows * math.prod(right) if left and right else 0
