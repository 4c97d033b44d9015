"""What a report shows of an evaluation beyond TFMA's results: plots, intervals by slice, importances.

It is made by branches of the Evaluator's Beam pipeline, and lies beside TFMA's files.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis.slicer import slicer_lib
from tfx.dsl.io import fileio
from tfx.utils import io_utils

from components.evaluator.extraction import Batch
from components.evaluator.gate import Gate
from components.evaluator.metric_intervals import metric_intervals
from components.evaluator.outcomes import Outcomes, concatenate
from components.evaluator.plot_points import plot_points
from components.evaluator.prediction_sums import PredictionSums, add_by_model
from components.evaluator.slices import SliceKey, Slices

_FOLDER = "report"
_PLOTS, _SLICES, _IMPORTANCE = "plots", "slices", "importance"

MAX_SLICES = 500
"""Slices whose intervals are kept: those with the most examples."""


@dataclass(frozen=True)
class _Sums:
    """The sums of all models, and the names of the classes."""

    by_model: dict[str, PredictionSums]
    classes: tuple[str, ...] = ()


def write_plots(batches: beam.PCollection, gate: Gate, evaluation_uri: str) -> None:
    """Adds the plots of the models to a pipeline.

    Args:
        batches: `Batch`es of the examples to evaluate on.
        gate: Names the models and the weights.
        evaluation_uri: Where they are written; `load_details` reads them.
    """
    _ = (
        batches
        | "SumForPlots" >> beam.Map(_sums_of, gate)
        | "AddForPlots" >> beam.CombineGlobally(_add)
        | "WritePlots" >> beam.Map(_write_plots, gate, evaluation_uri)
    )


def write_slice_intervals(
    batches: beam.PCollection, slices: Slices, gate: Gate, evaluation_uri: str
) -> None:
    """Adds the intervals of all metrics to a pipeline: of all examples, and of each slice.

    Args:
        batches: As of `write_plots`.
        slices: Which slices there are.
        gate: As of `write_plots`.
        evaluation_uri: As of `write_plots`.
    """
    _ = (
        batches
        | "SliceForIntervals" >> beam.FlatMap(_outcomes_by_slice, slices, gate)
        | "JoinSlices" >> beam.CombinePerKey(concatenate)
        | "Intervals" >> beam.Map(_intervals, gate)
        | "AllIntervals" >> beam.combiners.ToList()
        | "WriteIntervals" >> beam.Map(_write_intervals, gate, evaluation_uri)
    )


def write_importance(found: beam.PCollection, evaluation_uri: str) -> None:
    """Adds the importances of features to a pipeline.

    Args:
        found: What `Importance` yields.
        evaluation_uri: As of `write_plots`.
    """
    _ = found | "WriteImportance" >> beam.Map(_write, evaluation_uri, _IMPORTANCE)


def load_details(evaluation_uri: str) -> dict[str, Any]:
    """Returns what was written into a ModelEvaluation artifact: `plots`, `slices`, `importance`.

    What was not made is left out.
    """
    found = {}
    for name in (_PLOTS, _SLICES, _IMPORTANCE):
        path = _path(evaluation_uri, name)
        if fileio.exists(path):
            found[name] = json.loads(io_utils.read_string_file(path))
    return found


def _sums_of(batch: Batch, gate: Gate) -> _Sums:
    weights = gate.weights(batch)
    kind = gate.problem_type(batch)
    return _Sums(
        {
            name: PredictionSums.of(batch.labels, batch.predictions[name], weights, kind)
            for name in gate.models
        },
        batch.classes,
    )


def _add(parts: Iterable[_Sums]) -> _Sums:
    given = list(parts)
    classes = next((part.classes for part in given if part.classes), ())
    return _Sums(add_by_model(part.by_model for part in given), classes)


def _write_plots(sums: _Sums, gate: Gate, evaluation_uri: str) -> None:
    mine = sums.by_model.get(gate.candidate, PredictionSums())
    values: dict[str, Any] = {
        "problem_type": mine.problem_type,
        "num_examples": mine.num_examples,
        "classes": list(sums.classes[:100]),
        "model": plot_points(mine, sums.classes),
    }
    if gate.baseline and gate.baseline in sums.by_model:
        values["baseline"] = plot_points(sums.by_model[gate.baseline], sums.classes)
    _write(values, evaluation_uri, _PLOTS)


def _outcomes_by_slice(batch: Batch, slices: Slices, gate: Gate) -> Iterable[Any]:
    judged = gate.judge_candidate(batch)
    for key, index in slices.of(batch):
        yield key, judged.take(index)


def _intervals(item: tuple[SliceKey, Outcomes], gate: Gate) -> tuple[str, dict[str, Any]]:
    key, given = item
    name = slicer_lib.stringify_slice_key(key)
    answers = given.answers.get(gate.candidate)
    found: dict[str, Any] = {}
    if given.problem_type is not None and answers is not None and np.isfinite(answers).all():
        confidence = gate.settings.confidence
        found = metric_intervals(given, answers, confidence, all_metrics=True)
    return name, {"num_examples": len(given.labels), "intervals": found}


def _write_intervals(
    found: list[tuple[str, dict[str, Any]]], gate: Gate, evaluation_uri: str
) -> None:
    most = sorted(found, key=lambda item: (-item[1]["num_examples"], item[0]))[:MAX_SLICES]
    _write({"confidence": gate.settings.confidence, "slices": dict(most)}, evaluation_uri, _SLICES)


def _write(values: dict[str, Any], evaluation_uri: str, name: str) -> None:
    io_utils.write_string_file(
        _path(evaluation_uri, name), json.dumps(values, allow_nan=False) + "\n"
    )


def _path(evaluation_uri: str, name: str) -> str:
    return os.path.join(evaluation_uri, _FOLDER, f"{name}.json")
