"""Runs the user's training function on TFX's artifacts; an interrupted training can be resumed."""

import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import json_utils, path_utils

from components.errors import SettingError
from components.file_systems import remove_tree
from components.tfx.model_paths import find_serving_model
from components.trainer import fn_args, training, unfinished
from components.trainer.cluster_task import ClusterTask
from components.trainer.interruptible import train_and_evaluate
from components.trainer.local_cluster import LOGS_DIR, LocalCluster, train_in_cluster
from components.trainer.user_function import CONTRACTS, TRAINER_FN_KEY, UserFunction

_LOGGER = logging.getLogger(__name__)

CLUSTER_KEY = "cluster"

NO_RUN_FN_IN_A_CLUSTER = (
    "A cluster of the Trainer needs a trainer_fn. A run_fn writes the model itself, and every process "
    "of the cluster would write it, each with the variables of a different step."
)

_MODEL_DIR = "model"


@dataclass(frozen=True)
class Outputs:
    """Directories of the output artifacts, or those that the user's function gets in their place."""

    serving_model_dir: str
    eval_model_dir: str  # `Format-TFMA` of the model
    model_run_dir: str


class GenericExecutor(base_executor.BaseExecutor):
    """Trains in a directory that outlives a killed execution, then fills the output artifacts.

    Calls the function that the execution properties name, or the first of `CONTRACTS` in the module file.

    The directory is `unfinished/<pipeline run id>-<hash>` next to the model_run output. The hash covers the
    execution's inputs and properties, so that changed code or settings start a new training, unless the
    directory was handed over to the run (see `unfinished`).
    """

    CONTRACTS: tuple[str, ...] = CONTRACTS
    _directories: Outputs | None = None  # those of the training, once Do has begun

    def _GetFnArgs(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> fn_args.TrainerFnArgs:
        """Returns the argument of the user's function; executors derived from TFX's add to it."""
        directories = asdict(self._directories or _parse_outputs(output_dict))
        return fn_args.make_fn_args(input_dict, exec_properties, **directories)

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        user_function = UserFunction.from_properties(exec_properties, self.CONTRACTS)
        is_trainer_fn = user_function.contract == TRAINER_FN_KEY
        cluster = LocalCluster.from_json(exec_properties.get(CLUSTER_KEY))
        if cluster is not None and not is_trainer_fn:
            raise SettingError(NO_RUN_FN_IN_A_CLUSTER)
        outputs = _parse_outputs(output_dict)
        work_dir = self._work_dir(input_dict, outputs, exec_properties)
        directories = Outputs(
            # Users train in this directory with both contracts: it must outlive a failure. It can't be
            # `serving_model_dir(model_run_dir)`, where TFX's examples of run_fn train as well.
            serving_model_dir=path_utils.serving_model_dir(
                work_dir if is_trainer_fn else os.path.join(work_dir, _MODEL_DIR)
            ),
            eval_model_dir=outputs.eval_model_dir,
            model_run_dir=work_dir,
        )
        self._directories = directories
        args = self._GetFnArgs(input_dict, output_dict, exec_properties)
        if is_trainer_fn:
            spec = training.call_trainer_fn(user_function.function, args)
            if cluster is None:
                train_and_evaluate(spec.estimator, spec.train_spec, spec.eval_spec)
            else:
                inputs = json_utils.dumps(input_dict)
                model_dir = spec.estimator.model_dir
                # Each process loads the function by this name, so that all of them call the same one.
                name = exec_properties.get(TRAINER_FN_KEY) or TRAINER_FN_KEY
                properties = {**exec_properties, TRAINER_FN_KEY: name}
                task = ClusterTask(inputs, properties, asdict(directories), model_dir)
                log_dir = None if "://" in work_dir else os.path.join(work_dir, LOGS_DIR)
                self.train_cluster(cluster, task, log_dir)
                if not cluster.evaluator:  # no task of the cluster has evaluated or exported
                    training.evaluate_and_run_exporters(spec)
            # Only the chief exports; TF_CONFIG may make this process another task of a cluster.
            if spec.estimator.config.is_chief:
                training.write_models(spec, outputs.serving_model_dir, outputs.eval_model_dir)
        else:
            _run_run_fn(user_function.function, args, outputs)
        unfinished.finish(work_dir, outputs.model_run_dir)
        if cluster is not None:
            _LOGGER.info("The tasks' logs are in %s", os.path.join(outputs.model_run_dir, LOGS_DIR))

    def train_cluster(self, cluster: LocalCluster, task: ClusterTask, log_dir: str | None) -> None:
        """Trains in the processes of a cluster, and returns when they have ended.

        A subclass can run them on other machines that see the directories of the task. Without a
        `log_dir`, the tasks write no log files.
        """
        train_in_cluster(cluster, task, log_dir)

    def _work_dir(
        self, input_dict: dict[str, list[Artifact]], outputs: Outputs, exec_properties: dict[str, Any]
    ) -> str:
        run_id = self._context.pipeline_run_id if self._context else None
        if not run_id:
            fileio.makedirs(outputs.model_run_dir)
            return outputs.model_run_dir  # no run that could be resumed
        parent = os.path.dirname(outputs.model_run_dir.rstrip("/"))
        digest = unfinished.identity(input_dict, exec_properties, parent)
        return unfinished.working_directory(parent, run_id, digest)


class Executor(GenericExecutor):
    """Calls the module file's `trainer_fn`, as TFX's executor of this name did before 1.16.

    Pass it as `custom_executor_spec=ExecutorClassSpec(Executor)` for a module that also defines a run_fn.
    """

    CONTRACTS = (TRAINER_FN_KEY,)


def _run_run_fn(run_fn: Callable[..., Any], args: fn_args.TrainerFnArgs, outputs: Outputs) -> None:
    if not fileio.exists(os.path.join(args.serving_model_dir, "checkpoint")):
        _remove(args.serving_model_dir)  # the model of an earlier attempt
    run_fn(args)
    try:
        find_serving_model(args.serving_model_dir)
    except FileNotFoundError as error:
        raise RuntimeError(
            f"run_fn wrote no model: {error} End run_fn by saving to fn_args.serving_model_dir, such "
            "as with estimator.export_saved_model(fn_args.serving_model_dir, "
            "serving_input_receiver_fn)."
        ) from error
    _remove(outputs.serving_model_dir)  # TFX creates output directories in advance
    fileio.makedirs(os.path.dirname(outputs.serving_model_dir))
    fileio.rename(args.serving_model_dir, outputs.serving_model_dir)
    _remove(os.path.join(args.model_run_dir, _MODEL_DIR))


def _remove(directory: str) -> None:
    if fileio.exists(directory):
        remove_tree(directory)


def _parse_outputs(output_dict: dict[str, list[Artifact]]) -> Outputs:
    model = artifact_utils.get_single_uri(output_dict[standard_component_specs.MODEL_KEY])
    return Outputs(
        serving_model_dir=path_utils.serving_model_dir(model),
        eval_model_dir=path_utils.eval_model_dir(model),
        model_run_dir=artifact_utils.get_single_uri(output_dict[standard_component_specs.MODEL_RUN_KEY]),
    )
