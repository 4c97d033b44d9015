"""Runs the user's training function between TFX's artifacts, safely against interruption."""

import hashlib
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils, path_utils

from components import user_code
from components.model_paths import find_serving_model
from components.trainer import fn_args, training, unfinished

_logger = logging.getLogger(__name__)

TRAINER_FN_KEY = "trainer_fn"
RUN_FN_KEY = standard_component_specs.RUN_FN_KEY
USER_CODE_KEY = "user_code"

_MODEL_DIR = "model"


@dataclass(frozen=True)
class UserFunction:
    """The user's training function.

    Attributes:
        contract: `trainer_fn` or `run_fn`: how it is called.
        function: The function.
    """

    contract: str
    function: Callable[..., Any]

    @classmethod
    def load(
        cls, trainer_fn: str | None, run_fn: str | None, module_file: str | None
    ) -> "UserFunction":
        """Loads it by import path, or from a module file.

        Args:
            trainer_fn: Import path, or name in the module file.
            run_fn: The same, for the other contract.
            module_file: Path of a Python file. Without a name it must define exactly one of
                `trainer_fn` and `run_fn`.

        Raises:
            AttributeError: The module lacks the function.
            ValueError: It is not clear which function is meant.
        """
        contract, name = (TRAINER_FN_KEY, trainer_fn) if trainer_fn else (RUN_FN_KEY, run_fn)
        if not module_file:
            if not name:
                raise ValueError("Trainer needs a trainer_fn, a run_fn or a module_file.")
            return cls(contract, user_code.load_function(name))
        module = user_code.load_module_file(module_file)
        if name:
            return cls(contract, user_code.get_function(module, name))
        defined = [key for key in (TRAINER_FN_KEY, RUN_FN_KEY) if hasattr(module, key)]
        if len(defined) == 2:
            raise ValueError(
                f"{module_file} defines both trainer_fn and run_fn. Say which one to use: pass "
                "trainer_fn='trainer_fn' or run_fn='run_fn' beside module_file."
            )
        contract = defined[0] if defined else TRAINER_FN_KEY
        return cls(contract, user_code.get_function(module, contract))


@dataclass(frozen=True)
class Outputs:
    """Directories of the output artifacts.

    Attributes:
        serving_model_dir: `Format-Serving` of the model.
        eval_model_dir: `Format-TFMA` of the model.
        model_run_dir: The model run.
    """

    serving_model_dir: str
    eval_model_dir: str
    model_run_dir: str


class Executor(base_executor.BaseExecutor):
    """Trains in a directory that outlives a killed execution, then fills the output artifacts.

    The directory is `unfinished/<pipeline run id>-<hash>` beside the model_run output; the hash is
    that of the execution's inputs and properties, so that changed code or settings start anew,
    unless the directory was handed over to the run (see `unfinished`).
    """

    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Calls the user's function and writes `model` and `model_run`."""
        user_function = UserFunction.load(
            exec_properties.get(TRAINER_FN_KEY),
            exec_properties.get(RUN_FN_KEY),
            exec_properties.get(standard_component_specs.MODULE_FILE_KEY),
        )
        outputs = _parse_outputs(output_dict)
        work_dir = self._work_dir(input_dict, outputs, exec_properties)
        is_trainer_fn = user_function.contract == TRAINER_FN_KEY
        args = fn_args.make_fn_args(
            input_dict,
            exec_properties,
            # Modules of both contracts train there: it must outlive a failure. TFX's examples of
            # run_fn train in `serving_model_dir(model_run_dir)` as well, so that it can't be that.
            serving_model_dir=path_utils.serving_model_dir(
                work_dir if is_trainer_fn else os.path.join(work_dir, _MODEL_DIR)
            ),
            eval_model_dir=outputs.eval_model_dir,
            model_run_dir=work_dir,
        )
        if is_trainer_fn:
            _run_trainer_fn(user_function.function, args, outputs)
        else:
            _run_run_fn(user_function.function, args, outputs)
        unfinished.finish(work_dir, outputs.model_run_dir)

    def _work_dir(
        self,
        input_dict: dict[str, list[Artifact]],
        outputs: Outputs,
        exec_properties: dict[str, Any],
    ) -> str:
        run_id = self._context.pipeline_run_id if self._context else None
        if not run_id:
            fileio.makedirs(outputs.model_run_dir)
            return outputs.model_run_dir  # No run that could be taken up again.
        parent = os.path.dirname(outputs.model_run_dir.rstrip("/"))
        inputs = {
            key: [_relative(a.uri, parent) for a in artifacts]
            for key, artifacts in input_dict.items()
        }
        identity = json.dumps([inputs, exec_properties], sort_keys=True, default=str)
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        return unfinished.working_directory(parent, run_id, digest)


def _run_trainer_fn(
    trainer_fn: Callable[..., Any], args: fn_args.TrainerFnArgs, outputs: Outputs
) -> None:
    if args.schema_path is None:
        raise ValueError(
            "A trainer_fn is called with the schema; give the Trainer schema=, such as "
            "schema_gen.outputs['schema']."
        )
    schema = io_utils.parse_pbtxt_file(args.schema_path, schema_pb2.Schema())
    spec = training.TrainingSpec.parse(trainer_fn(args, schema))
    model_dir = spec.estimator.model_dir
    if not _is_below(model_dir, args.model_run_dir):
        _logger.warning(
            "The Estimator's model_dir is %s, not trainer_fn_args.serving_model_dir (%s): its "
            "checkpoints do not become part of the model run, and a killed run starts anew.",
            model_dir,
            args.serving_model_dir,
        )
    training.train_and_export(spec, outputs.serving_model_dir, outputs.eval_model_dir)


def _run_run_fn(run_fn: Callable[..., Any], args: fn_args.TrainerFnArgs, outputs: Outputs) -> None:
    if not fileio.exists(os.path.join(args.serving_model_dir, "checkpoint")):
        _remove(args.serving_model_dir)  # a model that an earlier attempt has left
    run_fn(args)
    try:
        find_serving_model(args.serving_model_dir)
    except FileNotFoundError as error:
        raise RuntimeError(
            f"run_fn wrote no model: {error} End run_fn by saving to fn_args.serving_model_dir, such "
            "as with estimator.export_saved_model(fn_args.serving_model_dir, "
            "serving_input_receiver_fn)."
        ) from error
    _remove(outputs.serving_model_dir)  # TFX makes output directories beforehand.
    fileio.makedirs(os.path.dirname(outputs.serving_model_dir))
    fileio.rename(args.serving_model_dir, outputs.serving_model_dir)
    _remove(os.path.join(args.model_run_dir, _MODEL_DIR))


def _remove(directory: str) -> None:
    if fileio.exists(directory):
        fileio.rmtree(directory)


def _parse_outputs(output_dict: dict[str, list[Artifact]]) -> Outputs:
    model = artifact_utils.get_single_uri(output_dict[standard_component_specs.MODEL_KEY])
    return Outputs(
        serving_model_dir=path_utils.serving_model_dir(model),
        eval_model_dir=path_utils.eval_model_dir(model),
        model_run_dir=artifact_utils.get_single_uri(
            output_dict[standard_component_specs.MODEL_RUN_KEY]
        ),
    )


def _relative(uri: str, directory: str) -> str:
    """Returns a path seen from a directory: the same when both are moved together."""
    return uri if "://" in uri or "://" in directory else os.path.relpath(uri, directory)


def _is_below(path: str, directory: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(directory, ""))
