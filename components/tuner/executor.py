"""Searches hyperparameters on TFX's artifacts; a search that was killed can be resumed."""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import json_utils

from components.trainer import unfinished
from components.tuner.search import SETTINGS_KEY, Search

_LOGGER = logging.getLogger(__name__)


class Executor(base_executor.BaseExecutor):
    """Runs the trials in a directory that outlives a killed execution, then fills the output artifacts.

    The directory is `unfinished/<pipeline run id>-<hash>` next to the output `best_hyperparameters`,
    like that of the Trainer: changed code or settings begin a new search.
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        from components.tuner import parallel, results
        from components.tuner.settings import TunerSettings
        from components.tuner.study import JOURNAL, Study

        best, tuner_results = (
            artifact_utils.get_single_uri(output_dict[key])
            for key in (
                standard_component_specs.BEST_HYPERPARAMETERS_KEY,
                standard_component_specs.TUNER_RESULTS_KEY,
            )
        )
        settings = TunerSettings.from_json(exec_properties[SETTINGS_KEY])
        folder = self._work_dir(input_dict, best, exec_properties)
        search = Search(json_utils.dumps(input_dict), exec_properties, str(folder))
        study = Study(folder, settings)
        if not settings.own_validation:
            search.hold_out_rows(settings.group)
        if settings.parallel == 1:
            search.run(study)
        else:
            parallel.run(search, study)
        result = results.SearchResult(settings, study.results(), study.importance())
        if result.chosen is None:
            reasons = dict.fromkeys(trial.reason for trial in result.trials if trial.reason)
            raise RuntimeError(f"None of the trials finished. {'; '.join(reasons)}")
        results.write_best_hyperparameters(result, Path(best))
        results.write_tuner_results(result, Path(tuner_results))
        shutil.copyfile(folder / JOURNAL, os.path.join(tuner_results, JOURNAL))
        shutil.rmtree(folder)
        if folder.parent.name == unfinished.UNFINISHED_DIR and not any(folder.parent.iterdir()):
            folder.parent.rmdir()
        _LOGGER.info("Chosen from %d trials: %s", len(result.trials), result.chosen)

    def _work_dir(
        self, input_dict: dict[str, list[Artifact]], output: str, exec_properties: dict[str, Any]
    ) -> Path:
        run_id = self._context.pipeline_run_id if self._context else None
        if not run_id:
            return Path(self._get_tmp_dir())  # no run that could be resumed
        parent = os.path.dirname(output.rstrip("/"))
        digest = unfinished.identity(input_dict, exec_properties, parent)
        return Path(unfinished.working_directory(parent, run_id, digest))
