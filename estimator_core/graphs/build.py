"""Building the program of one mode from a model_fn and its inputs. Every call builds a new graph."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.warm_start_report import warm_start
from estimator_core.checkpoints.warm_start_settings import WarmStartSettings
from estimator_core.execution.base import Execution, Step, StepFn
from estimator_core.execution.current import current_execution
from estimator_core.execution.evaluation_metrics import with_metric_ops
from estimator_core.execution.inputs import Inputs
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
    model: Model, execution: Execution, mode: str, input_fn: InputFn, starts_from_checkpoint: bool
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
                warm_start(model.warm_start_settings)
            scaffold = _in_order(step.spec.scaffold)
            step = step._replace(spec=step.spec._replace(scaffold=scaffold))
        fetches: Any = step.spec.predictions
        if mode == ModeKeys.TRAIN:
            fetches = [step.spec.train_op, step.spec.loss]
        elif mode == ModeKeys.EVAL:
            fetches = evaluation_fetches(step.spec)
    return Program(graph, execution, inputs, step, fetches, model.config)


def build_for_receiver(
    model: Model, execution: Execution, mode: str, receiver_fn: ReceiverFn
) -> tuple[Program, Any]:
    """Returns the program of `mode` over fed inputs, with one copy of the model, and the receiver."""
    graph = tf.Graph()
    with new_scope(graph, execution, model.config):
        _begin(graph, model)
        receiver = receiver_fn()
        batch = (receiver.features, getattr(receiver, "labels", None))
        spec = with_metric_ops(model.step_fn(mode)(*batch))
    inputs = Inputs(lambda: batch, mode)
    return Program(graph, execution, inputs, Step(spec), spec.predictions, model.config), receiver


def build_for_features(model: Model, execution: Execution, features: Any) -> tuple[Program, list[tf.Tensor]]:
    """Returns the program of PREDICT over placeholders for another graph's features, and these."""
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


def evaluation_fetches(spec: EstimatorSpec) -> tuple[dict[str, Any], Any]:
    """Returns (values, update_op) of the metrics of `spec` and the global step."""
    metrics = sorted(spec.eval_metric_ops.items())
    values = {name: value for name, (value, _) in metrics}
    values[tf1.GraphKeys.GLOBAL_STEP] = tf1.train.get_global_step()
    return values, tf.group(*(update for _, (_, update) in metrics))


def _in_order(scaffold: Any) -> Any:
    """Returns a Scaffold that initializes each variable after those that its initial value reads.

    TensorFlow initializes all variables in parallel and may read a value before it is set. For example, the
    learning rate of a tf_keras optimizer with a schedule is initialized from the optimizer's step count.

    `scaffold`: scaffold of the current graph. It is returned unchanged if it has its own `init_op`, or if
    no variable is initialized from another.
    """
    if scaffold.init_op is not None or tf1.get_collection(tf1.GraphKeys.INIT_OP):
        return scaffold
    first, *later = _levels(tf1.global_variables()) or [[]]
    if not later:
        return scaffold
    resources = [resource.create for resource in tf1.get_collection(tf1.GraphKeys.RESOURCES)]
    others = tf1.get_collection("saved_model_initializers")
    init_op = tf.group(*(variable.initializer for variable in first), *resources, *others)
    then = [[variable.initializer for variable in level] for level in later]

    def init_fn(_: Any, session: Any) -> None:
        for initializers in then:
            session.run(initializers)
        if scaffold.init_fn is not None:
            scaffold.init_fn(session)

    return tf1.train.Scaffold(init_op=init_op, init_fn=init_fn, copy_from_scaffold=scaffold)


def _levels(variables: list[Any]) -> list[list[Any]]:
    """Returns lists of variables such that each variable only reads those of earlier lists."""
    components = current_execution().components
    owners = {part.op: variable for variable in variables for part in components(variable)}
    remaining = {id(variable): _sources(variable, owners) for variable in variables}
    levels = []
    while remaining:
        ready = {key for key, sources in remaining.items() if not sources & remaining.keys()}
        ready = ready or set(remaining)  # a cycle, which TensorFlow refuses
        levels.append([variable for variable in variables if id(variable) in ready])
        remaining = {key: sources for key, sources in remaining.items() if key not in ready}
    return levels


def _sources(variable: Any, owners: dict[tf.Operation, Any]) -> set[int]:
    """Returns the ids of other variables that the initializer of `variable` reads."""
    source_ids = set()
    # A warm start's initializer is a tensor.
    pending = [getattr(variable.initializer, "op", variable.initializer)]
    reached = set(pending)
    while pending:
        operation = pending.pop()
        if operation.type == "ReadVariableOp":
            source = owners.get(operation.inputs[0].op)
            if source is not None and source is not variable:
                source_ids.add(id(source))
        for previous in [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]:
            if previous not in reached:
                reached.add(previous)
                pending.append(previous)
    return source_ids


class OncePerReplica:
    """A step function that enforces the rules of `Execution.build_step` on its calls.

    A model that is built a second time has its own variables, or none: `reuse` does not find Keras layers,
    optimizers' slots or unnamed variables again. Such a step would train a copy.

    `execution`: execution that calls it, in the current default graph.
    """

    def __init__(self, step_fn: StepFn, execution: Execution):
        self._step_fn = step_fn
        self._execution = execution
        self._graph = tf1.get_default_graph()
        self._calls = 0

    def __call__(self, features: Any, labels: Any) -> EstimatorSpec:
        self._calls += 1
        if self._calls > self._execution.num_models:
            raise RuntimeError(f"{self._rule()} Received: call number {self._calls}.")
        graph = tf1.get_default_graph()
        if graph is not self._graph:
            raise RuntimeError(f"{self._rule()} Received: a call in a {type(graph).__name__}.")
        return self._step_fn(features, labels)

    def check_done(self) -> None:
        """Checks that there is a model for each replica."""
        if self._calls < self._execution.num_models:
            raise RuntimeError(f"{self._rule()} Received: {self._calls} calls.")

    def _rule(self) -> str:
        return (
            f"{type(self._execution).__name__}.build_step must call step_fn exactly once for each replica "
            f"(num_replicas={self._execution.num_models}), in the graph in which it is called. A loop over "
            "steps repeats the train_op of the finished step; it does not build the model again."
        )
