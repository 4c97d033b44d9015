"""The parts of a cluster's tasks in train_and_evaluate.

| task | part |
|---|---|
| chief | trains; initializes or restores the variables, saves checkpoints, writes summaries |
| master | as the chief, and evaluates and exports at its checkpoints |
| worker | trains; begins 5 seconds after the previous task, so that the first steps don't all collide |
| ps | holds variables; it serves until its process is ended, as nothing tells it that training is over |
| evaluator | evaluates and exports the checkpoints of the other tasks, to the last one |

SIGTERM ends a chief, master or worker after the current step, with exit code 143
(`termination.SIGTERM_EXIT_CODE`): the chief saves a checkpoint first, and the next run continues from it.
A parameter server ends after the tasks that train, or 25 seconds after SIGTERM.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from estimator_core.cluster import CHIEF, EVALUATOR, MASTER, PS, TASK_TYPES, WORKER
from estimator_core.estimator import Estimator
from estimator_core.execution.cluster.server import answers, tasks_that_train_answer
from estimator_core.execution.select import check_training, start_task_server
from estimator_core.logs import logger
from estimator_core.run_config import RunConfig
from estimator_core.training.continuous_evaluation import evaluate_continuously
from estimator_core.training.evaluator import Evaluator
from estimator_core.training.in_turns import train_and_evaluate_in_turns
from estimator_core.training.specs import EvalSpec, TrainSpec
from estimator_core.training.termination import ends_on_sigterm, serve_until_sigterm

_DELAY_SECS_PER_WORKER = 5
_MAX_DELAY_SECS = 60


def run_task(
    estimator: Estimator,
    train_spec: TrainSpec,
    eval_spec: EvalSpec,
    sleep: Callable[[float], None] = time.sleep,
    evaluator: Evaluator | None = None,
) -> tuple[dict[str, Any] | None, list[bytes | None]] | None:
    """Runs the part of this task; see the table above.

    `sleep`: function that waits for a number of seconds.
    Returns the evaluator returns the metrics of the last evaluation and the results of its exporters. The
    chief, the master and workers return None. A parameter server does not return.

    Source: `tf.estimator.train_and_evaluate`'s tasks. Difference: in 2.15, the evaluator returned
    None.
    """
    config = estimator.config
    if config.task_type not in TASK_TYPES:
        raise ValueError(
            f"train_and_evaluate has no part for a task of type {config.task_type!r}; the types are "
            f"{TASK_TYPES}. Let that task run its own program."
        )
    check_training(config)  # before any task waits for others
    if config.task_type == EVALUATOR:
        chief = config.task_cluster.chief_address
        return evaluate_continuously(
            estimator,
            eval_spec,
            train_spec.max_steps,
            chief_is_there=lambda: bool(chief) and answers(chief),
            evaluator=evaluator,
        )
    _start_server(config)
    if config.task_type == PS:
        serve_until_sigterm(lambda: tasks_that_train_answer(config.task_cluster))
    with ends_on_sigterm() as termination:
        train_spec = train_spec._replace(hooks=(*train_spec.hooks, *termination.hooks))
        if config.task_type == MASTER:
            train_and_evaluate_in_turns(
                estimator, train_spec, eval_spec, termination.exit_if_asked, evaluator
            )
        else:
            _train(estimator, train_spec, sleep)
    return None


def _start_server(config: RunConfig) -> None:
    if config.is_distributed:
        start_task_server(config)
    else:
        logger.info("No TensorFlow server is started: the cluster has one task.")


def _train(estimator: Estimator, train_spec: TrainSpec, sleep: Callable[[float], None]) -> None:
    config = estimator.config
    if config.task_type == CHIEF:
        logger.info(
            "This task trains and does not evaluate. If nothing evaluates the checkpoints, start one "
            'more process with the task type "evaluator" in its TF_CONFIG and the same model_dir.'
        )
    delay = start_delay_secs(config)
    if delay:
        logger.info("Waiting %g secs before starting training.", delay)
        sleep(delay)
    estimator.train(
        train_spec.input_fn,
        hooks=train_spec.hooks,
        max_steps=train_spec.max_steps,
        saving_listeners=train_spec.saving_listeners,
    )


def start_delay_secs(config: RunConfig) -> float:
    """Returns the number of seconds that this task waits before it trains.

    A worker begins after the chief, unless all train synchronously.
    """
    if config.task_type != WORKER or config.trains_by_strategy:
        return 0
    most = config.experimental_max_worker_delay_secs
    delay = _DELAY_SECS_PER_WORKER * (config.task_id + 1)
    return min(delay, _MAX_DELAY_SECS if most is None else most)
