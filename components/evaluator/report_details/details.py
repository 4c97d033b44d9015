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
    by_model: dict[str, PredictionSums]  # Sums for the plots, by model
    classes: tuple[str, ...]
    by_slice: dict[SliceKey, LabelledPredictions]


def write_details(batches: beam.PCollection, slices: Slices, gate: Gate, evaluation_uri: str) -> None:
    """Adds plots, and the intervals of all metrics by slice, to a pipeline.

    All of it is collected in one step: each further grouping in Beam would cost as much as the rest.
    """
    _ = (
        batches
        | "Describe" >> beam.Map(_describe, slices, gate)
        | "AddDescriptions" >> beam.CombineGlobally(_add).without_defaults()
        | "WriteDescription" >> beam.Map(_write_description, gate, evaluation_uri)
    )


def write_importance(importances: beam.PCollection, evaluation_uri: str) -> None:
    _ = importances | "WriteImportance" >> beam.Map(_write, evaluation_uri, _IMPORTANCE)


def load_details(evaluation_uri: str) -> dict[str, Any]:
    """Returns the details in a ModelEvaluation artifact: `plots`, `slices`, `importance`.

    Details that were not made are left out.
    """
    loaded = {}
    for name in (_PLOTS, _SLICES, _IMPORTANCE):
        path = _path(evaluation_uri, name)
        if fileio.exists(path):
            loaded[name] = json.loads(io_utils.read_string_file(path))
    return loaded


def _describe(batch: Batch, slices: Slices, gate: Gate) -> _Part:
    weights, kind = gate.weights(batch), gate.problem_type(batch)
    judged = gate.judge_candidate(batch)
    return _Part(
        {
            name: PredictionSums.from_batch(
                batch.labels, batch.predictions[name], weights, kind, gate.decision_threshold(name)
            )
            for name in gate.models
        },
        batch.classes,
        {key: judged.take(index) for key, index in slices.split(batch)},
    )


def _add(parts: Iterable[_Part]) -> _Part:
    descriptions = list(parts)
    keys = dict.fromkeys(key for part in descriptions for key in part.by_slice)
    return _Part(
        add_by_model(part.by_model for part in descriptions),
        next((part.classes for part in descriptions if part.classes), ()),
        {
            key: concatenate(part.by_slice[key] for part in descriptions if key in part.by_slice)
            for key in keys
        },
    )


def _write_description(whole: _Part, gate: Gate, evaluation_uri: str) -> None:
    _write_plots(whole, gate, evaluation_uri)
    confidence = gate.settings.confidence
    by_slice = [
        (slicer_lib.stringify_slice_key(key), _intervals(labelled, gate))
        for key, labelled in whole.by_slice.items()
    ]
    most = sorted(by_slice, key=lambda item: (-item[1]["num_examples"], item[0]))[:MAX_SLICES]
    _write({"confidence": confidence, "slices": dict(most)}, evaluation_uri, _SLICES)


def _write_plots(whole: _Part, gate: Gate, evaluation_uri: str) -> None:
    mine = whole.by_model.get(gate.candidate, PredictionSums())
    values: dict[str, Any] = {
        "problem_type": mine.problem_type,
        "num_examples": mine.num_examples,
        "classes": list(whole.classes[:100]),
        "model": plot_points(mine, whole.classes, gate.decision_threshold(gate.candidate)),
    }
    if gate.baseline and gate.baseline in whole.by_model:
        threshold = gate.decision_threshold(gate.baseline)
        values["baseline"] = plot_points(whole.by_model[gate.baseline], whole.classes, threshold)
    _write(values, evaluation_uri, _PLOTS)


def _intervals(labelled: LabelledPredictions, gate: Gate) -> dict[str, Any]:
    counting = labelled.counting()
    answers = counting.answers.get(gate.candidate)
    intervals: dict[str, Any] = {}
    if labelled.problem_type is not None and answers is not None and np.isfinite(answers).all():
        intervals = metric_intervals(
            counting,
            answers,
            gate.settings.confidence,
            all_metrics=True,
            threshold=gate.decision_threshold(gate.candidate),
        )
    return {"num_examples": len(labelled.labels), "intervals": intervals}


def _write(values: dict[str, Any], evaluation_uri: str, name: str) -> None:
    io_utils.write_string_file(_path(evaluation_uri, name), json.dumps(values, allow_nan=False) + "\n")


def _path(evaluation_uri: str, name: str) -> str:
    return os.path.join(evaluation_uri, _FOLDER, f"{name}.json")
