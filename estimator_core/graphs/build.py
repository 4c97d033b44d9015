"""The graphs of a model: one for each mode, built from input_fn and model_fn."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints import warm_start, warm_start_settings
from estimator_core.execution.base import Execution, Inputs
from estimator_core.execution.select import select_execution
from estimator_core.graphs import initial_values
from estimator_core.graphs.program import (
    KeptPrograms,
    Program,
    forgets_its_runs,
)
from estimator_core.keras_in_graph.calling import call_model_fn
from estimator_core.run_config import RunConfig
from estimator_core.spec import calling
from estimator_core.spec.estimator_spec import EstimatorSpec
from estimator_core.spec.mode_keys import ModeKeys

_LOSS = "loss"


class ModelGraphs:
    """Builds graphs of a model, and keeps those that evaluation and prediction can run again.

    Args:
        model_fn: As for `Estimator`.
        params: Hyperparameters; each call of a user's function gets a copy.
        config: How the graphs run.
        warm_start_settings: What variables start from while there is no checkpoint; or None.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        params: Any,
        config: RunConfig,
        warm_start_settings: warm_start_settings.WarmStartSettings | None,
    ):
        self._model_fn = model_fn
        self._params = params
        self._config = config
        self._warm_start_settings = warm_start_settings
        self._kept = KeptPrograms()

    @contextlib.contextmanager
    def new(self, execution: Execution) -> Iterator[tf.Graph]:
        """Makes a new graph the default one, with its seed and global step, and yields it."""
        with (
            tf.Graph().as_default() as graph,
            graph.device(self._config.device_fn),
            execution.scope(),
        ):
            tf1.set_random_seed(self._config.tf_random_seed)
            tf1.train.create_global_step(graph)
            yield graph

    def inputs(self, execution: Execution, input_fn: Callable[..., Any], mode: str) -> Inputs:
        """Calls `input_fn` in the current graph and returns its tensors."""

        def call(input_context: Any = None) -> Any:
            params = copy.deepcopy(self._params)
            return calling.call_input_fn(input_fn, mode, params, self._config, input_context)

        return execution.make_inputs(call, mode)

    def spec(self, execution: Execution, inputs: Inputs, mode: str) -> EstimatorSpec:
        """Calls `model_fn` in the current graph, on each replica, and returns the spec of them all.

        The spec for evaluation has the metric "loss", the mean over batches.
        """
        model_fn = self.model_fn(mode)
        if mode == ModeKeys.EVAL:
            model_fn = _with_loss_metric(model_fn)
        return execution.call_model_fn(model_fn, inputs, mode)

    def model_fn(self, mode: str) -> Callable[[Any, Any], EstimatorSpec]:
        """Returns `model_fn` as a function of (features, labels)."""

        def call(features: Any, labels: Any) -> EstimatorSpec:
            params = copy.deepcopy(self._params)
            return call_model_fn(self._model_fn, features, labels, mode, params, self._config)

        return call

    def with_initial_values(self, spec: EstimatorSpec) -> EstimatorSpec:
        """Returns the spec of the current graph to start with, where there is no checkpoint.

        Variables start as the warm start settings, if any, say.
        """
        if self._warm_start_settings:
            warm_start.warm_start(self._warm_start_settings)
        return spec._replace(scaffold=initial_values.in_order(spec.scaffold))

    def program(
        self,
        mode: str,
        input_fn: Callable[..., Any],
        checkpoint_path: str | None,
        hooks: Sequence[Any],
        fetches: Callable[[EstimatorSpec], Any],
        fetches_key: Any = None,
    ) -> Program:
        """Returns the program of `mode` over `input_fn`: the kept one, if it has the same input.

        What model_fn names outside of itself must be the same, too.

        `input_fn` is called each time, so what it builds is never stale. A program is kept for the
        next time when it starts from a checkpoint and no hook may want to add to its graph.

        Args:
            mode: EVAL or PREDICT.
            input_fn: As for `Estimator.evaluate`.
            checkpoint_path: What variables are restored from; None initializes them.
            hooks: The caller's `SessionRunHook`s.
            fetches: Function from the spec to what the mode reads from the graph.
            fetches_key: What tells these fetches from others of the same mode, by its `repr`.
        """
        execution = select_execution(self._config, mode)
        with self.new(execution) as graph:
            inputs = self.inputs(execution, input_fn, mode)
            fingerprint = None
            program = self._kept.take(mode, fingerprint)
            if program is None:
                spec = self.spec(execution, inputs, mode)
                if checkpoint_path is None:
                    spec = self.with_initial_values(spec)
                if spec.evaluation_hooks or spec.prediction_hooks:
                    fingerprint = None
                fetched = fetches(spec)
                program = Program(execution, graph, spec, inputs, fetched, fingerprint)
                program.keeps_session = fingerprint is not None and forgets_its_runs(graph, fetched)
        program.checkpoint_path = checkpoint_path
        return program

    @contextlib.contextmanager
    def kept_after_use(self, mode: str, program: Program) -> Iterator[None]:
        """Keeps the program for the next call, unless it fails."""
        try:
            yield
        except GeneratorExit:
            self._kept.give_back(mode, program)
            raise
        except BaseException:
            program.release()
            raise
        self._kept.give_back(mode, program)

    def forget(self) -> None:
        """Closes the sessions that are kept, and frees what they hold on the devices."""
        self._kept.clear()


def _with_loss_metric(
    model_fn: Callable[[Any, Any], EstimatorSpec],
) -> Callable[[Any, Any], EstimatorSpec]:
    def call(features: Any, labels: Any) -> EstimatorSpec:
        spec = model_fn(features, labels)
        for name in {_LOSS, tf1.GraphKeys.GLOBAL_STEP}.intersection(spec.eval_metric_ops):
            raise ValueError(
                f"Metric with name {name!r} is not allowed, because Estimator already defines a "
                "default metric with the same name."
            )
        before = len(tf1.local_variables())
        loss = tf1.metrics.mean(spec.loss)
        if spec.scaffold.local_init_op is not None:  # made before there was this metric
            mine = [variable.initializer for variable in tf1.local_variables()[before:]]
            local_init_op = tf.group(spec.scaffold.local_init_op, *mine)
            scaffold = tf1.train.Scaffold(
                local_init_op=local_init_op, copy_from_scaffold=spec.scaffold
            )
            spec = spec._replace(scaffold=scaffold)
        return spec._replace(eval_metric_ops={**spec.eval_metric_ops, _LOSS: loss})

    return call
