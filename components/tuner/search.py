"""The work of each process of a search."""

import functools
import logging
import os
import shutil
import time
from pathlib import Path
from typing import Any

from tfx.utils import json_utils, path_utils

from components.interruption import interruption
from components.trainer import fn_args
from components.trainer.user_function import TRAINER_FN_KEY, UserFunction
from components.tuner.validation_rows import divide, fold_files

_LOGGER = logging.getLogger(__name__)

SETTINGS_KEY = "tuner_settings"
"""Execution property with the `TunerSettings` as JSON."""

_ROWS, _TRIALS, _MODEL = "rows", "trials", "model"


class Search:
    """The work of each process of a search; it can be pickled."""

    def __init__(self, inputs: str, exec_properties: dict[str, Any], folder: str):
        self.inputs, self.exec_properties, self.folder = inputs, exec_properties, folder

    def hold_out_rows(self, group: str | None) -> None:
        """Divides the training rows, before the processes of the search begin."""
        args = self._fn_args(self.folder, os.path.join(self.folder, _MODEL))
        divide(args.train_files, Path(self.folder) / _ROWS, group)

    def run(self, study: Any) -> None:
        """Runs trials until there are enough, or the time is up."""
        from components.tuner.trial_run import run_trial

        user_function = UserFunction.from_properties(self.exec_properties)
        settings = study.settings
        begin = time.monotonic()
        while True:
            interruption.check()
            if settings.timeout_secs and time.monotonic() - begin > settings.timeout_secs:
                _LOGGER.warning("No more trials: the time limit of %s s is reached", settings.timeout_secs)
                return
            trial = study.next_trial()
            if trial is None:
                return
            _LOGGER.info("Trial %d of %d: %s", trial.number, settings.trials, trial.values)
            folder = os.path.join(self.folder, _TRIALS, str(trial.number))
            args_of = functools.partial(self._args, user_function, settings.own_validation, folder)
            run_trial(user_function, args_of, trial, settings)
            shutil.rmtree(folder, ignore_errors=True)
            _LOGGER.info("Trained %s", study.results()[trial.number].describe(settings.metric))

    def _args(
        self, user_function: UserFunction, own_validation: bool, trial_folder: str, fold: int
    ) -> fn_args.TrainerFnArgs:
        folder = os.path.join(trial_folder, str(fold))
        is_trainer_fn = user_function.contract == TRAINER_FN_KEY
        model_dir = path_utils.serving_model_dir(folder) if is_trainer_fn else os.path.join(folder, _MODEL)
        args = self._fn_args(folder, model_dir)
        os.makedirs(folder, exist_ok=True)
        if own_validation:
            args.eval_files = []
        else:
            args.train_files, args.eval_files = fold_files(Path(self.folder) / _ROWS, fold)
        return args

    def _fn_args(self, folder: str, model_dir: str) -> fn_args.TrainerFnArgs:
        return fn_args.make_fn_args(
            json_utils.loads(self.inputs),
            self.exec_properties,
            serving_model_dir=model_dir,
            eval_model_dir=path_utils.eval_model_dir(folder),
            model_run_dir=folder,
        )
