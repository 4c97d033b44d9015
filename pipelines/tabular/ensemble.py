"""Combines several trained models into one Estimator, with weights that are chosen on held-out rows.

The weights are chosen greedily, with replacement, as in Caruana et al., "Ensemble Selection from Libraries of
Models" (ICML 2004).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

import estimator_core
from estimator_core import tf1
from pipelines.tabular.plan import LabelPlan

_ROUNDS = 40
_LEAST_PROBABILITY = 1e-7  # float32 has no 1 - 1e-8

Floats: TypeAlias = npt.NDArray[np.float64]
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Member:
    """A trained model of an ensemble."""

    scope: str  # Variable scope of its variables in the ensemble
    estimator: Any
    checkpoint: str
    weight: float


def row_losses(predictions: Floats, labels: npt.NDArray[Any], label: LabelPlan) -> Floats:
    """Returns the loss of each row: the log loss of classes, the squared error of numbers."""
    if not label.classes:
        return np.square(predictions[:, 0] - labels.astype(np.float64))
    order = {name.encode(): index for index, name in enumerate(label.classes)}
    ids = np.array([order[name] for name in labels.tolist()], np.int64)
    likely = predictions[np.arange(len(ids)), ids]
    return -np.log(np.clip(likely, _LEAST_PROBABILITY, 1.0))


def greedy_weights(predictions: Mapping[Name, Floats], loss: Callable[[Floats], float]) -> dict[Name, float]:
    """Returns the weight of each model; they sum to 1.

    Starts with the best model. Each round adds the model with which the average has the lowest loss, possibly
    again. The weights are those of the best round: a model may help only after others were added twice.
    """
    counts = dict.fromkeys(predictions, 0)
    best_counts, lowest = dict(counts), np.inf
    total: Floats = np.zeros(1)
    for number in range(1, _ROUNDS + 1):
        losses = {name: loss((total + values) / number) for name, values in predictions.items()}
        name = min(losses, key=losses.__getitem__)
        counts[name] += 1
        total = total + predictions[name]
        if losses[name] < lowest:
            best_counts, lowest = dict(counts), losses[name]
    num_chosen = sum(best_counts.values())
    return {name: count / num_chosen for name, count in best_counts.items()}


def combined(predictions: Mapping[Name, Floats], weights: Mapping[Name, float]) -> Floats:
    """Returns the weighted mean of the models' predictions."""
    mean: Floats = np.sum([weights[name] * values for name, values in predictions.items()], axis=0)
    return mean


def ensemble(
    members: Sequence[Member],
    label: LabelPlan,
    model_dir: str,
    config: Any,
    weight_column: str | None = None,
) -> Any:
    """Returns an Estimator that predicts the weighted mean of its members' probabilities or numbers.

    It can't be trained: its variables are those of its members, see `write_checkpoint`.
    """

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> estimator_core.EstimatorSpec:
        if mode == estimator_core.ModeKeys.TRAIN:
            raise ValueError("An ensemble can't be trained further: train its members, or a single model.")
        outputs = []
        for member in members:
            with tf1.variable_scope(member.scope):
                spec = member.estimator.model_fn(features, None, estimator_core.ModeKeys.PREDICT, config)
            outputs.append(spec.predictions)
        weights = [member.weight for member in members]
        return _head(label, weight_column).create_estimator_spec(
            features, mode, logits=_mean_logits(outputs, weights, label), labels=labels
        )

    return estimator_core.Estimator(model_fn, config=config.replace(model_dir=model_dir))


def _head(label: LabelPlan, weight_column: str | None) -> Any:
    if label.problem_type == "regression":
        return estimator_core.RegressionHead(weight_column=weight_column)
    classes = list(label.classes)
    if len(classes) == 2:
        return estimator_core.BinaryClassHead(weight_column, label_vocabulary=classes)
    return estimator_core.MultiClassHead(len(classes), weight_column, label_vocabulary=classes)


def _mean_logits(outputs: Sequence[Any], weights: Sequence[float], label: LabelPlan) -> Any:
    """Returns logits of the mean probabilities, computed from logarithms so that none becomes 0 or 1."""
    if label.problem_type == "regression":
        return tf.add_n([weight * part["predictions"] for weight, part in zip(weights, outputs, strict=True)])
    logits = [part["logits"] for part in outputs]
    if len(label.classes) == 2:
        logs = [tf.concat([tf.math.log_sigmoid(-part), tf.math.log_sigmoid(part)], axis=1) for part in logits]
    else:
        logs = [tf.nn.log_softmax(part) for part in logits]
    weighted = [part + np.log(weight) for weight, part in zip(weights, logs, strict=True)]
    mean = tf.reduce_logsumexp(tf.stack(weighted), axis=0)
    return mean[:, 1:] - mean[:, :1] if len(label.classes) == 2 else mean


def write_checkpoint(members: Sequence[Member], model_dir: str, global_step: int) -> None:
    """Writes the ensemble's only checkpoint: the variables of its members, each in its scope."""
    values: dict[str, Any] = {tf1.GraphKeys.GLOBAL_STEP: np.int64(global_step)}
    for member in members:
        reader = tf.train.load_checkpoint(member.checkpoint)
        names = set(reader.get_variable_to_shape_map()) - {tf1.GraphKeys.GLOBAL_STEP}
        values |= {f"{member.scope}/{name}": reader.get_tensor(name) for name in names}
    _save(values, os.path.join(model_dir, f"model.ckpt-{global_step}"))


def write_mean_checkpoint(checkpoints: Sequence[str], model_dir: str, global_step: int) -> str:
    """Writes the mean of the variables of several trainings of a linear model, which is their mean logits."""
    readers = [tf.train.load_checkpoint(path) for path in checkpoints]
    values: dict[str, Any] = {tf1.GraphKeys.GLOBAL_STEP: np.int64(global_step)}
    for name in readers[0].get_variable_to_shape_map():
        tensors = [reader.get_tensor(name) for reader in readers]
        if name != tf1.GraphKeys.GLOBAL_STEP:
            is_float = np.issubdtype(tensors[0].dtype, np.floating)
            values[name] = np.mean(tensors, axis=0, dtype=tensors[0].dtype) if is_float else tensors[0]
    path = os.path.join(model_dir, f"model.ckpt-{global_step}")
    _save(values, path)
    return path


def _save(values: Mapping[str, Any], path: str) -> None:
    folder = os.path.dirname(path)
    tf.io.gfile.makedirs(folder)
    names = sorted(values)
    tf.raw_ops.SaveV2(
        prefix=path,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=[tf.constant(values[name]) for name in names],
    )
    tf1.train.update_checkpoint_state(folder, os.path.basename(path), [os.path.basename(path)])
