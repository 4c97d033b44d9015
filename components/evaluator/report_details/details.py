"""Details of an evaluation for a report, beyond TFMA's results: plots, intervals by slice, importances.

Branches of the Evaluator's Beam pipeline write them next to TFMA's files.
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

from components.evaluator.gate.gate import Gate
from components.evaluator.gate.labelled_predictions import LabelledPredictions, concatenate
from components.evaluator.gate.metric_intervals import metric_intervals
from components.evaluator.metrics.extraction import Batch
from components.evaluator.metrics.slices import SliceKey, Slices
from components.evaluator.report_details.plot_points import plot_points
from components.evaluator.report_details.prediction_sums import PredictionSums, add_by_model

_FOLDER = "report"
_PLOTS, _SLICES, _IMPORTANCE = "plots", "slices", "importance"

MAX_SLICES = 500
"""Number of slices whose intervals are kept: those with the most examples."""


@dataclass(frozen=True)
class _Part:
    """Sums, labels and answers of some examples."""

    by_model: dict[str, PredictionSums]  # Sums for the plots, by model
    classes: tuple[str, ...]
    by_slice: dict[SliceKey, LabelledPredictions]


def write_details(
    batches: beam.PCollection, slices: Slices, gate: Gate, evaluation_uri: str
) -> None:
    """Adds plots, and the intervals of all metrics by slice, to a pipeline.

    All of it is collected in one step: each further grouping in Beam would cost as much as the rest.

    `evaluation_uri`: directory for the details; `load_details` reads them.
    """
    _ = (
        batches
        | "Describe" >> beam.Map(_describe, slices, gate)
        | "AddDescriptions" >> beam.CombineGlobally(_add).without_defaults()
        | "WriteDescription" >> beam.Map(_write_description, gate, evaluation_uri)
    )


def write_importance(found: beam.PCollection, evaluation_uri: str) -> None:
    """Adds the importances of features to a pipeline."""
    _ = found | "WriteImportance" >> beam.Map(_write, evaluation_uri, _IMPORTANCE)


def load_details(evaluation_uri: str) -> dict[str, Any]:
    """Returns the details in a ModelEvaluation artifact: `plots`, `slices`, `importance`.

    Details that were not made are left out.
    """
    found = {}
    for name in (_PLOTS, _SLICES, _IMPORTANCE):
        path = _path(evaluation_uri, name)
        if fileio.exists(path):
            found[name] = json.loads(io_utils.read_string_file(path))
    return found


def _describe(batch: Batch, slices: Slices, gate: Gate) -> _Part:
    weights, kind = gate.weights(batch), gate.problem_type(batch)
    judged = gate.judge_candidate(batch)
    return _Part(
        {
            name: PredictionSums.of(batch.labels, batch.predictions[name], weights, kind)
            for name in gate.models
        },
        batch.classes,
        {key: judged.take(index) for key, index in slices.of(batch)},
    )


def _add(parts: Iterable[_Part]) -> _Part:
    given = list(parts)
    keys = dict.fromkeys(key for part in given for key in part.by_slice)
    return _Part(
        add_by_model(part.by_model for part in given),
        next((part.classes for part in given if part.classes), ()),
        {
            key: concatenate(part.by_slice[key] for part in given if key in part.by_slice)
            for key in keys
        },
    )


def _write_description(whole: _Part, gate: Gate, evaluation_uri: str) -> None:
    _write_plots(whole, gate, evaluation_uri)
    confidence = gate.settings.confidence
    found = [
        (slicer_lib.stringify_slice_key(key), _intervals(given, gate.candidate, confidence))
        for key, given in whole.by_slice.items()
    ]
    most = sorted(found, key=lambda item: (-item[1]["num_examples"], item[0]))[:MAX_SLICES]
    _write({"confidence": confidence, "slices": dict(most)}, evaluation_uri, _SLICES)


def _write_plots(whole: _Part, gate: Gate, evaluation_uri: str) -> None:
    mine = whole.by_model.get(gate.candidate, PredictionSums())
    values: dict[str, Any] = {
        "problem_type": mine.problem_type,
        "num_examples": mine.num_examples,
        "classes": list(whole.classes[:100]),
        "model": plot_points(mine, whole.classes),
    }
    if gate.baseline and gate.baseline in whole.by_model:
        values["baseline"] = plot_points(whole.by_model[gate.baseline], whole.classes)
    _write(values, evaluation_uri, _PLOTS)


def _intervals(given: LabelledPredictions, candidate: str, confidence: float) -> dict[str, Any]:
    answers = given.answers.get(candidate)
    found: dict[str, Any] = {}
    if given.problem_type is not None and answers is not None and np.isfinite(answers).all():
        found = metric_intervals(given, answers, confidence, all_metrics=True)
    return {"num_examples": len(given.labels), "intervals": found}


def _write(values: dict[str, Any], evaluation_uri: str, name: str) -> None:
    io_utils.write_string_file(
        _path(evaluation_uri, name), json.dumps(values, allow_nan=False) + "\n"
    )


def _path(evaluation_uri: str, name: str) -> str:
    return os.path.join(evaluation_uri, _FOLDER, f"{name}.json")
