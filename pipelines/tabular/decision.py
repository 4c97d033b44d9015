"""Chooses the decision threshold of a binary classifier on held-out rows, and makes it part of the model."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

import estimator_core
from components.tfx.decision_file import DEFAULT_THRESHOLD
from pipelines.atomic_files import write_uri
from pipelines.config.trainer import Decide, describe_goal
from pipelines.errors import counted
from pipelines.tabular.held_out import HeldOut, with_predictions
from pipelines.tabular.plan import LabelPlan

_SAME = 1e-9  # relative difference of sums of weights that is rounding
_AT_HALF = ("accuracy", "precision", "recall")  # metrics of a head, which decides at 0.5

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """A decision threshold, and what it reaches on the rows on which it was chosen."""

    threshold: float  # The second class is predicted where its probability is above
    positive: str  # Name of that class
    goal: str
    held_out_rows: int = 0
    held_out_positives: int = 0
    recall: float | None = None
    precision: float | None = None  # None where no row is predicted as positive
    problem: str = ""  # Reason why the goal is not met; empty if it is

    def describe(self) -> str:
        text = f"{self.positive!r} is predicted at p > {self.threshold:.4g} ({self.goal})"
        if not self.held_out_rows:
            return text
        rows = counted(self.held_out_rows, "held-out row")
        text += f", chosen on {rows}, {self.held_out_positives} of them {self.positive!r}"
        if self.recall is not None:
            text += f": recall {self.recall:.3g}"
        if self.precision is not None:
            text += f", precision {self.precision:.3g}"
        return f"{text}; {self.problem}" if self.problem else text


@dataclass(frozen=True)
class Cuts:
    """Thresholds in the middle between neighboring scores, and the weights of the rows above them."""

    thresholds: Floats
    true_positives: Floats
    false_positives: Floats
    positives: float  # Weight of the positive rows
    negatives: float

    @classmethod
    def between(cls, scores: Floats, is_positive: npt.NDArray[np.bool_], weights: Floats) -> "Cuts":
        values, ranks = np.unique(np.concatenate([[0.0, 1.0], scores]), return_inverse=True)
        ranks = ranks.reshape(-1)[2:]

        def above(weights: Floats) -> Floats:
            return np.bincount(ranks, weights, minlength=len(values))[::-1].cumsum()[::-1][1:]

        positive, negative = weights * is_positive, weights * ~is_positive
        middles = (values[:-1] + values[1:]) / 2
        return cls(middles, above(positive), above(negative), float(positive.sum()), float(negative.sum()))

    @property
    def recall(self) -> Floats:
        return self.true_positives / self.positives

    @property
    def precision(self) -> Floats:
        """0 where no row is above the threshold."""
        taken = self.true_positives + self.false_positives
        return np.divide(self.true_positives, taken, out=np.zeros_like(taken), where=taken > 0)

    def quality(self, decide: Decide) -> Floats:
        """Returns a number for each threshold, the highest for the best one."""
        missed = self.positives - self.true_positives
        if decide == "f1":
            return 2 * self.true_positives / (self.true_positives + self.false_positives + self.positives)
        if decide == "balanced":
            return self.recall - self.false_positives / self.negatives
        if isinstance(decide, Mapping) and "recall" in decide:
            return np.where(self.recall >= decide["recall"] * (1 - _SAME), self.thresholds, self.recall - 1)
        if isinstance(decide, Mapping) and "precision" in decide:
            is_met = self.precision >= decide["precision"] * (1 - _SAME)
            return np.where(is_met, 1 + self.recall, self.precision)
        costs = decide["cost"] if isinstance(decide, Mapping) else {}
        return -(
            costs.get("false_positive", 1) * self.false_positives + costs.get("false_negative", 1) * missed
        )


def choose_decision(decide: Decide, label: LabelPlan, held_out: HeldOut) -> Decision:
    """Returns the decision that is best on held-out rows; of equally good thresholds, that nearest to 0.5."""
    positive = label.classes[1]
    is_positive = held_out.labels == positive.encode()
    decision = Decision(
        DEFAULT_THRESHOLD, positive, describe_goal(decide), len(is_positive), int(is_positive.sum())
    )
    if is_positive.all() or not is_positive.any():
        return replace(decision, problem="with one class there is nothing to choose from")
    cuts = Cuts.between(held_out.predictions[:, 1], is_positive, held_out.weights)
    quality = cuts.quality(decide)
    best = np.flatnonzero(quality >= quality.max() - _SAME * max(1.0, abs(quality.max())))
    index = best[np.argmin(np.abs(cuts.thresholds[best] - DEFAULT_THRESHOLD))]
    recall, precision = float(cuts.recall[index]), float(cuts.precision[index])
    problem = ""
    for name, reached in (("recall", recall), ("precision", precision)):
        wanted = decide.get(name, 0.0) if isinstance(decide, Mapping) else 0.0
        if reached < wanted * (1 - _SAME):
            problem = f"no threshold reaches a {name} of {wanted:g} there"
    takes_some = cuts.true_positives[index] + cuts.false_positives[index] > 0
    return replace(
        decision,
        threshold=float(cuts.thresholds[index]),
        recall=recall,
        precision=precision if takes_some else None,
        problem=problem,
    )


def write_decision(file: str, decision: Decision) -> None:
    write_uri(file, json.dumps(asdict(decision), indent=1))


def read_decision(file: str) -> Decision:
    with tf.io.gfile.GFile(file) as stream:
        return Decision(**json.load(stream))


def deciding(classifier: Any, threshold: float) -> Any:
    """Returns an Estimator that predicts the second class where its probability is above a threshold."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> estimator_core.EstimatorSpec:
        spec = classifier.model_fn(features, labels, mode, config)
        if mode == estimator_core.ModeKeys.TRAIN:
            return spec
        # In float64, as the Evaluator compares them.
        is_positive = tf.cast(spec.predictions["logistic"], tf.float64) > threshold
        ids = tf.cast(is_positive, tf.int64)
        names = tf.gather(spec.predictions["all_classes"], ids, batch_dims=1)
        predictions = {**spec.predictions, "class_ids": ids, "classes": names}
        metrics = {
            name: metric for name, metric in (spec.eval_metric_ops or {}).items() if name not in _AT_HALF
        }
        return with_predictions(spec, predictions)._replace(eval_metric_ops=metrics or None)

    return estimator_core.Estimator(model_fn, model_dir=classifier.model_dir, config=classifier.config)
