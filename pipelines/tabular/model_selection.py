"""Trains several models, and selects the best one or an ensemble of them on held-out rows."""

import dataclasses
import io
import json
import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import tensorflow as tf

import estimator_core
from components.trainer.interruptible import train_and_evaluate
from estimator_core import tf1
from pipelines.atomic_files import write_uri
from pipelines.errors import counted
from pipelines.tabular.best_checkpoint import BestCheckpoint, BestCheckpointExporter
from pipelines.tabular.ensemble import (
    Member,
    combined,
    ensemble,
    greedy_weights,
    row_losses,
    write_checkpoint,
    write_mean_checkpoint,
)
from pipelines.tabular.held_out import HeldOut, predict_held_out
from pipelines.tabular.plan import LabelPlan, ModelName

MODELS: tuple[ModelName, ...] = get_args(ModelName)

_LOGGER = logging.getLogger(__name__)

_SHOWN = ("average_loss", "auc", "accuracy")
_FILE = "model_selection.json"
_FOLDER = "candidates"
_HELD_OUT = "held_out.npz"
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
class Combination:
    """Settings of an ensemble."""

    label: LabelPlan
    weight_column: str | None = None  # Feature that weighs the rows
    folds: int = 1  # Number of trainings of a model, each of which holds out other rows
    time_limit: float = math.inf  # Seconds of training: of all models on the first fold, and of all folds


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
    is_chosen: bool = False  # True if it is the final model, or a part of it
    last_step: int = 0  # Global step at which the training has ended
    is_paused: bool = False  # True if the training waits for the others after its first rung
    # Loss that it was expected to reach at the end, see `expected_loss`; None if the training has
    # not been paused.
    expected: float | None = None
    weight: float = 0.0  # Share of its predictions in those of the final model
    # Loss that an ensemble would gain on the held-out rows without the model; None if it is not chosen.
    contribution: float | None = None
    folds: int = 1  # Number of trainings, each of which held out other rows

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
        folds = f", {self.folds} folds" if self.folds > 1 else ""
        return (
            f"{self.model}: {', '.join(named)} {self._at(self.step)} ({self.seconds:.1f} s{folds}{dropped})"
        )

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
    combination: Combination | None = None,
    on_held_out: Callable[[HeldOut], None] | None = None,
) -> Training:
    """Trains each model as far as it can win, and returns the training of the best one or of an ensemble.

    Each model is trained to its first rung. After that, training continues model by model, starting with the
    lowest loss. A training is dropped, before it continues or at an evaluation, when its loss is too high to
    become the lowest, see `can_win`. After a first rung, it also has to be higher than by chance.

    With a combination, the models that were not dropped are then trained on the other folds, and weighted; a
    single model is preferred if the ensemble is not better by more than a standard error. Trees are trained
    again on all rows, with the best number of trees, because more rows make each of them better. Of the other
    models, the best checkpoints are used, which another training might miss.

    An interrupted selection resumes. Its results are in `work_dir`, see `read_candidates`.

    `prepare`: function of (model, model_dir) that returns a training that exports its best checkpoint. With
    the step of that checkpoint as `steps`, it returns the training from all rows. `fold` is the number of the
    held-out fold.
    `held_out_rows`: number of held-out rows; 0 takes losses on them as exact.
    `combination`: settings of an ensemble; None selects a single model.
    `on_held_out`: function that is given the predictions of the final model for rows that the models, with
    which they were made, have not learned from.
    """
    begin = time.monotonic()
    candidates = {candidate.model: candidate for candidate in read_candidates(work_dir)}
    folder = os.path.join(work_dir, _FOLDER)
    is_decided = any(candidate.is_chosen for candidate in candidates.values())
    if tf.io.gfile.exists(model_dir) and not is_decided:
        _LOGGER.warning("Removing %s: it is from a training that compared no models.", model_dir)
        tf.io.gfile.rmtree(model_dir)

    limit = math.inf if combination is None else combination.time_limit

    def train(model: ModelName, *, to_first_rung: bool) -> None:
        others = (_rank(other.loss) for other in candidates.values() if other.model != model)
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
            # A model that is worse on a few rows may be worth its part of an ensemble.
            drops = combination is None or combination.folds == 1
            left = sum(other not in candidates or candidates[other].is_paused for other in models)
            seconds = (begin + limit - time.monotonic()) / max(left, 1)
            candidate = _train(model, training, to_beat if drops else math.inf, to_first_rung, seconds)
            if earlier:
                seconds = earlier.seconds + candidate.seconds
                candidate = dataclasses.replace(candidate, seconds=seconds)
        candidates[model] = candidate
        _LOGGER.info("Trained %s", candidate.describe())
        _write(work_dir, candidates.values())

    for model in models:
        if model not in candidates:
            train(model, to_first_rung=len(models) > 1)
    for candidate in sorted(candidates.values(), key=lambda candidate: _rank(candidate.loss)):
        if candidate.is_paused:
            train(candidate.model, to_first_rung=False)
    best = min(candidates.values(), key=lambda candidate: _rank(candidate.loss))
    if not math.isfinite(best.loss):
        reasons = "; ".join(f"{candidate.model}: {candidate.failure}" for candidate in candidates.values())
        raise RuntimeError(f"None of the models could be trained. {reasons}")
    if not is_decided:
        if combination and (len(models) > 1 or combination.folds > 1 or on_held_out):
            folds = _train_folds(candidates, prepare, folder, combination, begin)
            judged, held_out = _choose(candidates, folds, combination.label)
            candidates |= judged
            if on_held_out:
                on_held_out(held_out)
        else:
            candidates[best.model] = dataclasses.replace(best, is_chosen=True, weight=1.0)
        _write(work_dir, candidates.values())
    chosen = [candidate for candidate in candidates.values() if candidate.is_chosen]
    _LOGGER.info("Trained %s", describe_choice(chosen))
    training = _final_training(chosen, prepare, model_dir, folder, combination)
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)
    return training


