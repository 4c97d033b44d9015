"""Trains several models, and selects the best model and its number of steps on held-out rows."""

import dataclasses
import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, get_args

import tensorflow as tf

import estimator_core
from components.trainer.interruptible import train_and_evaluate
from pipelines.tabular.best_checkpoint import BestCheckpoint, BestCheckpointExporter
from pipelines.tabular.plan import ModelName

MODELS: tuple[ModelName, ...] = get_args(ModelName)

_LOGGER = logging.getLogger(__name__)

_SHOWN = ("average_loss", "auc", "accuracy")
_FILE = "model_selection.json"
_FOLDER = "candidates"
_EVALUATIONS_BEFORE_DROPPED = 4


@dataclasses.dataclass(frozen=True)
class Training:
    """An Estimator with the specs of its training, evaluation and export.

    Attributes:
      estimator: The Estimator.
      train_spec: Its `TrainSpec`.
      eval_spec: Its `EvalSpec`.
      best_step: Function that returns the best number of steps after the training; None takes that of the
        checkpoint with the lowest loss.
    """

    estimator: Any
    train_spec: estimator_core.TrainSpec
    eval_spec: estimator_core.EvalSpec
    best_step: Callable[[], int] | None = None


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A model that was trained.

    Attributes:
      model: Name of the model.
      loss: Lowest loss on the held-out rows; NaN if the training failed.
      metrics: Metrics of the checkpoint with that loss.
      step: Global step of that checkpoint; of trees, the step at which they were best.
      seconds: Duration of the training since its last interruption.
      failure: Reason why there is no loss.
      is_dropped: True if the training ended early because the loss would not have become the lowest.
      is_chosen: True if its loss is the lowest of all.
    """

    model: ModelName
    loss: float
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    step: int = 0
    seconds: float = 0.0
    failure: str = ""
    is_dropped: bool = False
    is_chosen: bool = False

    def as_record(self) -> dict[str, Any]:
        """Returns the fields for JSON, where NaN becomes None."""
        return {**dataclasses.asdict(self), "loss": self.loss if math.isfinite(self.loss) else None}

    def describe(self) -> str:
        """Returns the result as text."""
        if self.failure:
            return f"{self.model}: failed, {self.failure}"
        named = (f"{name} {self.metrics[name]:.5g}" for name in _SHOWN if name in self.metrics)
        dropped = "; dropped, as it was too far behind" if self.is_dropped else ""
        return (
            f"{self.model}: {', '.join(named)} at step {self.step} ({self.seconds:.1f} s{dropped})"
        )


def select_model(
    prepare: Callable[..., Training],
    model_dir: str,
    work_dir: str,
    models: tuple[ModelName, ...] = MODELS,
) -> Training:
    """Trains each model, and returns the training of the best one.

    The training of a model ends early when its loss is too high to become the lowest, see `can_win`.

    Trees are trained again on all rows, with the best number of trees: more rows make each of them better.
    For the other models, the best checkpoint is used, which another training might miss.

    An interrupted selection resumes. Its results are in `work_dir`, see `read_candidates`.

    Args:
      prepare: Function of (model, model_dir) that returns a training that exports its best checkpoint. With
        the step of that checkpoint as a third argument, it returns the training from all rows.
      model_dir: Directory of the returned training.
      work_dir: Directory of the models that are compared, as long as they are needed.
      models: Names of the models to compare.

    Raises:
      RuntimeError: No model could be trained.
    """
    found = {candidate.model: candidate for candidate in read_candidates(work_dir)}
    folder = os.path.join(work_dir, _FOLDER)
    if tf.io.gfile.exists(model_dir) and not any(one.is_chosen for one in found.values()):
        _LOGGER.warning("Removing %s: it is from a training that compared no models.", model_dir)
        tf.io.gfile.rmtree(model_dir)
    for model in models:
        if model not in found:
            to_beat = min((_rank(one.loss) for one in found.values()), default=math.inf)
            candidate = _train(model, prepare(model, os.path.join(folder, model)), to_beat)
            found[model] = candidate
            _LOGGER.info("Trained %s", candidate.describe())
            _write(work_dir, found.values())
    best = min(found.values(), key=lambda candidate: _rank(candidate.loss))
    if not math.isfinite(best.loss):
        reasons = "; ".join(f"{one.model}: {one.failure}" for one in found.values())
        raise RuntimeError(f"None of the models could be trained. {reasons}")
    _write(work_dir, (dataclasses.replace(one, is_chosen=one is best) for one in found.values()))
    training = _final_training(best, prepare, model_dir, os.path.join(folder, best.model))
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)
    _LOGGER.info("The best model is %s, with a loss of %g.", best.model, best.loss)
    return training


def _final_training(
    best: Candidate, prepare: Callable[..., Training], model_dir: str, trained: str
) -> Training:
    """Returns the final training: of trees on all rows; other models are trained already."""
    if best.model == "boosted_trees":
        return prepare(best.model, model_dir, best.step)
    if tf.io.gfile.exists(trained):
        if tf.io.gfile.exists(model_dir):  # a partial copy, on file systems that rename by copying
            tf.io.gfile.rmtree(model_dir)
        tf.io.gfile.rename(trained, model_dir)
    training = prepare(best.model, model_dir)
    spec = training.train_spec
    ended = estimator_core.TrainSpec(spec.input_fn, max_steps=best.step, hooks=spec.hooks)
    return dataclasses.replace(training, train_spec=ended)


def read_candidates(work_dir: str) -> tuple[Candidate, ...]:
    """Returns the results of a selection so far; empty without a selection.

    Args:
      work_dir: Directory passed to `select_model`, or its copy in the outputs.
    """
    path = os.path.join(work_dir, _FILE)
    if not tf.io.gfile.exists(path):
        return ()
    with tf.io.gfile.GFile(path) as stream:
        rows = json.load(stream)
    return tuple(Candidate(**{**row, "loss": _number(row["loss"])}) for row in rows)


def can_win(losses: Mapping[int, float], max_steps: int, to_beat: float) -> bool:
    """Returns False if a training is very unlikely to reach a loss.

    A loss falls less and less. So it is assumed that each doubling of the steps lowers it as much as the last
    one did.

    Args:
      losses: Loss of each evaluation, by step.
      max_steps: Step at which the training ends.
      to_beat: Loss to reach.
    """
    if len(losses) < _EVALUATIONS_BEFORE_DROPPED:
        return True
    step, lowest = max(losses), min(losses.values())
    before = [loss for at, loss in losses.items() if at <= step / 2]
    gain = min(before, default=math.inf) - lowest
    return not lowest - gain * math.log2(max_steps / step) > to_beat


def _train(model: ModelName, training: Training, to_beat: float) -> Candidate:
    """Trains a model, without exports.

    Args:
      model: Name of the model.
      training: Its training.
      to_beat: Lowest loss of the models before it.
    """
    estimator, spec = training.estimator, training.train_spec
    keep_best = BestCheckpointExporter(_FOLDER, None)
    every = estimator.config.save_checkpoints_steps
    max_steps = spec.max_steps or 0
    hooks = [*spec.hooks]
    is_dropped = False

    def is_behind() -> bool:
        nonlocal is_dropped
        losses = BestCheckpoint(estimator.model_dir).losses
        is_dropped = not can_win(losses, max_steps, to_beat)
        return is_dropped

    if every and max_steps and math.isfinite(to_beat):
        hooks.append(
            estimator_core.experimental.make_early_stopping_hook(estimator, is_behind, None, every)
        )
    _LOGGER.info("Training %s: %d steps at most.", model, training.train_spec.max_steps)
    begin = time.monotonic()
    try:
        train_and_evaluate(
            estimator,
            spec._replace(hooks=tuple(hooks)),
            training.eval_spec._replace(exporters=(keep_best,)),
        )
    except estimator_core.NanLossDuringTrainingError as error:
        return Candidate(model, math.nan, failure=str(error), seconds=time.monotonic() - begin)
    best = BestCheckpoint(estimator.model_dir)
    failure = ""
    if not math.isfinite(best.loss):
        failure = f"its loss is {best.loss}, as of a label too large for squares in float32"
    seconds = time.monotonic() - begin
    step = training.best_step() if training.best_step else best.step
    return Candidate(model, best.loss, best.metrics, step, seconds, failure, is_dropped)


def _number(loss: float | None) -> float:
    return math.nan if loss is None else loss


def _rank(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def _write(work_dir: str, candidates: Any) -> None:
    path = os.path.join(work_dir, _FILE)
    rows = [one.as_record() for one in candidates]
    with tf.io.gfile.GFile(f"{path}.partial", "w") as stream:
        json.dump(rows, stream, indent=1)
    tf.io.gfile.rename(f"{path}.partial", path, overwrite=True)
