"""Generic models: Estimators of a `TabularPlan`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tensorflow_transform as tft

import estimator_core
from estimator_core.export import PredictOutput, RegressionOutput
from pipelines.tabular.columns import dnn_columns, linear_columns, tree_columns
from pipelines.tabular.inputs import HELD_OUT_KEY
from pipelines.tabular.plan import WEIGHT_KEY, ModelName, TabularPlan

_PATIENCE = 3  # times the trees between two summaries
_CHANGE_BETWEEN = 2.5  # sum of the learning rates of these trees, at most
_SECS_BETWEEN_CHECKPOINTS_OF_TREES = 120
_COMBINER = "sqrtn"  # so that long texts do not outweigh short ones


def build_estimator(
    model: ModelName,
    plan: TabularPlan,
    transform: tft.TFTransformOutput,
    model_dir: str,
    means: npt.NDArray[np.float32] | None = None,
    num_text_means: int = 0,
    report: Callable[[int, float], None] | None = None,
) -> Any:
    """Returns an untrained Estimator.

    `report`: see `TreesEarlyStopping`, if trees learn from rows of `read_marked`; None without held-out
    rows.
    """
    config = estimator_core.RunConfig(
        model_dir=model_dir,
        tf_random_seed=plan.training.seed,
        keep_checkpoint_max=2,
        **_intervals(model, plan),
    )
    settings: dict[str, Any] = {"model_dir": model_dir, "config": config}
    if plan.weight:
        settings["weight_column"] = WEIGHT_KEY
    if model == "boosted_trees":
        if report:
            settings["early_stopping"] = estimator_core.experimental.TreesEarlyStopping(
                HELD_OUT_KEY, _PATIENCE * _trees_between_summaries(plan), report
            )
        return _boosted_trees(plan, tree_columns(plan, transform, means, num_text_means), settings)
    is_deep = model == "wide_deep"
    settings |= _wide_deep(plan, transform) if is_deep else _linear(plan, transform)
    if plan.label.problem_type == "regression":
        regressor = estimator_core.DNNLinearCombinedRegressor if is_deep else estimator_core.LinearRegressor
        return rescaled(regressor(**settings), plan.label.mean, plan.label.stddev)
    classifier = estimator_core.DNNLinearCombinedClassifier if is_deep else estimator_core.LinearClassifier
    return classifier(**settings, **_classes(plan))


def _intervals(model: ModelName, plan: TabularPlan) -> dict[str, Any]:
    """Returns the intervals of checkpoints and summaries; with early stopping, a checkpoint is evaluated."""
    training = plan.training
    if model == "boosted_trees":
        steps = training.trees.steps_per_tree * _trees_between_summaries(plan)
        return {
            "save_checkpoints_secs": _SECS_BETWEEN_CHECKPOINTS_OF_TREES,
            "save_summary_steps": steps,
            "log_step_count_steps": steps,
        }
    if training.early_stopping:
        return {"save_checkpoints_steps": max(50, min(1_000, training.train_steps // 32))}
    return {"save_checkpoints_steps": max(100, min(1_000, training.train_steps // 5))}


def _trees_between_summaries(plan: TabularPlan) -> int:
    trees = plan.training.trees
    return min(max(10, trees.n_trees // 16), max(10, round(_CHANGE_BETWEEN / trees.learning_rate)))


def _classes(plan: TabularPlan) -> dict[str, Any]:
    return {"n_classes": len(plan.label.classes), "label_vocabulary": list(plan.label.classes)}


def _wide_deep(plan: TabularPlan, transform: tft.TFTransformOutput) -> dict[str, Any]:
    training = plan.training
    return {
        "linear_feature_columns": linear_columns(plan, transform),
        "linear_optimizer": tf.keras.optimizers.Adam(training.linear_learning_rate),
        "linear_sparse_combiner": _COMBINER,
        "dnn_feature_columns": dnn_columns(plan, transform),
        "dnn_optimizer": tf.keras.optimizers.Adam(training.learning_rate),
        "dnn_hidden_units": list(training.hidden_units),
        "dnn_dropout": training.dropout or None,
    }


def _linear(plan: TabularPlan, transform: tft.TFTransformOutput) -> dict[str, Any]:
    return {
        "feature_columns": linear_columns(plan, transform),
        "optimizer": tf.keras.optimizers.Adam(plan.training.linear_learning_rate),
        "sparse_combiner": _COMBINER,
    }


def _boosted_trees(plan: TabularPlan, columns: list[Any], settings: dict[str, Any]) -> Any:
    trees = plan.training.trees
    settings |= {
        "feature_columns": columns,
        "n_batches_per_layer": trees.num_batches,
        "n_trees": trees.n_trees,
        "max_depth": trees.max_depth,
        "learning_rate": trees.learning_rate,
        "l2_regularization": trees.l2_regularization,
        "min_node_weight": trees.min_node_weight,
        "min_node_examples": trees.min_node_examples,
        "center_bias": True,
    }
    if plan.label.problem_type == "regression":
        return estimator_core.BoostedTreesRegressor(**settings)
    return estimator_core.BoostedTreesClassifier(**settings, **_classes(plan))


_MOMENTS = ("label/mean", "prediction/mean")


def rescaled(regressor: Any, mean: float, stddev: float) -> Any:
    """Returns an Estimator whose labels, predictions, loss and metrics are in the label's units."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> estimator_core.EstimatorSpec:
        if labels is not None:
            labels = (labels - mean) / stddev
        spec = regressor.model_fn(features, labels, mode, config)
        return _in_label_units(spec, mean, stddev)

    return estimator_core.Estimator(model_fn, model_dir=regressor.model_dir, config=regressor.config)


def _in_label_units(
    spec: estimator_core.EstimatorSpec, mean: float, stddev: float
) -> estimator_core.EstimatorSpec:
    changes: dict[str, Any] = {}
    if spec.loss is not None:
        changes["loss"] = spec.loss * stddev**2  # a mean of squares
    if spec.predictions:
        changes["predictions"] = {key: value * stddev + mean for key, value in spec.predictions.items()}
    if spec.eval_metric_ops:
        changes["eval_metric_ops"] = {
            key: tuple(part * stddev + mean if key in _MOMENTS else part * stddev**2 for part in parts)
            for key, parts in spec.eval_metric_ops.items()
        }
    if spec.export_outputs:
        predictions = changes["predictions"]
        (value,) = predictions.values()
        changes["export_outputs"] = {
            name: RegressionOutput(value)
            if isinstance(output, RegressionOutput)
            else PredictOutput(predictions)
            for name, output in spec.export_outputs.items()
        }
    return spec._replace(**changes)