def describe_choice(chosen: Sequence[Candidate]) -> str:
    """Returns the models of the final one with their weights, the heaviest first."""
    if len(chosen) == 1:
        return f"{chosen[0].model}, with a loss of {chosen[0].loss:g}"
    heaviest_first = sorted(chosen, key=lambda candidate: -candidate.weight)
    return "an ensemble of " + ", ".join(f"{one.model} ({one.weight:.0%})" for one in heaviest_first)


@dataclasses.dataclass(frozen=True)
class _Fold:
    """Result of a training, judged on the rows that it held out."""

    held_out: HeldOut
    step: int  # Global step of the best checkpoint; of trees, the step at which they were best
    seconds: float


def _train_folds(
    candidates: Mapping[ModelName, Candidate],
    prepare: Callable[..., Training],
    folder: str,
    combination: Combination,
    begin: float,
) -> dict[ModelName, list[_Fold]]:
    """Returns the folds of the models that were trained to the end on all of them.

    Further folds are begun as long as one is expected to end within the time limit.
    """
    folds: dict[ModelName, list[_Fold]] = {
        candidate.model: []
        for candidate in candidates.values()
        if math.isfinite(candidate.loss) and not candidate.is_dropped
    }
    for fold in range(combination.folds):
        began = time.monotonic()
        for model in list(folds):
            file = os.path.join(_fold_dir(folder, model, fold), _HELD_OUT)
            if not tf.io.gfile.exists(file):
                name = f"{model} on fold {fold + 1} of {combination.folds}"
                result = _train_fold(candidates[model], prepare, os.path.dirname(file), fold, name)
                if result is None:
                    del folds[model]
                    if not folds:
                        raise RuntimeError(f"None of the models could be trained on fold {fold + 1}.")
                    continue
                buffer = io.BytesIO()
                np.savez(buffer, **vars(result.held_out), step=result.step, seconds=result.seconds)
                write_uri(file, buffer.getvalue())
            with tf.io.gfile.GFile(file, "rb") as stream, np.load(io.BytesIO(stream.read())) as arrays:
                held_out = HeldOut(arrays["labels"], arrays["predictions"], arrays["weights"])
                folds[model].append(_Fold(held_out, int(arrays["step"]), float(arrays["seconds"])))
        took, now = time.monotonic() - began, time.monotonic()
        if fold + 1 < combination.folds and now - begin + took > combination.time_limit:
            _LOGGER.info("The time limit leaves %d of %d folds.", fold + 1, combination.folds)
            break
    return folds


