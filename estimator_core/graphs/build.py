"""From a model_fn and its inputs to the program of one mode. Every call builds anew: nothing is stale."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints import warm_start
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings
from estimator_core.execution.base import Execution, Step, StepFn
from estimator_core.execution.evaluation_metrics import with_metric_ops
from estimator_core.execution.inputs import Inputs
from estimator_core.graphs import initial_values
from estimator_core.graphs.once_per_replica import OncePerReplica
from estimator_core.graphs.program import Program, new_scope
from estimator_core.keras_in_graph.calling import call_model_fn
from estimator_core.run_config import RunConfig
from estimator_core.spec import calling
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn, ModelFn, ReceiverFn


@dataclasses.dataclass(frozen=True)
class Model:
    """What an Estimator was made of.

    Attributes:
        model_fn: As for `Estimator`.
        params: Hyperparameters; each call of a user's function gets a copy.
        config: How the graphs run.
        warm_start_settings: What variables start from while there is no checkpoint; or None.
    """

    model_fn: ModelFn
    params: Any
    config: RunConfig
    warm_start_settings: WarmStartSettings | None = None

    def input_fn(self, input_fn: InputFn, mode: str) -> Callable[..., Any]:
        """Returns `input_fn` as a function of the `tf.distribute.InputContext`, or of nothing."""

        def call(input_context: Any = None) -> Any:
            params = copy.deepcopy(self.params)
            return calling.call_input_fn(input_fn, mode, params, self.config, input_context)

        return call

    def step_fn(self, mode: str) -> StepFn:
        """Returns `model_fn` as a function of (features, labels)."""

        def call(features: Any, labels: Any) -> EstimatorSpec:
            params = copy.deepcopy(self.params)
            return call_model_fn(self.model_fn, features, labels, mode, params, self.config)

        return call


class BuiltInputs(NamedTuple):
    """A graph that has inputs, and no model yet.

    Attributes:
        graph: The graph.
        inputs: What input_fn has made in it.
    """

    graph: tf.Graph
    inputs: Inputs


def build_inputs(model: Model, execution: Execution, mode: str, input_fn: InputFn) -> BuiltInputs:
    """Returns the inputs of `mode` in a new graph, after calling input_fn; see `build`."""
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model.config)
        inputs = execution.make_inputs(model.input_fn(input_fn, mode), mode)
    return BuiltInputs(graph, inputs)


def build(
    model: Model,
    execution: Execution,
    mode: str,
    input_fn: InputFn,
    starts_from_checkpoint: bool,
) -> Program:
    """Returns the program of `mode` over `input_fn`, after calling both functions of the user's.

    Args:
        model: What is built.
        execution: How it will run.
        mode: One of `ModeKeys`.
        input_fn: As for `Estimator.train`.
        starts_from_checkpoint: Whether variables are restored; else they start as the warm start settings, if
            any, and their initializers say.
    """
    built = build_inputs(model, execution, mode, input_fn)
    return build_over(built, model, execution, mode, starts_from_checkpoint)


def build_over(
    built: BuiltInputs, model: Model, execution: Execution, mode: str, starts_from_checkpoint: bool
) -> Program:
    """Returns the program of `mode` over inputs, in their graph; see `build`."""
    graph, inputs = built
    with new_scope(graph, execution, model.config):
        step_fn = OncePerReplica(model.step_fn(mode), execution)
        step = execution.build_step(inputs, step_fn, mode)
        step_fn.check_done()
        if not starts_from_checkpoint:
            if model.warm_start_settings:
                warm_start.warm_start(model.warm_start_settings)
            scaffold = initial_values.in_order(step.spec.scaffold)
            step = step._replace(spec=step.spec._replace(scaffold=scaffold))
        fetches = _fetches(step.spec, mode)
    return Program(graph, execution, inputs, step, fetches, model.config)


def build_for_receiver(
    model: Model, execution: Execution, mode: str, receiver_fn: ReceiverFn
) -> tuple[Program, Any]:
    """Returns the program of `mode` over fed inputs, one copy of the model, and its receiver.

    Args:
        model: What is built.
        execution: How it will run.
        mode: One of `ModeKeys`.
        receiver_fn: Returns the receiver, whose features, and labels if it has any, model_fn is given.
    """
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model.config)
        receiver = receiver_fn()
        batch = (receiver.features, getattr(receiver, "labels", None))
        spec = with_metric_ops(model.step_fn(mode)(*batch))
    inputs = Inputs(lambda: batch, mode)
    return Program(graph, execution, inputs, Step(spec), spec.predictions, model.config), receiver


def build_for_features(
    model: Model, execution: Execution, features: Any
) -> tuple[Program, list[tf.Tensor]]:
    """Returns the program of PREDICT over fed features, and its placeholders.

    Args:
        model: What is built.
        execution: How it will run.
        features: Tensors of another graph, of the same kinds, types and shapes.
    """
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model.config)
        tensors = tf.nest.flatten(features, expand_composites=True)
        placeholders = [tf1.placeholder(tensor.dtype, tensor.shape) for tensor in tensors]
        fed = tf.nest.pack_sequence_as(features, placeholders, expand_composites=True)
        spec = model.step_fn(ModeKeys.PREDICT)(fed, None)
    inputs = Inputs(lambda: fed, ModeKeys.PREDICT)
    program = Program(graph, execution, inputs, Step(spec), spec.predictions, model.config)
    return program, placeholders


def _begin(graph: tf.Graph, config: RunConfig) -> None:
    tf1.set_random_seed(config.tf_random_seed)
    tf1.train.create_global_step(graph)


def _fetches(spec: EstimatorSpec, mode: str) -> Any:
    if mode == ModeKeys.TRAIN:
        return [spec.train_op, spec.loss]
    if mode == ModeKeys.EVAL:
        return evaluation_fetches(spec)
    return spec.predictions


def evaluation_fetches(spec: EstimatorSpec) -> tuple[dict[str, Any], Any]:
    """Returns (values, update_op) of the metrics of `spec` and the global step."""
    metrics = sorted(spec.eval_metric_ops.items())
    values = {name: value for name, (value, _) in metrics}
    values[tf1.GraphKeys.GLOBAL_STEP] = tf1.train.get_global_step()
    return values, tf.group(*(update for _, (_, update) in metrics))
