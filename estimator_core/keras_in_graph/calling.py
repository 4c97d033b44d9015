"""Calls of a model_fn that may use Keras objects."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_core.keras_in_graph import keras_internals, side_effects
from estimator_core.spec import calling
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.metric_fn import MetricFn
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import ModelFn

# The same minor version, because another would replace TensorFlow.
USE_KERAS_2 = (
    f"`pip install 'tf_keras=={'.'.join(tf.__version__.split('.')[:2])}.*'` and set the environment variable "
    "TF_USE_LEGACY_KERAS=1 before TensorFlow is imported."
)
_NOT_IN_KERAS_3 = "not available with Keras 3"  # in TensorFlow's message


def call_model_fn(
    model_fn: ModelFn, features: Any, labels: Any, mode: str, params: Any, config: Any
) -> EstimatorSpec:
    """Returns the spec of `model_fn`, with the side effects of its Keras objects added to the spec's ops."""
    with side_effects.collected_side_effects((features, labels)) as effects:
        try:
            spec = calling.call_model_fn(model_fn, features, labels, mode, params, config)
        except AttributeError as error:
            if _NOT_IN_KERAS_3 not in str(error):
                raise
            raise AttributeError(f"{error} To run model_fn with Keras 2, {USE_KERAS_2}") from error
    return _with_keras_effects(spec, effects)


def _with_keras_effects(spec: EstimatorSpec, effects: side_effects.SideEffects) -> EstimatorSpec:
    """Returns the spec with the side effects of model_fn's Keras objects added to its ops."""
    if isinstance(spec.eval_metric_ops, MetricFn):
        metrics: Any = _with_keras_metrics(spec.eval_metric_ops)
    else:
        metrics = _metric_ops(spec.eval_metric_ops, effects)
    spec = spec._replace(eval_metric_ops=metrics)
    if spec.mode == ModeKeys.TRAIN:
        updates = [*effects.updates(), *effects.applied_gradients]
        return spec._replace(train_op=tf.group(spec.train_op, *updates)) if updates else spec
    draws = effects.updates(filter(keras_internals.is_random_state, effects.variables))
    return _after(draws, spec) if draws else spec


def _metric_ops(metrics: Mapping[str, Any], effects: side_effects.SideEffects) -> dict[str, tuple[Any, Any]]:
    return {
        name: metric if isinstance(metric, tuple) else side_effects.metric_ops(metric, effects)
        for name, metric in metrics.items()
    }


def _with_keras_metrics(metric_fn: MetricFn) -> MetricFn:
    """Returns the metric function, extended to Keras metrics: it returns (value, update_op) for them, too."""

    def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
        with side_effects.collected_side_effects((args, kwargs)) as effects:
            return _metric_ops(metric_fn.function(*args, **kwargs), effects)

    return dataclasses.replace(metric_fn, function=call)


def _after(draws: Sequence[tf.Operation], spec: EstimatorSpec) -> EstimatorSpec:
    """Returns the spec whose outputs run `draws`, so that the next batch gets other random numbers.

    Every evaluation reads the loss. Values of metrics must not run them: they are read at the end of
    the input.
    """

    def tied(structure: Any) -> Any:
        return tf.nest.map_structure(
            lambda value: tf.identity(value) if tf.is_tensor(value) else value, structure
        )

    with tf.control_dependencies(draws):
        predictions, loss = tied((spec.predictions, spec.loss))
        export_outputs = {name: copy.copy(o) for name, o in (spec.export_outputs or {}).items()}
        for output in export_outputs.values():
            vars(output).update(tied(vars(output)))
    return spec._replace(
        predictions=predictions, loss=loss, export_outputs=export_outputs or spec.export_outputs
    )