def _train_fold(
    candidate: Candidate, prepare: Callable[..., Training], model_dir: str, fold: int, name: str
) -> _Fold | None:
    """Returns the result of a fold; None if its training failed."""
    if fold:
        training = prepare(candidate.model, model_dir, fold=fold)
        candidate = _train(candidate.model, training, math.inf, to_first_rung=False, name=name)
        if candidate.failure:
            _LOGGER.warning("%s failed, so the model is left out of an ensemble: %s", name, candidate.failure)
            return None
    else:
        training = prepare(candidate.model, model_dir)  # it is trained already
    held_out = predict_held_out(training.estimator, training.eval_spec.input_fn)
    return _Fold(held_out, candidate.step, candidate.seconds)


def _choose(
    candidates: Mapping[ModelName, Candidate], folds: Mapping[ModelName, list[_Fold]], label: LabelPlan
) -> tuple[dict[ModelName, Candidate], HeldOut]:
    """Returns the candidates with weights, as judged on all held-out rows, and the predictions for these."""
    first = next(iter(folds.values()))
    labels = np.concatenate([fold.held_out.labels for fold in first])
    row_weights = np.concatenate([fold.held_out.weights for fold in first])
    predictions = {
        model: np.concatenate([fold.held_out.predictions for fold in parts]) for model, parts in folds.items()
    }

    def loss(values: Any) -> float:
        return float(np.average(row_losses(values, labels, label), weights=row_weights))

    losses = {model: loss(values) for model, values in predictions.items()}
    best = min(losses, key=losses.__getitem__)
    weights = greedy_weights(predictions, loss)
    mean = combined(predictions, weights)
    gains = row_losses(predictions[best], labels, label) - row_losses(mean, labels, label)
    gain = np.average(gains, weights=row_weights)
    if gain <= np.linalg.norm(row_weights * (gains - gain)) / row_weights.sum():  # its standard error
        weights = dict.fromkeys(predictions, 0.0) | {best: 1.0}
    is_ensemble = weights[best] < 1
    judged = {}
    for model, parts in folds.items():
        weight = weights[model]
        others = {other: values for other, values in predictions.items() if other != model}
        without = loss(combined(others, greedy_weights(others, loss))) if others else math.inf
        steps_per_tree = candidates[model].steps_per_tree or 1
        mean_step = round(np.mean([fold.step for fold in parts]) / steps_per_tree) * steps_per_tree
        judged[model] = dataclasses.replace(
            candidates[model],
            loss=losses[model],
            # Other metrics were measured on the first fold only.
            metrics=candidates[model].metrics if len(parts) == 1 else {"average_loss": losses[model]},
            step=mean_step,
            seconds=sum(fold.seconds for fold in parts),
            is_chosen=weight > 0,
            weight=weight,
            contribution=without - loss(mean) if weight and is_ensemble else None,
            folds=len(parts),
        )
    return judged, HeldOut(labels, combined(predictions, weights), row_weights)


def _fold_dir(folder: str, model: ModelName, fold: int) -> str:
    return os.path.join(folder, f"{model}_{fold}" if fold else model)


