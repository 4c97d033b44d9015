"""The operations that XLA can compile for a CPU without changing their behavior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

_ELEMENTWISE = """
Abs Acos Acosh Add AddN AddV2 Asin Asinh Atan Atan2 Atanh BiasAdd BiasAddGrad BitwiseAnd BitwiseOr
BitwiseXor Cast Ceil ClipByValue Cos Cosh Digamma Div DivNoNan Elu EluGrad Equal Erf Erfc Exp Expm1 Floor
Greater GreaterEqual Identity IdentityN Inv Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad Less
LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul MulNoNan Neg NotEqual
OnesLike Pow PreventGradient RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad Rint Round
Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Snapshot Softplus
SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad Square SquaredDifference StopGradient Sub Tan Tanh
TanhGrad Xdivy Xlog1py Xlogy ZerosLike
"""
_OF_ARRAYS = """
All Any ArgMax ArgMin AvgPool AvgPoolGrad BatchMatMul BatchMatMulV2 BatchMatMulV3 BroadcastArgs
BroadcastGradientArgs BroadcastTo ConcatOffset ConcatV2 Const Conv2D Conv2DBackpropFilter
Conv2DBackpropInput Cumprod Cumsum DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter
DepthwiseConv2dNativeBackpropInput Diag DiagPart Einsum EnsureShape ExpandDims Fill FusedBatchNorm
FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 FusedBatchNormV3 GatherNd
GatherV2 InvertPermutation L2Loss LinSpace LogSoftmax MatMul MatrixBandPart MatrixDiag MatrixDiagPart
Max MaxPool MaxPoolGrad Mean Min MirrorPad MirrorPadGrad NoOp OneHot Pack Pad PadV2 Prod RandomStandardNormal
RandomUniform Range Rank Reshape ReverseV2 Roll ScatterNd Shape ShapeN Size Slice Softmax
SoftmaxCrossEntropyWithLogits Split SplitV Squeeze StridedSlice StridedSliceGrad Sum Tile Transpose
TruncatedNormal Unpack UnsortedSegmentSum
"""
_OF_VARIABLES = """
AssignAddVariableOp AssignSubVariableOp AssignVariableOp ReadVariableOp ResourceApplyAdaMax
ResourceApplyAdadelta ResourceApplyAdagrad ResourceApplyAdagradV2 ResourceApplyAdam
ResourceApplyAddSign ResourceApplyCenteredRMSProp ResourceApplyFtrl ResourceApplyFtrlV2
ResourceApplyGradientDescent ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign
ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp
"""
_CALLS = ("PartitionedCall", "StatefulPartitionedCall", "StatelessIf", "If")
# With integers, TensorFlow raises an error when a divisor is 0; XLA does not.
_DIVIDES_INTEGERS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")
COMPILED = frozenset((*_ELEMENTWISE.split(), *_OF_ARRAYS.split(), *_OF_VARIABLES.split(), *_DIVIDES_INTEGERS))
SHAPES = ("Rank", "Shape", "ShapeN", "Size")

# Inputs whose values must be known when XLA compiles: it would compile again for each new value.
_FIXED_INPUTS: dict[str, tuple[int, ...]] = {
    "All": (1,),
    "Any": (1,),
    "ArgMax": (1,),
    "ArgMin": (1,),
    "AvgPoolGrad": (0,),
    "BroadcastArgs": (0, 1),
    "BroadcastGradientArgs": (0, 1),
    "BroadcastTo": (1,),
    "ConcatV2": (-1,),
    "Conv2DBackpropFilter": (1,),
    "Conv2DBackpropInput": (0,),
    "Cumprod": (1,),
    "Cumsum": (1,),
    "DepthwiseConv2dNativeBackpropFilter": (1,),
    "DepthwiseConv2dNativeBackpropInput": (0,),
    "ExpandDims": (1,),
    "Fill": (0,),
    "InvertPermutation": (0,),
    "LinSpace": (0, 1, 2),
    "MatrixBandPart": (1, 2),
    "Max": (1,),
    "Mean": (1,),
    "Min": (1,),
    "MirrorPad": (1,),
    "MirrorPadGrad": (1,),
    "OneHot": (1,),
    "Pad": (1,),
    "PadV2": (1,),
    "Prod": (1,),
    "RandomStandardNormal": (0,),
    "RandomUniform": (0,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "ReverseV2": (1,),
    "Roll": (1, 2),
    "Slice": (1, 2),
    "Split": (0,),
    "SplitV": (1, 2),
    "StridedSlice": (1, 2, 3),
    "StridedSliceGrad": (0, 1, 2, 3),
    "Sum": (1,),
    "Tile": (1,),
    "Transpose": (1,),
    "TruncatedNormal": (0,),
    # TensorFlow raises an error for an index out of range. XLA uses another index instead.
    "GatherNd": (1,),
    "GatherV2": (1, 2),
    "ScatterNd": (0, 2),
    "UnsortedSegmentSum": (1, 2),
}
_FIXED_INPUTS.update(dict.fromkeys(_DIVIDES_INTEGERS, (1,)))
_NOT_COMPILED_TYPES = (tf.string, tf.variant, tf.resource)


def can_be_compiled(operation: tf.Operation, functions: Mapping[str, Any]) -> bool:
    """Returns whether XLA compiles the operation, regardless of its inputs' values."""
    if not all(output.dtype.base_dtype not in _NOT_COMPILED_TYPES for output in operation.outputs):
        return False
    for tensor in operation.inputs:
        is_variable = tensor.dtype == tf.resource and tensor.op.type == "VarHandleOp"
        if tensor.dtype in _NOT_COMPILED_TYPES and not is_variable:
            return False
    if operation.type in _CALLS or operation.type in functions:
        # The nodes of a function must be safe for all values of their inputs.
        unsafe = (*_DIVIDES_INTEGERS, "GatherNd", "GatherV2", "ScatterNd", "UnsortedSegmentSum")
        return all(
            node.op in _CALLS or (node.op in COMPILED and node.op not in unsafe)
            for node in _called_nodes(operation.node_def, functions)
        )
    return operation.type in COMPILED


def fixed_inputs(operation: tf.Operation) -> list[tf.Tensor]:
    """Returns the inputs whose values must be known when the operation is compiled."""
    indices = _FIXED_INPUTS.get(operation.type, ())
    if operation.type in _DIVIDES_INTEGERS and not operation.outputs[0].dtype.is_integer:
        indices = ()
    return [operation.inputs[index] for index in indices]


def _called_nodes(node: Any, functions: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the nodes of all functions that a node calls, directly or indirectly."""
    pending = [node]
    seen: set[str] = set()
    while pending:
        called = pending.pop()
        names = [called.op] if called.op in functions else []
        for value in called.attr.values():
            referenced = [value.func] if value.HasField("func") else value.list.func
            names += [function.name for function in referenced if function.name in functions]
        for name in names:
            if name not in seen:
                seen.add(name)
                for inner in functions[name].node_def:
                    if inner.op not in functions:
                        yield inner
                    pending.append(inner)
