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
from pipelines.errors import counted
from pipelines.tabular.best_checkpoint import BestCheckpoint, BestCheckpointExporter
from pipelines.tabular.held_out import HeldOut, predict_held_out
from pipelines.tabular.plan import ModelName

MODELS: tuple[ModelName, ...] = get_args(ModelName)

_LOGGER = logging.getLogger(__name__)

_SHOWN = ("average_loss", "auc", "accuracy")
_FILE = "model_selection.json"
_FOLDER = "candidates"
_EVALUATIONS_BEFORE_DROPPED = 4
_STANDARD_ERRORS = 2.0


@dataclasses.dataclass(frozen=True)
class Training:
    """An Estimator with the specs of its training, evaluation and export."""

    estimator: Any
    train_spec: estimator_core.TrainSpec
    eval_spec: estimator_core.EvalSpec
    # Function that returns the best number of steps after the training; None takes that of the
    # checkpoint with the lowest loss.
    best_step: Callable[[], int] | None = None
    steps_per_tree: int = 0  # Steps in which a tree is grown; 0 for a model without trees
    # Steps after which the model is compared with the others for the first time; None trains to the
    # end without a pause.
    first_rung: int | None = None
    # Function that returns the losses on the held-out rows by step, after the training; None takes
    # those of the evaluations.
    losses: Callable[[], Mapping[int, float]] | None = None
    # Receiver function of the SavedModel for the Evaluator; None for a model that is not exported.
    eval_input_receiver_fn: Callable[[], Any] | None = None


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A model that was trained, to its end or to the first rung."""

    model: ModelName
    loss: float  # Lowest loss on the held-out rows; NaN if the training failed
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)
    step: int = 0  # Global step of that checkpoint; of trees, the step at which they were best
    steps_per_tree: int = 0  # Steps in which a tree is grown; 0 for a model without trees
    seconds: float = 0.0  # Duration of the training since its last interruption
    failure: str = ""  # Reason why there is no loss
    # True if the training ended early because the loss would not have become the lowest.
    is_dropped: bool = False
    is_chosen: bool = False  # True if its loss is the lowest of all
    last_step: int = 0  # Global step at which the training has ended
    is_paused: bool = False  # True if the training waits for the others after its first rung
    # Loss that it was expected to reach at the end, see `expected_loss`; None if the training has
    # not been paused.
    expected: float | None = None

    def as_record(self) -> dict[str, Any]:
        """Returns the fields for JSON, where NaN becomes None."""
        record = dataclasses.asdict(self)
        for name in ("loss", "expected"):
            value = record[name]
            record[name] = value if value is not None and math.isfinite(value) else None
        return record

    def describe(self) -> str:
        if self.failure:
            return f"{self.model}: failed, {self.failure}"
        named = (f"{name} {self.metrics[name]:.5g}" for name in _SHOWN if name in self.metrics)
        dropped = ""
        if self.is_dropped:
            dropped = f"; dropped {self._at(self.last_step)}, because it was too far behind"
        return f"{self.model}: {', '.join(named)} {self._at(self.step)} ({self.seconds:.1f} s{dropped})"

    def _at(self, step: int) -> str:
        return (
            f"with {counted(step // self.steps_per_tree, 'tree')}"
            if self.steps_per_tree
            else f"at step {step}"
        )


def select_model(
    prepare: Callable[..., Training],
    model_dir: str,
    work_dir: str,
    models: tuple[ModelName, ...] = MODELS,
    held_out_rows: int = 0,
    on_held_out: Callable[[HeldOut], None] | None = None,
) -> Training:
    """Trains each model as far as it can win, and returns the training of the best one.

    Each model is trained to its first rung. After that, training continues model by model, starting with the
    lowest loss. A training is dropped, before it continues or at an evaluation, when its loss is too high to
    become the lowest, see `can_win`. After a first rung, it also has to be higher than by chance.

    Trees are trained again on all rows, with the best number of trees: more rows make each of them better.
    For the other models, the best checkpoint is used, which another training might miss.

    An interrupted selection resumes. Its results are in `work_dir`, see `read_candidates`.

    `prepare`: function of (model, model_dir) that returns a training that exports its best checkpoint. With
    the step of that checkpoint as a third argument, it returns the training from all rows.
    `held_out_rows`: number of held-out rows; 0 takes losses on them as exact.
    `on_held_out`: function that is given the best model's predictions of rows that it has not learned from.
    """
    candidates = {candidate.model: candidate for candidate in read_candidates(work_dir)}
    folder = os.path.join(work_dir, _FOLDER)
    if tf.io.gfile.exists(model_dir) and not any(
        candidate_of_model.is_chosen for candidate_of_model in candidates.values()
    ):
        _LOGGER.warning("Removing %s: it is from a training that compared no models.", model_dir)
        tf.io.gfile.rmtree(model_dir)

    def train(model: ModelName, *, to_first_rung: bool) -> None:
        others = (
            _rank(candidate_of_model.loss)
            for candidate_of_model in candidates.values()
            if candidate_of_model.model != model
        )
        to_beat = min(others, default=math.inf)
        earlier = candidates.get(model)
        if earlier:
            # Two standard errors of the mean, if the losses of the rows vary as much as they are large. The
            # difference between two models varies less, because both are judged on the same rows.
            to_beat *= 1 + (_STANDARD_ERRORS / math.sqrt(held_out_rows) if held_out_rows else 0.0)
        if earlier and earlier.expected is not None and earlier.expected > to_beat:
            candidate = dataclasses.replace(earlier, is_paused=False, is_dropped=True)
        else:
            training = prepare(model, os.path.join(folder, model))
            candidate = _train(model, training, to_beat, to_first_rung)
            if earlier:
                seconds = earlier.seconds + candidate.seconds
                candidate = dataclasses.replace(candidate, seconds=seconds)
        candidates[model] = candidate
        _LOGGER.info("Trained %s", candidate.describe())
        _write(work_dir, candidates.values())

    for model in models:
        if model not in candidates:
            train(model, to_first_rung=len(models) > 1)
    for candidate_of_model in sorted(candidates.values(), key=lambda candidate: _rank(candidate.loss)):
        if candidate_of_model.is_paused:
            train(candidate_of_model.model, to_first_rung=False)
    best = min(candidates.values(), key=lambda candidate: _rank(candidate.loss))
    if not math.isfinite(best.loss):
        reasons = "; ".join(
            f"{candidate_of_model.model}: {candidate_of_model.failure}"
            for candidate_of_model in candidates.values()
        )
        raise RuntimeError(f"None of the models could be trained. {reasons}")
    _write(
        work_dir,
        (
            dataclasses.replace(candidate_of_model, is_chosen=candidate_of_model is best)
            for candidate_of_model in candidates.values()
        ),
    )
    if on_held_out:
        judged = prepare(best.model, os.path.join(folder, best.model))
        on_held_out(predict_held_out(judged.estimator, judged.eval_spec.input_fn))
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
    """Returns the results of a selection so far; empty without a selection."""
    path = os.path.join(work_dir, _FILE)
    if not tf.io.gfile.exists(path):
        return ()
    with tf.io.gfile.GFile(path) as stream:
        rows = json.load(stream)
    for row in rows:
        row["loss"] = math.nan if row["loss"] is None else row["loss"]
    return tuple(Candidate(**row) for row in rows)


def can_win(losses: Mapping[int, float], max_steps: int, to_beat: float) -> bool:
    """Returns False if a training is very unlikely to reach a loss."""
    return not expected_loss(losses, max_steps) > to_beat


def expected_loss(losses: Mapping[int, float], max_steps: int) -> float:
    """Returns the loss that a training can be expected to reach at best; -inf after too few evaluations.

    A loss falls more and more slowly: each doubling of the steps is assumed to lower it as much as the last
    doubling did.
    """
    if len(losses) < _EVALUATIONS_BEFORE_DROPPED:
        return -math.inf
    step, lowest = max(losses), min(losses.values())
    first_half = [loss for at, loss in losses.items() if at <= step / 2]
    gain = min(first_half, default=math.inf) - lowest
    return lowest - gain * max(0.0, math.log2(max_steps / step))


class _BestSoFar(BestCheckpointExporter):
    """Keeps the best checkpoint of a training that continues from its newest checkpoint."""

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Keeps the checkpoint if its loss is the lowest so far."""
        del is_the_final_export
        return super().export(estimator, export_path, checkpoint_path, eval_result, False)


