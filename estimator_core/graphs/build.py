"""Building the program of one mode from a model_fn and its inputs. Every call builds a new graph."""

from __future__ import annotations

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
from estimator_core.run_config import RunConfig
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn, ReceiverFn


@dataclasses.dataclass(frozen=True)
class Model:
    """Functions and settings of an Estimator, as they are when one of its methods is called."""

    call_model_fn: Callable[[Any, Any, str, RunConfig], EstimatorSpec]
    call_input_fn: Callable[..., Any]
    create_global_step: Callable[[tf.Graph], Any]
    config: RunConfig
    warm_start_settings: WarmStartSettings | None
    # Its values are equal as long as predictions can't have changed; None if that is unknown.
    fingerprint: Callable[[], Any]

    def input_fn(self, input_fn: InputFn, mode: str) -> Callable[..., Any]:
        """Returns `input_fn` as a function of an optional `tf.distribute.InputContext`."""

        def call(input_context: Any = None) -> Any:
            # A subclass written before TensorFlow 1.13 overrides it without `input_context`.
            context = () if input_context is None else (input_context,)
            return self.call_input_fn(input_fn, mode, *context)

        return call

    def step_fn(self, mode: str) -> StepFn:
        """Returns `model_fn` as a function of (features, labels)."""
        return lambda features, labels: self.call_model_fn(features, labels, mode, self.config)


class BuiltInputs(NamedTuple):
    """A graph that has inputs, but no model yet."""

    graph: tf.Graph
    inputs: Inputs  # Inputs that input_fn created in the graph


def build_inputs(model: Model, execution: Execution, mode: str, input_fn: InputFn) -> BuiltInputs:
    """Returns the inputs of `mode` in a new graph, after calling input_fn; see `build`."""
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model)
        inputs = execution.make_inputs(model.input_fn(input_fn, mode), mode)
    return BuiltInputs(graph, inputs)


def build(
    model: Model,
    execution: Execution,
    mode: str,
    input_fn: InputFn,
    starts_from_checkpoint: bool,
) -> Program:
    """Returns the program of `mode`, built by calling `input_fn` and the model_fn."""
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
    """Returns the program of `mode` over fed inputs, with one copy of the model, and the receiver.

    `receiver_fn`: function that returns the receiver; model_fn gets its features, and its labels if any.
    """
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model)
        receiver = receiver_fn()
        batch = (receiver.features, getattr(receiver, "labels", None))
        spec = with_metric_ops(model.step_fn(mode)(*batch))
    inputs = Inputs(lambda: batch, mode)
    return Program(graph, execution, inputs, Step(spec), spec.predictions, model.config), receiver


def build_for_features(
    model: Model, execution: Execution, features: Any
) -> tuple[Program, list[tf.Tensor]]:
    """Returns the program of PREDICT over fed features, and its placeholders.

    `features`: tensors of another graph; the placeholders get their kinds, types and shapes.
    """
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model)
        tensors = tf.nest.flatten(features, expand_composites=True)
        placeholders = [tf1.placeholder(tensor.dtype, tensor.shape) for tensor in tensors]
        fed = tf.nest.pack_sequence_as(features, placeholders, expand_composites=True)
        spec = model.step_fn(ModeKeys.PREDICT)(fed, None)
    inputs = Inputs(lambda: fed, ModeKeys.PREDICT)
    program = Program(graph, execution, inputs, Step(spec), spec.predictions, model.config)
    return program, placeholders


def _begin(graph: tf.Graph, model: Model) -> None:
    tf1.set_random_seed(model.config.tf_random_seed)
    model.create_global_step(graph)


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