def _final_training(
    chosen: Sequence[Candidate],
    prepare: Callable[..., Training],
    model_dir: str,
    folder: str,
    combination: Combination | None,
) -> Training:
    """Returns the final training: of trees on all rows; other models are trained already."""
    (heaviest, *others) = sorted(chosen, key=lambda candidate: -candidate.weight)
    if not others and heaviest.model == "boosted_trees":
        return prepare(heaviest.model, model_dir, heaviest.step)
    if not others and heaviest.folds == 1:
        trained = os.path.join(folder, heaviest.model)
        if tf.io.gfile.exists(trained):
            if tf.io.gfile.exists(model_dir):  # a partial copy, on file systems that rename by copying
                tf.io.gfile.rmtree(model_dir)
            tf.io.gfile.rename(trained, model_dir)
        return _ended(prepare(heaviest.model, model_dir), heaviest.step)
    if combination is None:
        raise ValueError(f"Several models need a combination. Received: {chosen}")
    step = max(candidate.step for candidate in chosen)
    members, trainings = [], []
    is_complete = tf.train.latest_checkpoint(model_dir) is not None
    for candidate in chosen:
        is_deep = candidate.model == "wide_deep"
        places = [_fold_dir(folder, candidate.model, fold) for fold in range(candidate.folds)]
        if candidate.model == "boosted_trees":
            places = [os.path.join(folder, "boosted_trees_of_all_rows")]
        for number, place in enumerate(places if is_deep else places[:1]):
            training = prepare(candidate.model, place, candidate.step)
            if is_complete:
                checkpoint = ""
            elif candidate.model == "boosted_trees":
                train_and_evaluate(
                    training.estimator, training.train_spec, training.eval_spec._replace(exporters=())
                )
                checkpoint = training.estimator.latest_checkpoint()
            elif is_deep:
                checkpoint = tf.train.latest_checkpoint(place)
            else:
                checkpoint = write_mean_checkpoint(
                    [tf.train.latest_checkpoint(fold) for fold in places], f"{place}_mean", candidate.step
                )
            scope = f"{candidate.model}_{number}" if is_deep and len(places) > 1 else candidate.model
            weight = candidate.weight / (len(places) if is_deep else 1)
            members.append(Member(scope, training.estimator, checkpoint, weight))
            trainings.append(training)
    # The receivers of trees derive features that only they use.
    base = next((training for training in trainings if training.steps_per_tree), trainings[0])
    if len(members) == 1:
        if not is_complete:
            write_mean_checkpoint([members[0].checkpoint], model_dir, step)
        return _ended(prepare(heaviest.model, model_dir, step), step)
    estimator = ensemble(
        members, combination.label, model_dir, base.estimator.config, combination.weight_column
    )
    if not is_complete:
        _copy_curves([(member.model, os.path.join(folder, member.model)) for member in chosen], model_dir)
        write_checkpoint(members, model_dir, step)
    return _ended(dataclasses.replace(base, estimator=estimator), step)


def _copy_curves(trained: Sequence[tuple[ModelName, str]], model_dir: str) -> None:
    """Copies the event files of the members' first trainings into folders of their names."""
    for model, place in trained:
        for file in tf.io.gfile.glob([f"{place}/events*", f"{place}/eval*/events*"]):
            target = os.path.join(model_dir, model, os.path.relpath(file, place))
            tf.io.gfile.makedirs(os.path.dirname(target))
            tf.io.gfile.copy(file, target, overwrite=True)


def _ended(training: Training, step: int) -> Training:
    """Returns a training that has nothing left to do but to evaluate and export."""
    spec = training.train_spec
    ended = estimator_core.TrainSpec(spec.input_fn, max_steps=step, hooks=spec.hooks)
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


class _StopAt(tf1.train.SessionRunHook):
    """Ends a training at a time."""

    def __init__(self, deadline: float):
        self._deadline = deadline

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns None: the end of each session call is soon enough."""
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        del steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_values
        if time.monotonic() > self._deadline:
            run_context.request_stop()


def _train(
    model: ModelName,
    training: Training,
    to_beat: float,
    to_first_rung: bool,
    seconds: float = math.inf,
    name: str = "",
) -> Candidate:
    """Trains a model for some time at most, without exports. The name is for the log."""
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
    if seconds < math.inf:
        hooks.append(_StopAt(time.monotonic() + seconds))
    _LOGGER.info("Training %s: %d of %d steps at most.", name or model, rung, max_steps)
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
    rows = [candidate.as_record() for candidate in candidates]
    write_uri(os.path.join(work_dir, _FILE), json.dumps(rows, indent=1))
