"""model_fn in the graph for serving on a TPU."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.spec.calling import arg_names
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.export_outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from estimator_core.spec.types import ModelFn
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec
from estimator_core.tpu.user_functions import call_with_use_tpu, with_arguments

_NAME = "tpu_subgraph"
TAGS = ("serve", "tpu")


class ExportSavedModelApiVersion(enum.IntEnum):
    """Versions of the graph for TPUs: V1 puts the whole model there; with V2, model_fn puts parts there.

    Source: the enum of 2.15's `tpu_estimator` module. A TPUEstimator takes a member, or 1 or 2.
    """

    V1 = 1
    V2 = 2


_ADVICE = (
    "This error came from the graph for TPUs. To export only the graph for CPUs, make the TPUEstimator with "
    "export_to_tpu=False."
)


def model_fn_for_serving(
    model_fn: Callable[..., TPUEstimatorSpec | EstimatorSpec], api_version: int
) -> ModelFn:
    """Returns the model_fn, in mode PREDICT, of the graph for TPUs.

    Source: `export_saved_model_api_version` of 2.15's TPUEstimator.
    """
    names = arg_names(model_fn)
    has_parts = api_version == ExportSavedModelApiVersion.V2

    def call(features: Any, mode: str, **arguments: Any) -> EstimatorSpec:
        if "mode" in names:
            arguments["mode"] = mode

        def make() -> TPUEstimatorSpec | EstimatorSpec:
            return call_with_use_tpu(model_fn, has_parts, features=features, **arguments)

        try:
            if not has_parts:
                return _on_tpu(make)
            spec = make()
            return spec.with_metric_fn() if isinstance(spec, TPUEstimatorSpec) else spec
        except Exception as error:
            _advise(error)
            raise

    return with_arguments(call, {*names, "mode"})


def _advise(error: Exception) -> None:
    """Adds the remedy to the message of an error."""
    if error.args and str(error) == error.args[0]:
        error.args = (f"{str(error).rstrip('.')}. {_ADVICE}", *error.args[1:])
    elif hasattr(error, "add_note"):  # Python 3.11
        error.add_note(_ADVICE)


def _on_tpu(make: Callable[[], TPUEstimatorSpec | EstimatorSpec]) -> EstimatorSpec:
    made = []

    def computation() -> Sequence[tf.Tensor]:
        made.append(make())
        return tf.nest.flatten(_served(made[0]))

    tensors = partitioned_call(computation)
    spec = made[0]
    predictions, outputs = tf.nest.pack_sequence_as(_served(spec), tensors)
    kinds = spec.export_outputs or {}
    if isinstance(spec, EstimatorSpec):
        scaffold = spec.scaffold
    else:
        scaffold = spec.scaffold_fn() if spec.scaffold_fn else None
    return EstimatorSpec(
        spec.mode,
        predictions,
        export_outputs={name: _with_tensors(kinds[name], outputs[name]) for name in kinds} or None,
        scaffold=scaffold,
    )


def _served(spec: TPUEstimatorSpec | EstimatorSpec) -> tuple[Any, dict[str, Any]]:
    """Returns the predictions and, by name, the tensors of the signatures."""
    return spec.predictions, {
        name: _tensors(name, output) for name, output in (spec.export_outputs or {}).items()
    }


def _tensors(name: str, output: ExportOutput) -> dict[str, tf.Tensor]:
    if isinstance(output, ClassificationOutput):
        tensors = {"scores": output.scores, "classes": output.classes}
    elif isinstance(output, RegressionOutput):
        tensors = {"value": output.value}
    elif isinstance(output, PredictOutput):
        tensors = output.outputs
    else:
        raise TypeError(
            "The graph for TPUs has signatures of the types ClassificationOutput, RegressionOutput and "
            f"PredictOutput. Received: export_outputs[{name!r}]={output!r}"
        )
    return {key: tensor for key, tensor in tensors.items() if tensor is not None}


def _with_tensors(output: ExportOutput, tensors: dict[str, tf.Tensor]) -> ExportOutput:
    if isinstance(output, PredictOutput):
        return PredictOutput(tensors)
    return type(output)(**tensors)


def partitioned_call(computation: Callable[[], Sequence[tf.Tensor]]) -> list[tf.Tensor]:
    """Returns the results of a computation on a TPU, as tensors of the default graph.

    The variables that it makes, and the tensors of the default graph that it reads, stay outside of the
    function and are passed to it. The core that runs it is chosen at each call.
    """
    function_graph = tf.__internal__.FuncGraph(_NAME)
    with function_graph.as_default(), tf.variable_creator_scope(_outside):
        results = tf1.tpu.rewrite(computation, [])
    function_graph.outputs = list(results)
    function = _concrete_function_class().from_func_graph(function_graph, None, {})
    function.add_to_graph(tf1.get_default_graph())
    outputs = tf.raw_ops.TPUPartitionedCall(
        args=function.captured_inputs,
        device_ordinal=tf.raw_ops.TPUOrdinalSelector(),
        Tout=[result.dtype for result in results],
        f=function,
    )
    for output, result in zip(outputs, results, strict=True):
        output.set_shape(result.shape)
    return list(outputs)


def _outside(make: Callable[..., Any], **arguments: Any) -> Any:
    with tf.init_scope():
        return make(**arguments)


@functools.cache
def _concrete_function_class() -> Any:
    """Returns the class. It has no public name; getting it starts TensorFlow's threads: not at import."""
    with tf.init_scope():
        return type(tf.function(lambda: None).get_concrete_function())