def _train(model: ModelName, training: Training, to_beat: float, to_first_rung: bool) -> Candidate:
    """Trains a model, without exports."""
    estimator, spec = training.estimator, training.train_spec
    every = estimator.config.save_checkpoints_steps
    max_steps = spec.max_steps or 0
    rung = training.first_rung if to_first_rung and training.first_rung else max_steps
    pauses = rung < max_steps
    keep_best = (_BestSoFar if pauses else BestCheckpointExporter)(_FOLDER, None)
    hooks = [*spec.hooks]
    is_dropped = False

    def is_behind() -> bool:
        nonlocal is_dropped
        losses = BestCheckpoint(estimator.model_dir).losses
        is_dropped = not (pauses or can_win(losses, max_steps, to_beat))
        return is_dropped

    if every and max_steps:  # even if it can't stop: its variable is in the checkpoints
        hooks.append(estimator_core.experimental.make_early_stopping_hook(estimator, is_behind, None, every))
    _LOGGER.info("Training %s: %d of %d steps at most.", model, rung, max_steps)
    begin = time.monotonic()
    try:
        train_and_evaluate(
            estimator,
            spec._replace(hooks=tuple(hooks), max_steps=rung if pauses else spec.max_steps),
            training.eval_spec._replace(exporters=(keep_best,)),
        )
    except estimator_core.NanLossDuringTrainingError as error:
        return Candidate(model, math.nan, failure=str(error), seconds=time.monotonic() - begin)
    best = BestCheckpoint(estimator.model_dir)
    failure = ""
    if not math.isfinite(best.loss):
        failure = f"its loss is {best.loss}, perhaps because squares of the label overflow float32"
    last_step = max(best.losses, default=0)
    is_paused = pauses and last_step >= rung and not failure
    if pauses and not is_paused:
        best.make_newest()
    losses = training.losses() if training.losses else best.losses
    expected = expected_loss(losses, max_steps) if is_paused else None
    step = training.best_step() if training.best_step else best.step
    return Candidate(
        model,
        best.loss,
        best.metrics,
        step,
        training.steps_per_tree,
        seconds=time.monotonic() - begin,
        failure=failure,
        is_dropped=is_dropped,
        last_step=last_step,
        is_paused=is_paused,
        expected=expected,
    )


def _rank(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def _write(work_dir: str, candidates: Any) -> None:
    path = os.path.join(work_dir, _FILE)
    rows = [candidate.as_record() for candidate in candidates]
    with tf.io.gfile.GFile(f"{path}.partial", "w") as stream:
        json.dump(rows, stream, indent=1)
    tf.io.gfile.rename(f"{path}.partial", path, overwrite=True)
