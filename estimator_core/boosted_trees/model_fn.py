"""The model_fn of boosted trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import tf1
from estimator_core.boosted_trees.boosting import Boosting, BoostingState
from estimator_core.boosted_trees.boosting_hook import BoostingHook
from estimator_core.boosted_trees.columns import column_matrix
from estimator_core.boosted_trees.early_stopping import TreesEarlyStopping, Validation
from estimator_core.boosted_trees.forest_variables import ForestVariables
from estimator_core.boosted_trees.head_loss import HeadLoss
from estimator_core.boosted_trees.library import lightgbm
from estimator_core.boosted_trees.objectives import Objective, head_objective, may_have_objective
from estimator_core.boosted_trees.prediction import forest_logits
from estimator_core.boosted_trees.settings import BoostingSettings
from estimator_core.boosted_trees.training_data import TrainingData
from estimator_core.execution.base import Execution, Step, StepFn
from estimator_core.execution.current import current_execution
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.heads import Head
from estimator_core.heads.base import write_loss_summaries
from estimator_core.heads.weighted import WeightedHead
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import checked_features
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import ModelFn

_SESSION_CALL_SECS = 1.0  # a signal ends the training between two calls
_MAX_STEPS = 100
_TOLERANCE = 1e-7
_MAX_STEP_SIZE = 10.0
MATRIX = "column_matrix"


def boosted_trees_model_fn(
    head: Head,
    columns: list[Any],
    settings: BoostingSettings,
    predicts_matrix: bool = False,
    early_stopping: TreesEarlyStopping | None = None,
) -> ModelFn:
    """Returns the `model_fn` of a forest over feature columns, with a head on top."""

    def model_fn(features: Any, labels: Any, mode: str, config: RunConfig) -> EstimatorSpec:
        features = checked_features(features)
        matrix = column_matrix(features, columns)
        variables = ForestVariables(head.logits_dimension)
        if mode != ModeKeys.TRAIN:
            logits = forest_logits(matrix, variables, head.logits_dimension)
            spec = head.create_estimator_spec(features, mode, logits=logits, labels=labels)
            if predicts_matrix:
                spec = spec._replace(predictions={**spec.predictions, MATRIX: matrix})
            return spec
        check_one_process(current_execution())
        lightgbm()  # fails now rather than after all data are read
        loss = HeadLoss(head, features, labels)
        # None is one thread for each core.
        num_threads = getattr(config.session_config, "intra_op_parallelism_threads", 0) or None
        hook = BoostingHook(
            variables,
            loss,
            (matrix, _weights(head, features), loss.batch, _mask(early_stopping, features)),
            settings.n_batches_per_layer,
            _start(head, settings, num_threads),
            settings.steps_per_tree,
            early_stopping,
        )
        with tf.name_scope("boosting"):  # the summary's op is "loss", as the Estimator expects it
            loss_value = tf.identity(hook.loss, name="loss")
        write_loss_summaries(loss_value, tag_of=head.summary_tag)
        count = tf1.train.get_global_step().assign_add(1)
        return EstimatorSpec(mode, loss=loss_value, train_op=count.op, training_hooks=[hook])

    return model_fn


def _weights(head: Head, features: Any) -> tf.Tensor | None:
    """Returns the weights of a batch, float32 `[batch_size]`, for one of the library's objectives."""
    if not (may_have_objective(head) and isinstance(head, WeightedHead)):
        return None
    batch_size = tf.shape(next(iter(features.values())))[0]
    weights = head.example_weights(features, tf.zeros([batch_size, 1]))
    return tf.reshape(weights, [-1]) if tf.is_tensor(weights) else None


def _mask(early_stopping: TreesEarlyStopping | None, features: Any) -> tf.Tensor | None:
    """Returns the mask of the held-out rows, bool `[batch_size]`; None without early stopping."""
    if early_stopping is None:
        return None
    name = early_stopping.validation_column
    if name not in features:
        raise ValueError(
            "The feature that marks the held-out rows is missing. "
            f"Received: validation_column={name!r}, features {sorted(features)}"
        )
    return tf.reshape(tf.cast(features[name], tf.bool), [-1])


def _start(
    head: Head, settings: BoostingSettings, num_threads: int | None
) -> Callable[[TrainingData, BoostingState, Any, Validation | None], Boosting]:
    def start(
        data: TrainingData, state: BoostingState, gradients: Any, validation: Validation | None
    ) -> Boosting:
        labels, _ = data.loss_data
        has_objective = may_have_objective(head)
        objective = head_objective(head, labels if has_objective else None)
        column = labels.reshape(-1) if has_objective else None
        if settings.center_bias and not (state.finished or state.steps_in_tree):
            bias = center(objective, column, data, gradients, head.logits_dimension)
            state = state._replace(bias=np.asarray(bias, np.float64))
        return Boosting(settings, objective, data, column, gradients, state, num_threads, validation)

    return start


def center(
    objective: Objective,
    labels: Any,
    data: TrainingData,
    gradients: Callable[[Any], tuple[Any, Any]],
    logits_dimension: int,
) -> Any:
    """Returns the constant logits that minimize the loss, float64 `[logits_dimension]`."""
    if objective.center is not None:
        has_weight = data.weights is None or data.weights.any()
        return objective.center(labels, data.weights) if has_weight else np.zeros(logits_dimension)
    bias = np.zeros(logits_dimension)
    for _ in range(_MAX_STEPS):
        first, second = gradients(np.tile(bias, (data.num_rows, 1)))
        step = -first.sum(axis=0, dtype=np.float64) / second.sum(axis=0, dtype=np.float64)
        bias = bias + np.clip(step, -_MAX_STEP_SIZE, _MAX_STEP_SIZE)
        if np.abs(step).max() < _TOLERANCE:
            break
    return bias


def select_for_trees(config: RunConfig, mode: str, max_steps_per_call: int) -> Execution:
    execution = select_execution(config, mode)
    check_one_process(execution)
    if mode != ModeKeys.TRAIN:
        return execution
    return LayerSteps(config.session_config, config.master, max_steps_per_call)


def check_one_process(execution: Execution) -> None:
    """Checks that the execution is a single device of this process."""
    if not isinstance(execution, SingleDevice):
        raise ValueError(
            "Boosted trees are grown and evaluated in one process, on all cores: leave train_distribute and "
            "eval_distribute out of RunConfig, and unset TF_CONFIG. A TPU can't grow them. Received: "
            f"{type(execution).__name__}"
        )


class LayerSteps(SingleDevice):
    """Trains on one device; a `BoostingHook` makes the steps at which no other hook is due."""

    def __init__(self, session_config: Any, master: str, max_steps_per_call: int):
        super().__init__(session_config, master)
        self.steps_per_session_run = max_steps_per_call
        self.session_call_secs = _SESSION_CALL_SECS

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the step of `step_fn` with the hook's `advance`, which makes many steps in a call."""
        step = super().build_step(inputs, step_fn, mode)
        (hook,) = (hook for hook in step.spec.training_hooks if isinstance(hook, BoostingHook))
        hook.makes_steps = True
        return step._replace(advance=hook.advance)
