"""TFMA's evaluation example by example, and the default checks on TFMA's extracts."""

from collections.abc import Sequence
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.evaluators import evaluator
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.gate.gate import Gate, write_checks
from components.evaluator.metrics import extraction
from components.evaluator.metrics.extraction import Batch
from components.evaluator.metrics.slices import Slices
from components.evaluator.report_details import details

_MAX_BATCH_SIZE = 4096


def evaluate(
    batches: beam.PCollection,
    config: config_pb2.EvalConfig,
    models: list[tfma.EvalSharedModel],
    example_weight: str,
) -> dict[str, beam.PCollection]:
    """Returns the evaluation by TFMA's own evaluator, which supports all metrics and options."""
    return (
        batches
        | "ToExtracts" >> beam.FlatMap(extraction.to_extracts, example_weight)
        | "ExtractAndEvaluate"
        >> tfma.ExtractAndEvaluate(
            extractors=[tfma.extractors.SliceKeyExtractor(eval_config=config, materialize=False)],
            evaluators=tfma.default_evaluators(eval_config=config, eval_shared_model=models),
        )
    )


def gate_evaluator(
    gate: Gate, slices: Slices, evaluation_uri: str, *, makes_checks: bool
) -> evaluator.Evaluator:
    """Returns an evaluator for the default checks and a report's details, except importances."""

    def check(extracts: beam.PCollection) -> dict[str, beam.PCollection]:
        batches = (
            extracts
            | "BatchExamples" >> beam.BatchElements(max_batch_size=_MAX_BATCH_SIZE)
            | "ToBatch" >> beam.Map(to_batch, gate, slices.features)
        )
        if makes_checks:
            write_checks(batches, None, gate, evaluation_uri)
        details.write_details(batches, slices, gate, evaluation_uri)
        return {}  # the results are in files

    return evaluator.Evaluator(
        stage_name="DefaultChecks",
        run_after=tfma.extractors.SLICE_KEY_EXTRACTOR_STAGE_NAME,
        ptransform=beam.ptransform_fn(check)(),
    )


def to_batch(extracts: Sequence[dict[str, Any]], gate: Gate, features_of_slices: Sequence[str] = ()) -> Batch:
    """Returns TFMA's extracts of several examples as a batch."""
    names = [gate.candidate, *([gate.baseline] if gate.baseline else [])]
    predictions = {
        name: _stack([_model_part(item[tfma.PREDICTIONS_KEY], name) for item in extracts]) for name in names
    }
    labels = [_model_part(item[tfma.LABELS_KEY], gate.candidate) for item in extracts]
    features: dict[str, list[Any]] = {
        name: [_values(item.get(tfma.FEATURES_KEY, {}).get(name)) for item in extracts]
        for name in features_of_slices
    }
    if gate.example_weight:
        features[gate.example_weight] = [
            np.ravel(_model_part(item[tfma.EXAMPLE_WEIGHTS_KEY], gate.candidate)).tolist()
            for item in extracts
        ]
    return Batch(_stack(labels), predictions, features)


def _model_part(value: Any, name: str) -> Any:
    """Returns the part of a model; for several models, TFMA keeps the parts in a dict by name."""
    return value[name] if isinstance(value, dict) and name in value else value


def _values(value: Any) -> list[Any] | None:
    """Returns the values of a feature of an example; None if it has none."""
    values = [] if value is None else np.ravel(np.asarray(value)).tolist()
    return values or None


def _stack(values: Sequence[Any]) -> Any:
    """Returns `[n, ...]`; an array of objects if the values are not arrays of one shape."""
    if any(isinstance(value, dict) for value in values):
        return np.array([None] * len(values))
    arrays = [np.atleast_1d(np.asarray(value)) for value in values]
    if len({array.shape for array in arrays}) > 1:
        return np.array([None] * len(values))
    stacked = np.stack(arrays)
    return stacked[:, 0] if stacked.ndim == 2 and stacked.shape[1] == 1 else stacked
