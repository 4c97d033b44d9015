"""model_fn in the graph for serving on a TPU."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.spec.calling import arg_names
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.export_outputs import (
    ClassificationOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
)
from estimator_core.spec.types import ModelFn
from estimator_core.tpu.partitioned_call import partitioned_call
from estimator_core.tpu.tpu_estimator_spec import TPUEstimatorSpec
from estimator_core.tpu.user_functions import call_with_use_tpu, with_arguments

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
        found = {"scores": output.scores, "classes": output.classes}
    elif isinstance(output, RegressionOutput):
        found = {"value": output.value}
    elif isinstance(output, PredictOutput):
        found = output.outputs
    else:
        raise TypeError(
            "The graph for TPUs has signatures of the types ClassificationOutput, RegressionOutput and "
            f"PredictOutput. Received: export_outputs[{name!r}]={output!r}"
        )
    return {key: tensor for key, tensor in found.items() if tensor is not None}


def _with_tensors(output: ExportOutput, tensors: dict[str, tf.Tensor]) -> ExportOutput:
    if isinstance(output, PredictOutput):
        return PredictOutput(tensors)
    return type(output)(**tensors)
