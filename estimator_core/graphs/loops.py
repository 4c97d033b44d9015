"""The train and evaluate loops, each written once, for every Execution."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator_core import summaries, tf1
from estimator_core.checkpoints.background_saver import BackgroundSaver, GraphOnceSaverHook, WaitForCheckpoint
from estimator_core.checkpoints.latest import latest_checkpoint, name_newest
from estimator_core.execution.evaluation_metrics import SHARE_WITH_ROWS
from estimator_core.graphs.batch_runner import BatchRunner
from estimator_core.graphs.loop_runner import LoopRunner
from estimator_core.graphs.program import Program
from estimator_core.graphs.restoring import (
    HookVariablesSessionCreator,
    RestoringSessionCreator,
    check_checkpoint,
)
from estimator_core.graphs.step_runner import StepRunner
from estimator_core.hooks.initialization import InitializationHook
from estimator_core.hooks.intervals import is_of_library
from estimator_core.hooks.keep_checkpoints import KeepCheckpoints
from estimator_core.hooks.nan_loss import NanLossHook, SaverUnlessNan
from estimator_core.hooks.training_progress import ProgressHook
from estimator_core.logs import logger
from estimator_core.spec.types import Hook, SavingListener

_MIN_SECS_TO_MEASURE_WAIT = 1.0  # the share of a shorter time says little
_MIN_SECS_TO_LOG_WAIT = 10.0  # a shorter training is not worth a line
_LARGE_WAIT_SHARE = 0.3
_INPUT_WAIT_ADVICE = (
    "; its input takes longer than its steps: batch before map, to parse whole batches; cache() data that "
    "fits in memory; num_parallel_calls=tf.data.AUTOTUNE for map; prefetch(tf.data.AUTOTUNE) last"
)


class Trained(NamedTuple):
    """The outcome of a training run.

    `loss`: loss of the last step, a NumPy scalar; None if there was no step.
    `global_step`: global step at the end; None if there was no step.
    """

    loss: Any
    global_step: int | None
    input_ended: bool


def train(
    program: Program, hooks: Sequence[Hook] = (), saving_listeners: Sequence[SavingListener] = ()
) -> Trained:
    """Trains from the newest checkpoint on, until a hook or the end of the input stops it."""
    spec, config = program.spec, program.config
    with program.scope():
        tf1.add_to_collection(tf1.GraphKeys.LOSSES, spec.loss)  # where hooks look for it
        summaries.add_loss_summary(spec.loss)
        progress = ProgressHook(spec.loss, config.log_step_count_steps)
        nan_loss = NanLossHook(spec.loss)
        hooks, saver = _train_hooks(program, hooks, saving_listeners, progress)
        hooks = [nan_loss, *(SaverUnlessNan(hook, nan_loss) if _is_saver(hook) else hook for hook in hooks)]
        loss = None
        input_ended = False
        model_dir = config.model_dir or ""  # an Estimator's config always has one
        checkpoint_path = latest_checkpoint(model_dir)
        if program.execution.is_chief:
            name_newest(model_dir, checkpoint_path)
        check_checkpoint(spec, checkpoint_path)
        creator = HookVariablesSessionCreator(
            program.session_creator(checkpoint_dir=config.model_dir), spec.scaffold, checkpoint_path
        )
        runner_class = StepRunner if program.execution.loop_size is None else LoopRunner
        run_steps = runner_class(program, hooks)
        with (
            program.execution.training(),
            tf1.train.MonitoredSession(creator, hooks=run_steps.hooks) as session,
            saver.waited_for_after_errors() if saver else contextlib.nullcontext(),
        ):
            try:
                while not session.should_stop():
                    _, loss = run_steps(session)
                    nan_loss.raise_if_found()
            except tf.errors.OutOfRangeError:
                input_ended = program.inputs.is_at_end
                loss = loss if run_steps.loss_in_call is None else run_steps.loss_in_call
            except tf.errors.OpError as error:
                where = run_steps.error_place or f"in the step after global step {progress.step}"
                _add_location(error, f"Training failed {where}.")
                raise
    if isinstance(run_steps, StepRunner):
        _report_input_wait(program, run_steps.secs_without_hooks, progress.last_step)
    if loss is None:
        logger.warning("Training with estimator made no steps. Perhaps input is empty or misspecified.")
    return Trained(loss, progress.last_step, input_ended)


def _add_location(error: tf.errors.OpError, where: str) -> None:
    """Adds the place of an error to the log and its notes; the error itself names the operation."""
    logger.error(where)
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(where)


def _train_hooks(
    program: Program,
    hooks: Sequence[Hook],
    saving_listeners: Sequence[SavingListener],
    progress: ProgressHook,
) -> tuple[list[Hook], BackgroundSaver | None]:
    """Returns all hooks in calling order, and the saver if it may write in the background.

    The order is tf.estimator's: the checkpoint is saved, and its listeners are called, before the
    caller's hooks see the step.
    """
    spec, config = program.spec, program.config
    prepare = [hook for hook in spec.training_hooks if isinstance(hook, InitializationHook)]
    first = [*program.inputs.hooks, *prepare]
    last = [*hooks, *(hook for hook in spec.training_hooks if hook not in prepare), progress]
    if not program.execution.is_chief:
        return [*first, *last], None
    saver = None
    if spec.scaffold.saver is None and not tf1.get_collection(tf1.GraphKeys.SAVERS):
        saver = BackgroundSaver(sharded=True, defer_build=True, save_relative_paths=True)
        tf1.add_to_collection(tf1.GraphKeys.SAVERS, saver)
    savers = [hook for hook in (*hooks, *spec.training_hooks, *spec.training_chief_hooks) if _is_saver(hook)]
    chief = [*spec.training_chief_hooks]
    background_saver = None
    saves = not savers and bool(config.save_checkpoints_secs or config.save_checkpoints_steps)
    if saver or isinstance(spec.scaffold.saver, tf.train.Checkpoint):
        first.append(KeepCheckpoints(spec.scaffold, config, deletes_surplus=saves))
    if saves:
        savers = [
            GraphOnceSaverHook(
                config.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=spec.scaffold,
                listeners=[],
                save_graph_def=config.checkpoint_save_graph_def,
            )
        ]
        chief.insert(0, savers[0])
        if saver and not saving_listeners and all(map(is_of_library, (*last, *chief))):
            background_saver = saver
            background_saver.writes_beside = True
            chief.insert(1, WaitForCheckpoint(background_saver))
    if saving_listeners and not savers:
        raise ValueError(
            "There should be a CheckpointSaverHook to use saving_listeners: set RunConfig's "
            "save_checkpoints_steps or save_checkpoints_secs."
        )
    for saver_hook in savers[:1]:
        # A hook has no public way to add listeners after it is created. In a user's hook, they remain for
        # later trainings, as in tf.estimator.
        listeners = saver_hook._listeners  # noqa: SLF001
        listeners.extend(item for item in saving_listeners if item not in listeners)
    if config.log_step_count_steps:
        chief.append(
            tf1.train.StepCounterHook(every_n_steps=config.log_step_count_steps, output_dir=config.model_dir)
        )
    if config.save_summary_steps:
        chief.append(
            tf1.train.SummarySaverHook(
                save_steps=config.save_summary_steps, output_dir=config.model_dir, scaffold=spec.scaffold
            )
        )
    return [*first, *chief, *last], background_saver


def _is_saver(hook: Hook) -> bool:
    return isinstance(hook, tf1.train.CheckpointSaverHook)


def evaluate(
    program: Program,
    restoring: RestoringSessionCreator | None = None,
    steps: int | None = None,
    hooks: Sequence[Hook] = (),
) -> dict[str, Any]:
    """Runs the update of the metrics over the input, then reads their values once.

    `restoring`: creator of its session; None initializes the variables.
    `steps`: batches to evaluate; None goes to the end of the input.
    Returns metric name to NumPy value; if the input has no rows, the initial values of the metrics.
    """
    logger.info("Starting evaluation at %s", time.strftime("%Y-%m-%dT%H:%M:%S"))
    start = time.monotonic()
    values, _ = program.fetches
    final = tf1.train.FinalOpsHook(final_ops=values)
    of_caller = [*program.inputs.hooks, *hooks, *program.spec.evaluation_hooks]
    with program.graph.as_default():
        creator = restoring or program.session_creator(checkpoint_path=None)
        evaluate_batches = BatchRunner(program, of_caller, steps)
        every = [*evaluate_batches.hooks, final]
        with tf1.train.MonitoredSession(creator, hooks=every) as session:
            try:
                while not session.should_stop():
                    evaluate_batches(session)
            except tf.errors.OutOfRangeError:
                pass
            except tf.errors.OpError as error:
                _add_location(error, f"Evaluation failed after {evaluate_batches.done} batches.")
                raise
    results = dict(final.final_ops_values)
    share_with_rows = results.pop(SHARE_WITH_ROWS, 1.0)
    if not evaluate_batches.done:
        replicas = program.execution.num_replicas
        few = "no batch" if replicas == 1 else f"less than one batch for each of {replicas} replicas"
        logger.warning(
            "Evaluation made no steps: input_fn gave %s, so the metrics have their initial values. Check "
            "that its files are not empty and that it does not drop the last, smaller batch.",
            few,
        )
    elif not share_with_rows:
        logger.warning(
            "All %d batches of input_fn are empty, so the metrics have their initial values. Check that its "
            "files and filters leave any rows.",
            evaluate_batches.done,
        )
    logger.info("Inference Time : %0.5fs", time.monotonic() - start)
    logger.info("Finished evaluation at %s", time.strftime("%Y-%m-%d-%H:%M:%S"))
    return results


def _report_input_wait(program: Program, secs: float, global_step: int | None) -> None:
    """Logs the share of the time that steps waited for their batches, and writes it for TensorBoard.

    Only the steps in a loop of the graph are measured, not those with hooks.
    """
    waited = program.step.waited_secs() if program.step.waited_secs else None
    if waited is None or secs < _MIN_SECS_TO_MEASURE_WAIT:
        return
    share = min(waited / secs, 1.0)
    if secs >= _MIN_SECS_TO_LOG_WAIT:
        logger.info(
            "Training waited for its input %.0f %% of the time%s.",
            100 * share,
            _INPUT_WAIT_ADVICE if share >= _LARGE_WAIT_SHARE else "",
        )
    config = program.config
    if config.save_summary_steps and config.model_dir and program.execution.is_chief:
        summaries.write_input_wait(config.model_dir, share, global_step or 0)
