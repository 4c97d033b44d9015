"""The default checks as a part of the Evaluator's Beam pipeline; they are written to their own file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import apache_beam as beam
import numpy as np
from tfx.dsl.io import fileio

from components.evaluator.gate.default_checks import DefaultChecks, run_checks
from components.evaluator.gate.labelled_predictions import (
    LabelledPredictions,
    LabelTally,
    ProblemType,
    Values,
    concatenate,
    head_problem_type,
)
from components.evaluator.gate.slice_columns import Column
from components.evaluator.gate.verdict import Verdict, read_verdict
from components.evaluator.metrics.extraction import Batch
from components.tfx.decision_file import DEFAULT_THRESHOLD

_FILE = "default_checks.json"


@dataclass(frozen=True)
class Gate:
    """Models, weight and settings of the default checks."""

    settings: DefaultChecks
    candidate: str  # Name of the model in a `Batch`
    baseline: str | None = None
    example_weight: str = ""  # Feature that weighs examples; empty without weights
    # Decision thresholds of binary models, by their names; others decide at 0.5.
    decision_thresholds: Mapping[str, float] = field(default_factory=dict)

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models in a `Batch`, the candidate first."""
        return (self.candidate, *(() if self.baseline is None else (self.baseline,)))

    def decision_threshold(self, model: str) -> float:
        """Returns the probability above which a binary model says yes."""
        return self.decision_thresholds.get(model, DEFAULT_THRESHOLD)

    def judge(self, batch: Batch) -> LabelledPredictions:
        """Returns the answers of the models, with the columns that divide the examples."""
        return self._labelled(batch, self.models, batch.columns)

    def judge_candidate(self, batch: Batch) -> LabelledPredictions:
        return self._labelled(batch, (self.candidate,))

    def weights(self, batch: Batch) -> Values:
        """Returns the weights of the examples, 1 without a weight feature: `[batch_size]`."""
        if self.example_weight:
            return batch.example_weights(self.example_weight)
        return np.ones(len(batch.labels))

    def tally(self, batch: Batch) -> LabelTally:
        return LabelTally.from_labels(batch.labels, self.weights(batch), self.problem_type(batch))

    def problem_type(self, batch: Batch) -> ProblemType | None:
        return self.prediction_problem_type(batch.prediction)

    def prediction_problem_type(self, prediction: str) -> ProblemType | None:
        """Returns the problem type of a prediction, such as `logistic`; None if unknown."""
        settings = self.settings
        return settings.problem_type or head_problem_type(prediction) or settings.fallback

    def _labelled(
        self, batch: Batch, names: tuple[str, ...], columns: Mapping[str, Column] | None = None
    ) -> LabelledPredictions:
        weights = self.weights(batch) if self.example_weight else None
        predictions = {name: batch.predictions[name] for name in names}
        return LabelledPredictions.from_batch(
            batch.labels, predictions, weights, self.problem_type(batch), columns
        )


def write_checks(
    batches: beam.PCollection, training_labels: beam.PCollection | None, gate: Gate, evaluation_uri: str
) -> None:
    """Adds the default checks to a pipeline.

    The few numbers of each example (`LabelledPredictions`, 8 bytes each) are collected on one worker. The
    trivial model is based on `training_labels`, `Batch`es of the training examples, or else on `batches`.
    """
    judged = batches | "Judge" >> beam.Map(gate.judge) | beam.CombineGlobally(concatenate)
    tally: Any = LabelTally()
    if training_labels is not None:
        tally = beam.pvalue.AsSingleton(
            training_labels
            | "TallyLabels" >> beam.Map(gate.tally)
            | "AddTallies" >> beam.CombineGlobally(lambda tallies: sum(tallies, LabelTally()))
        )
    _ = judged | "Check" >> beam.Map(_check, tally, gate, evaluation_uri)


def read_checks(evaluation_uri: str) -> Verdict:
    """Returns the results that `write_checks` has written, if any."""
    path = os.path.join(evaluation_uri, _FILE)
    return read_verdict(path) if fileio.exists(path) else Verdict()


def _check(labelled: LabelledPredictions, tally: LabelTally, gate: Gate, evaluation_uri: str) -> None:
    checked = run_checks(labelled, gate.candidate, gate.baseline, tally, gate.settings)
    checked.write(evaluation_uri, _FILE)
