"""Runs one trial: calls the user's training function, and finds its result."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import optuna

import estimator_core
from components.errors import SettingError
from components.nearest import nearest_first
from components.trainer import training
from components.trainer.fn_args import TrainerFnArgs, Trial
from components.trainer.interruptible import train_and_evaluate
from components.trainer.user_function import TRAINER_FN_KEY, UserFunction
from components.tuner.settings import TunerSettings
from components.tuner.study import StudyTrial

_LOGGER = logging.getLogger(__name__)


def run_trial(
    user_function: UserFunction,
    args_of: Callable[[int], TrainerFnArgs],
    trial: StudyTrial,
    settings: TunerSettings,
) -> None:
    """Trains with the values of a trial, in each remaining fold, and ends the trial.

    An error of the training function in a trial of the values that are used without a search is raised,
    because the function is at fault. In another trial the values may be, so only the trial fails.
    """
    config = settings.space.keras_tuner_config(trial.values) if trial.values else None
    try:
        while trial.fold < settings.folds:
            args = args_of(trial.fold)
            args.hyperparameters = config
            args.trial = Trial(trial.number, trial.report, trial.fold)
            _run_fold(user_function, args, trial, settings.metric)
        trial.finish()
    except optuna.TrialPruned as pruned:
        trial.prune(str(pruned))
    except SettingError:
        raise
    except (estimator_core.NanLossDuringTrainingError, _NotFiniteError) as error:
        trial.fail(str(error))
    except Exception as error:  # of the user's function
        if trial.is_first:
            raise
        _LOGGER.exception("trial %d failed", trial.number)
        trial.fail(f"{type(error).__name__}: {error}")


def _run_fold(user_function: UserFunction, args: TrainerFnArgs, trial: StudyTrial, metric: str) -> None:
    if user_function.contract == TRAINER_FN_KEY:
        step = _train(user_function, args, trial)
    else:
        user_function.function(args)
        steps = (step for fold, step in trial.evaluations if fold == trial.fold)
        step = max(steps, default=None)
    if step is None or (trial.fold, step) not in trial.evaluations:
        raise SettingError(_no_result(user_function, trial, metric))
    try:
        trial.finish_fold(step)
    except ValueError as error:
        raise _NotFiniteError(str(error)) from error


class _NotFiniteError(Exception):
    """The result of a fold is not a finite number, which is the values' fault."""


def _train(user_function: UserFunction, args: TrainerFnArgs, trial: StudyTrial) -> int | None:
    """Trains, and returns the step of the checkpoint that the Trainer would serve, if any."""
    spec = training.call_trainer_fn(user_function.function, args)
    judge = _JudgingExporter(spec.eval_spec.exporters[0], trial)
    train_and_evaluate(spec.estimator, spec.train_spec, spec.eval_spec._replace(exporters=(judge,)))
    return judge.exported_step


class _JudgingExporter(estimator_core.Exporter):
    """Reports each evaluation, and lets an exporter choose a checkpoint without writing its model."""

    def __init__(self, exporter: estimator_core.Exporter, trial: StudyTrial):
        self._exporter, self._trial = exporter, trial
        self.exported_step: int | None = None

    @property
    def name(self) -> str:
        return self._exporter.name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Reports the evaluation, and asks the exporter."""
        step = checkpoint_step(checkpoint_path)
        self._trial.report(eval_result or {}, step, is_last=is_the_final_export)
        noting = _WithoutExports(estimator)
        result = self._exporter.export(
            estimator=noting,
            export_path=export_path,
            checkpoint_path=checkpoint_path,
            eval_result=eval_result,
            is_the_final_export=is_the_final_export,
        )
        if noting.is_exported:
            self.exported_step = checkpoint_step(noting.exported) if noting.exported else step
        return result


class _WithoutExports:
    """An Estimator that notes which checkpoint it should export, without exporting anything."""

    def __init__(self, estimator: Any):
        self._estimator = estimator
        self.is_exported = False
        self.exported: str | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._estimator, name)

    def export_saved_model(
        self, export_dir_base: Any, *args: Any, checkpoint_path: Any = None, **options: Any
    ) -> bytes:
        """Notes the checkpoint; `args` begin with the receiver function."""
        del options
        checkpoint = checkpoint_path or (args[3] if len(args) > 3 else None)
        self.is_exported, self.exported = True, str(checkpoint) if checkpoint else None
        return str(export_dir_base).encode()

    def experimental_export_all_saved_models(
        self, export_dir_base: Any, *args: Any, checkpoint_path: Any = None, **options: Any
    ) -> bytes:
        return self.export_saved_model(export_dir_base, *args, checkpoint_path=checkpoint_path)


def checkpoint_step(checkpoint: str) -> int:
    """Returns the global step in the name of a checkpoint."""
    return int(checkpoint.rpartition("-")[2])


def _no_result(user_function: UserFunction, trial: StudyTrial, metric: str) -> str:
    nearest = nearest_first(metric, sorted(trial.reported))
    if nearest and metric not in nearest:
        return (
            f"the evaluations during training have no metric {metric!r}. Did you mean {nearest[0]!r}? "
            f"They have {', '.join(nearest)}."
        )
    if user_function.contract == TRAINER_FN_KEY:
        return "the training evaluated no checkpoint that its exporter would export"
    return (
        "run_fn has reported no evaluation in a trial: call fn_args.trial.report(metrics, step) after each, "
        "where fn_args.trial is not None."
    )
