"""The verdict on a model: the blessing, its metrics, the default checks, and a sentence for each failure."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from components.evaluator.gate.check import Check
from components.evaluator.gate.metric_intervals import Interval
from components.evaluator.gate.slice_doubts import SliceExcess

VERDICT_FILE = "verdict.json"

Metrics = dict[str, float | None]
Intervals = Mapping[str, Interval]


@dataclass(frozen=True)
class Verdict:
    """Result of an Evaluator.

    Attributes:
        blessed: True if the model passed, and is not held.
        metrics: Metrics over all examples, by name; None if a metric is not a number.
        failures: Reasons why the model is not blessed, one sentence for each failed threshold or check.
        baseline_metrics: Metrics of the baseline model; empty without one.
        slices: Metrics of each slice, by its name, such as `trip_start_hour:12`.
        baseline_slices: The baseline's metrics of each slice.
        checks: Default checks that were made, including those that passed.
        not_checked: Default checks that were not made, with the reasons.
        intervals: Confidence intervals of the metrics of the default checks; None for an infinite
            end.
        baseline_intervals: Confidence intervals of the baseline's metrics.
        doubts: Reasons to look at the data before the model is pushed, one sentence each.
        held: True if the model passed but is not blessed because of the doubts: a person has to decide.
        excesses: Losses of the model by slice, which the doubts of the next run are based on.
        further_models: Metrics of the model under further ModelSpecs over all examples, by their names.
    """

    blessed: bool = False
    metrics: Metrics = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    baseline_metrics: Metrics = field(default_factory=dict)
    slices: dict[str, Metrics] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    not_checked: tuple[str, ...] = ()
    intervals: Intervals = field(default_factory=dict)
    baseline_intervals: Intervals = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    held: bool = False
    excesses: tuple[SliceExcess, ...] = ()
    further_models: dict[str, Metrics] = field(default_factory=dict)
    baseline_slices: dict[str, Metrics] = field(default_factory=dict)

    def write(self, evaluation_uri: str, name: str = VERDICT_FILE) -> None:
        """Writes the verdict as a file into a ModelEvaluation artifact."""
        from tfx.utils import io_utils  # here, since a plan imports this module and needs no TensorFlow

        io_utils.write_string_file(
            os.path.join(evaluation_uri, name), json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"
        )


def load_verdict(evaluation_uri: str) -> Verdict:
    """Returns the verdict in a ModelEvaluation artifact.

    Raises:
        FileNotFoundError: There is no verdict: another Evaluator wrote the artifact.
    """
    from tfx.dsl.io import fileio

    path = os.path.join(evaluation_uri, VERDICT_FILE)
    if not fileio.exists(path):
        raise FileNotFoundError(f"No verdict in {evaluation_uri}: {path} is missing.")
    return read_verdict(path)


def read_verdict(path: str) -> Verdict:
    from pydantic import TypeAdapter
    from tfx.utils import io_utils

    return TypeAdapter(Verdict).validate_json(io_utils.read_string_file(path))
