"""InMemoryEvaluatorHook: evaluates the model during training, without a checkpoint in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator_core import summaries, tf1
from estimator_core.estimator import Estimator
from estimator_core.graphs import loops
from estimator_core.spec.arguments import checked_instances, checked_steps
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import Hook, InputFn


class InMemoryEvaluatorHook(tf1.train.SessionRunHook):
    """Evaluates with the current variables of training: at its start, every n steps and at its end.

    The evaluation has its own graph and session, built once; the values of all variables are
    copied in memory. Local variables (those of metrics) and lookup tables are initialized in each
    evaluation. Its results go to the log and to `estimator.eval_dir(name)`.

    Example:
        >>> hook = InMemoryEvaluatorHook(estimator, eval_input_fn, every_n_iter=500)  # doctest: +SKIP
        >>> estimator.train(input_fn, hooks=[hook], steps=2000)  # doctest: +SKIP

    Args:
        estimator: The Estimator that is trained with this hook.
        input_fn: Input to evaluate on; see `Estimator.evaluate`.
        steps: Batches to evaluate; None goes to the end of the input.
        hooks: `SessionRunHook`s called around each batch of an evaluation.
        name: Name of the evaluation: its summaries go to `eval_<name>`.
        every_n_iter: Training iterations between two evaluations.

    Raises:
        TypeError: `estimator` is not an Estimator.
        ValueError: `every_n_iter` or `steps` is not above 0, or the Estimator trains in a cluster of
            several tasks. Once training begins: the graph of training lacks a variable of the evaluation,
            or saves other objects than variables, such as a `MutableHashTable`, or the evaluation's Scaffold
            has a saver or an init_fn.

    Source: `tf.estimator.experimental.InMemoryEvaluatorHook`. Ours does not evaluate a second time at
    the end when the last evaluation was at the last step.
    """

    def __init__(
        self,
        estimator: Estimator,
        input_fn: InputFn,
        steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        name: str | None = None,
        every_n_iter: int = 100,
    ):
        if not isinstance(estimator, Estimator):
            raise TypeError(f"estimator must be an Estimator. Received: estimator={estimator!r}")
        if every_n_iter is None or every_n_iter <= 0:
            raise ValueError(f"every_n_iter must be above 0. Received: every_n_iter={every_n_iter}")
        if estimator.config.num_ps_replicas > 0 or estimator.config.num_worker_replicas > 1:
            raise ValueError(
                "InMemoryEvaluatorHook supports only a single machine: in a cluster, let the evaluator "
                "task of train_and_evaluate evaluate. Received: "
                f"cluster={estimator.config.cluster_spec.as_dict()}"
            )
        self._estimator = estimator
        self._input_fn = input_fn
        self._steps = checked_steps("steps", steps)
        self._hooks = checked_instances(hooks, "hooks")
        self._name = name
        self._every_n_iter = every_n_iter
        self._iterations = 0
        self._evaluated_at: tuple[int, int] | None = None

    def begin(self) -> None:
        """Builds the graph of the evaluation, next to that of training."""
        self._iterations = 0
        self._evaluated_at = None
        graph = tf1.get_default_graph()
        self._global_step = tf1.train.get_global_step()
        # The tensors that read variables; reading one that has a copy on each device adds operations.
        self._sources = {
            variable.op.name: graph.as_graph_element(variable) for variable in tf1.global_variables()
        }
        program = self._estimator.build_program(ModeKeys.EVAL, self._input_fn, False)
        with program.scope():
            variables = {variable.op.name: variable for variable in tf1.global_variables()}
            missing = sorted(set(variables) - set(self._sources))
            if missing:
                raise ValueError(
                    "Evaluation has variables that the graph of training lacks, so they have no "
                    "values: create them in every mode of model_fn, or make them local variables. "
                    f"Received: {missing}"
                )
            self._values = {
                name: tf1.placeholder(variable.dtype.base_dtype, variable.shape)
                for name, variable in variables.items()
            }
            assigned = [variables[name].assign(value) for name, value in self._values.items()]
            self._feed: dict[Any, Any] = {}
            scaffold = program.spec.scaffold
            for name, value in (("saver", scaffold.saver), ("init_fn", scaffold.init_fn)):
                if value is not None:
                    raise ValueError(
                        f"InMemoryEvaluatorHook does not support a Scaffold with {name}: variables get the "
                        f"values of training. Leave it out in EVAL. Received: {name}={value}"
                    )
            self._program = program.with_scaffold(
                tf1.train.Scaffold(
                    init_op=tf.group(*assigned),
                    init_feed_dict=self._feed,
                    ready_op=scaffold.ready_op,
                    ready_for_local_init_op=scaffold.ready_for_local_init_op,
                    local_init_op=scaffold.local_init_op,
                    local_init_feed_dict=scaffold.local_init_feed_dict,
                    summary_op=scaffold.summary_op,
                )
            )

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Evaluates the model at the start of training."""
        del coord
        saved = session.graph.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)
        if saved:
            raise ValueError(
                "InMemoryEvaluatorHook does not support saveables other than global variables, whose values "
                f"it copies: evaluate checkpoints, by train_and_evaluate. Received: {saved}"
            )
        self._evaluate(session)

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns the number of steps until the next evaluation."""
        del global_step
        return self._every_n_iter - self._iterations % self._every_n_iter

    def skip_steps(self, steps: int) -> None:
        """Counts steps without calls of this hook."""
        self._iterations += steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Evaluates after every `every_n_iter` iterations."""
        del run_values
        self._iterations += 1
        if self._iterations % self._every_n_iter == 0:
            self._evaluate(run_context.session)

    def end(self, session: Any) -> None:
        """Evaluates the trained model."""
        # If the input ends within a loop of several steps, the loop made steps that were not counted.
        if self._evaluated_at != (self._iterations, int(session.run(self._global_step))):
            self._evaluate(session)

    def _evaluate(self, session: Any) -> None:
        current = session.run({name: self._sources[name] for name in self._values})
        self._feed.update({self._values[name]: value for name, value in current.items()})
        results = loops.evaluate(self._program, None, self._steps, self._hooks)
        step = int(results[tf1.GraphKeys.GLOBAL_STEP])
        summaries.write_evaluation(self._estimator.eval_dir(self._name), results, step)
        self._evaluated_at = (self._iterations, step)
