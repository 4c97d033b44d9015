"""The executor of `train_and_evaluate` in tensorflow_estimator, which programs give a listener."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from estimator_core import cluster, tf1
from estimator_core.estimator import Estimator
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import checked_instances
from estimator_core.spec.types import Hook
from estimator_core.training.continuous_evaluation import evaluate_continuously
from estimator_core.training.evaluator import Evaluation, Evaluator
from estimator_core.training.in_turns import train_and_evaluate_in_turns
from estimator_core.training.specs import EvalSpec, TrainSpec, check_every_n_steps
from estimator_core.training.train_and_evaluate import check_arguments, run

CHIEF = cluster.CHIEF
EVALUATOR = cluster.EVALUATOR
PS = cluster.PS
WORKER = cluster.WORKER


class _EvalStatus:
    """The outcomes of a pass of the evaluator."""

    EVALUATED = "evaluated"
    MISSING_CHECKPOINT = "missing checkpoint"
    NO_NEW_CHECKPOINT = "no new checkpoint"


class _ResultFields(NamedTuple):
    status: str
    metrics: Mapping[str, Any] | None
    checkpoint_path: str | None


class _EvalResult(_ResultFields):
    """The result of a pass of the evaluator.

    `metrics`: metrics of the evaluation, "global_step" among them; None without one.
    """

    __slots__ = ()

    def __new__(
        cls, status: str, metrics: Mapping[str, Any] | None = None, checkpoint_path: str | None = None
    ) -> _EvalResult:
        if status != _EvalStatus.EVALUATED:
            if metrics or checkpoint_path:
                raise ValueError(
                    f"metrics and checkpoint_path must be empty if status is {status!r}. Received: "
                    f"metrics={metrics!r}, checkpoint_path={checkpoint_path!r}"
                )
            return super().__new__(cls, status, metrics, checkpoint_path)
        if not metrics or not checkpoint_path:
            raise ValueError(
                "An evaluation needs metrics and a checkpoint_path. Received: "
                f"metrics={metrics!r}, checkpoint_path={checkpoint_path!r}"
            )
        if not isinstance(metrics, Mapping):
            raise TypeError(f"`Estimator.evaluate` should return a dict. Received: {metrics!r}")
        if tf1.GraphKeys.GLOBAL_STEP not in metrics:
            raise ValueError(f"The metrics must have {tf1.GraphKeys.GLOBAL_STEP!r}. Received: {metrics!r}")
        return super().__new__(cls, status, metrics, checkpoint_path)


class _ContinuousEvalListener:
    """Base of listeners that may end the training and evaluation at each pass of the evaluator."""

    def before_eval(self) -> bool:
        """Returns whether to go on; called before each pass."""
        return True

    def after_eval(self, eval_result: _EvalResult) -> bool:
        """Returns whether to go on; called after each pass."""
        del eval_result
        return True


class _EvaluatorWithListener(Evaluator):
    """An `Evaluator` that asks a listener at each pass whether to go on.

    After the end, the last checkpoint's exports are made as final ones.
    """

    def __init__(self, estimator: Estimator, eval_spec: EvalSpec, listener: _ContinuousEvalListener):
        super().__init__(estimator, eval_spec)
        self._listener = listener

    def evaluate_and_export(self, is_the_final_export: bool) -> Evaluation | None:
        """Returns the evaluation of the newest checkpoint; see `Evaluator`."""
        if self.is_over:
            return super().evaluate_and_export(is_the_final_export)
        if not self._listener.before_eval():
            logger.info("The listener ends the evaluation, by before_eval.")
            self.is_over = True
            return self.newest
        before = None if self.newest is None else self.newest.checkpoint_path
        evaluation = super().evaluate_and_export(is_the_final_export)
        if not self._listener.after_eval(_result_of(evaluation, before)):
            logger.info("The listener ends the evaluation, by after_eval.")
            self.is_over = True
        return evaluation


def _result_of(evaluation: Evaluation | None, before: str | None) -> _EvalResult:
    if evaluation is None:
        return _EvalResult(_EvalStatus.MISSING_CHECKPOINT)
    if evaluation.checkpoint_path == before:
        return _EvalResult(_EvalStatus.NO_NEW_CHECKPOINT)
    return _EvalResult(_EvalStatus.EVALUATED, evaluation.metrics, evaluation.checkpoint_path)


class _TrainingExecutor:
    """Runs `train_and_evaluate` or its parts.

    `continuous_eval_listener`: listener that may end the training and evaluation; None never does.
    """

    # Private methods of 2.15 that nothing calls here.
    _NOT_CALLED = (
        "_execute_evaluator_once",
        "_start_continuous_evaluation",
        "_start_distributed_training",
        "_start_std_server",
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if unused := [name for name in cls._NOT_CALLED if name in vars(cls)]:
            logger.warning(
                "%s defines %s, which the executor of estimator_core does not call.",
                cls.__name__,
                ", ".join(unused),
            )

    def __init__(
        self,
        estimator: Estimator,
        train_spec: TrainSpec,
        eval_spec: EvalSpec,
        train_hooks: Sequence[Hook] | None = None,
        continuous_eval_listener: _ContinuousEvalListener | None = None,
    ):
        check_arguments(estimator, train_spec, eval_spec)
        if continuous_eval_listener is not None and not isinstance(
            continuous_eval_listener, _ContinuousEvalListener
        ):
            raise TypeError(
                "`continuous_eval_listener` must have type `_ContinuousEvalListener`. "
                f"Received: {continuous_eval_listener!r}"
            )
        self._estimator = estimator
        self._train_spec = train_spec
        self._eval_spec = eval_spec
        self._train_hooks = checked_instances(train_hooks, "train_hooks")
        self._continuous_eval_listener = continuous_eval_listener or _ContinuousEvalListener()

    @property
    def estimator(self) -> Estimator:
        """The Estimator to train."""
        return self._estimator

    def run(self) -> Any:
        """Runs this task's part; returns the result of `train_and_evaluate`."""
        return run(self._estimator, self._all_of_train_spec, self._eval_spec, self._evaluator())

    def run_chief(self) -> Any:
        """Runs the part of a chief: trains. Without a cluster, this process is the chief."""
        return self._run_part(cluster.CHIEF, self._train)

    def run_worker(self) -> Any:
        """Runs the part of a worker: trains. Without a cluster, this process is the only one."""
        return self._run_part(cluster.WORKER, self._train)

    def run_master(self) -> Any:
        """Runs the part of a master: trains and evaluates."""
        return self._run_part(cluster.MASTER, self.run_local)

    def run_ps(self) -> Any:
        """Runs the part of a parameter server of a cluster; does not return."""
        return self._run_part(cluster.PS, None)

    def _run_part(self, task_type: str, run_alone: Callable[[], Any] | None) -> Any:
        """Runs the part of a task, or without a cluster calls `run_alone`."""
        config = self._estimator.config
        if config.is_in_cluster and config.task_type == task_type:
            return self.run()
        if config.is_in_cluster or run_alone is None:
            this = f"type {config.task_type!r}" if config.is_in_cluster else "no cluster"
            raise ValueError(
                f"run_{task_type}() runs the part of a task of type {task_type!r} of a cluster; run() runs "
                f"the part of any task. Received: {this} in TF_CONFIG"
            )
        return run_alone()

    def _train(self) -> None:
        spec = self._all_of_train_spec
        self._estimator.train(
            spec.input_fn, hooks=spec.hooks, max_steps=spec.max_steps, saving_listeners=spec.saving_listeners
        )

    def run_local(self) -> Any:
        """Trains and evaluates on one machine."""
        check_every_n_steps(self._eval_spec, self._estimator.config)
        return train_and_evaluate_in_turns(
            self._estimator, self._all_of_train_spec, self._eval_spec, evaluator=self._evaluator()
        )

    def run_evaluator(self) -> Any:
        """Evaluates checkpoints until the last step's."""
        check_every_n_steps(self._eval_spec, self._estimator.config)
        return evaluate_continuously(
            self._estimator, self._eval_spec, self._train_spec.max_steps, evaluator=self._evaluator()
        )

    @property
    def _all_of_train_spec(self) -> TrainSpec:
        hooks = (*self._train_spec.hooks, *self._train_hooks)
        return self._train_spec._replace(hooks=hooks)

    def _evaluator(self) -> Evaluator:
        return _EvaluatorWithListener(self._estimator, self._eval_spec, self._continuous_eval_listener)


def _assert_eval_spec(eval_spec: Any) -> None:
    """Checks the type of an `EvalSpec`."""
    if not isinstance(eval_spec, EvalSpec):
        raise TypeError(f"`eval_spec` must have type `EvalSpec`. Received: {eval_spec!r}")


# tensorflow.python.distribute.estimator_training. Here the executor runs every kind of cluster.


def should_run_distribute_coordinator(config: RunConfig) -> bool:
    """Returns False: a program then calls its executor, which runs every kind of cluster."""
    del config
    return False


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec, executor_cls: type[_TrainingExecutor]
) -> Any:
    """Runs this task's part with an executor of a class; returns the executor's result."""
    return executor_cls(estimator, train_spec, eval_spec).run()
