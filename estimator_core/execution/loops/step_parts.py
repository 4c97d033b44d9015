"""A training step in three parts: the operations before a compiled part, that part, and those after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.loops.step_graph import NEXT_BATCH, StepGraph
from estimator_core.execution.loops.xla_operations import COMPILED, SHAPES, can_be_compiled, fixed_inputs

BEFORE, COMPILED_PART, AFTER = 0, 1, 2
_ANY_BATCH_SIZE = 113  # a prime, unlike the sizes of layers


class StepParts:
    """Divides the operations of a step into three parts.

    No operation of a part needs one of a later part. The compiled part has operations that XLA compiles
    once: their shapes follow from the batch size, and the compilation does not depend on values of the
    batch. Checks, reads of the input, lookups of rows and operations on strings come before or after it.

    `order`: All operations, each after those that it needs; reads of a variable come before writes if the
    graph does not order them.
    `fixed`: Names of operations whose values follow from the shapes; each part may have a copy of them.
    """

    def __init__(self, step_graph: StepGraph, wanted: Sequence[tf.Operation | tf.Tensor]):
        self._step_graph = step_graph
        self._wanted = [target if isinstance(target, tf.Operation) else target.op for target in wanted]
        self.order = _in_order(step_graph.operations)
        self._names = {operation.name for operation in self.order}
        self._shapes = self.infer_shapes(_ANY_BATCH_SIZE)
        self.fixed = self._find_fixed()
        self._compilable = self.fixed | {
            operation.name for operation in self.order if self._is_compilable(operation)
        }
        self.part_of = self._divide()

    @property
    def not_for_xla(self) -> list[tf.Operation]:
        """Operations that XLA can't compile, in order of creation, without those that read the input."""
        return [
            operation
            for operation in self._step_graph.operations
            if operation.name not in self._compilable and operation.type not in NEXT_BATCH
        ]

    @property
    def compiled(self) -> list[tf.Operation]:
        """Operations of the compiled part, each after those that it needs."""
        return [operation for operation in self.order if self.part_of[operation.name] == COMPILED_PART]

    def shape(self, tensor: tf.Tensor) -> tf.TensorShape:
        """Returns the shape of a tensor of the step for an assumed batch size."""
        return self._shapes.get(tensor.name, tensor.shape)

    def infer_shapes(self, batch_size: int) -> dict[str, tf.TensorShape]:
        """Returns the shapes of tensors by name, as far as they follow from the batch size."""
        graph_def = self._step_graph.subgraph_def(self._names, with_outside=True)
        shapes = self._batch_shapes(batch_size)
        while True:
            with tf.Graph().as_default() as graph:
                instead = {name: tf1.placeholder(dtype, shape) for name, (dtype, shape) in shapes.items()}
                tf.graph_util.import_graph_def(graph_def, instead, name="")
            inferred = {
                tensor.name: tensor.shape
                for operation in graph.get_operations()
                for tensor in operation.outputs
            }
            inferred.update({name: shape for name, (_, shape) in shapes.items()})
            # A shape set by `set_shape` is not inferred.
            more = {
                tensor.name: (tensor.dtype, inferred[tensor.name].merge_with(tensor.shape))
                for operation in self.order
                for tensor in operation.outputs
                if _says_more(tensor.shape, inferred[tensor.name])
            }
            if not more:
                return inferred
            shapes |= more

    def _batch_shapes(self, batch_size: int) -> dict[str, tuple[tf.DType, tf.TensorShape]]:
        shapes = {}
        for operation in self.order:
            for tensor in operation.outputs if operation.type in NEXT_BATCH else ():
                shape = tensor.shape
                if shape.rank and shape[0] is None:
                    shape = tf.TensorShape([batch_size]).concatenate(shape[1:])
                if tensor.dtype not in (tf.variant, tf.resource):
                    shapes[tensor.name] = (tensor.dtype, shape)
        return shapes

    def _needed(self, operation: tf.Operation) -> Iterable[tf.Operation]:
        for source in operation.control_inputs:
            if source.name in self._names and not self.checks_shapes(source):
                yield source
        for tensor in operation.inputs:
            if tensor.op.name in self._names:
                yield tensor.op

    def checks_shapes(self, operation: tf.Operation) -> bool:
        """Returns whether it is an `Assert` whose result depends only on the shape of a batch.

        It only matters for batches of another shape, so it is in the compiled part and nothing waits for it.
        """
        return operation.type == "Assert" and operation.inputs[0].op.name in self.fixed

    def _has_shape(self, tensors: Iterable[tf.Tensor]) -> bool:
        return all(self.shape(tensor).is_fully_defined() for tensor in tensors)

    def _find_fixed(self) -> set[str]:
        fixed: set[str] = set()
        for operation in self.order:
            if operation.type == "Const":
                is_fixed = True
            elif operation.type in SHAPES:
                is_fixed = self._has_shape(operation.inputs)
            else:
                is_pure = operation.op_def is not None and not operation.op_def.is_stateful
                is_fixed = is_pure and operation.type in COMPILED and bool(operation.inputs)
                is_fixed = is_fixed and all(tensor.op.name in fixed for tensor in operation.inputs)
            if is_fixed:
                fixed.add(operation.name)
        return fixed

    def _is_compilable(self, operation: tf.Operation) -> bool:
        if operation.type == "Assert":
            return self.checks_shapes(operation)
        values = [
            tensor
            for tensor in operation.inputs
            if tensor.dtype != tf.resource and tensor.op.name not in self.fixed
        ]
        return (
            can_be_compiled(operation, self._step_graph.functions)
            and self._has_shape([*values, *operation.outputs])
            and all(tensor.op.name in self.fixed for tensor in fixed_inputs(operation))
        )

    def _divide(self) -> dict[str, int]:
        position = {operation.name: index for index, operation in enumerate(self.order)}
        ancestors: dict[str, int] = {}  # a bit for each operation that the named one needs
        for operation in self.order:
            bits = 1 << position[operation.name]
            for needed in self._needed(operation):
                bits |= ancestors[needed.name]
            ancestors[operation.name] = bits
        compilable = self._compilable
        for_loss = ancestors[self._wanted[-1].name]
        ancestors_mask = 0
        for operation in self.order:
            if operation.name not in compilable and for_loss >> position[operation.name] & 1:
                ancestors_mask |= ancestors[operation.name]
        part_of: dict[str, int] = {}
        for operation in self.order:
            part = max((part_of[needed.name] for needed in self._needed(operation)), default=BEFORE)
            if operation.name in compilable:
                is_before = ancestors_mask >> position[operation.name] & 1 or operation.name in self.fixed
                part = max(part, BEFORE if is_before else COMPILED_PART)
            elif part == COMPILED_PART:
                part = AFTER
            part_of[operation.name] = part
        return part_of


def _says_more(shape: tf.TensorShape, inferred: tf.TensorShape) -> bool:
    if not inferred.is_compatible_with(shape):
        return False
    if shape.rank is None or inferred.rank is None:
        return shape.rank is not None
    both = zip(shape.as_list(), inferred.as_list(), strict=True)
    return any(size is not None and inferred_size is None for size, inferred_size in both)


def _in_order(operations: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Returns the operations, each after those it needs, with reads as early as possible."""
    names = {operation.name for operation in operations}
    visited: set[str] = set()
    order: list[tf.Operation] = []
    reads_first = sorted(operations, key=lambda each: each.type != "ReadVariableOp")
    for root in reads_first:
        pending = [(root, False)]
        while pending:
            operation, is_done = pending.pop()
            if is_done:
                order.append(operation)
            elif operation.name not in visited:
                visited.add(operation.name)
                pending.append((operation, True))
                sources = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
                pending += [(source, False) for source in sources if source.name in names]
    return order
