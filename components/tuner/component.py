"""The Tuner component."""

import os
from typing import Any

from tfx.dsl.components.base import base_component, executor_spec
from tfx.proto.trainer_pb2 import EvalArgs, TrainArgs
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.channel import BaseChannel, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter
from tfx.utils import json_utils

from components.trainer.component import TrainerSpec, check_user_function
from components.trainer.user_function import CONTRACTS, TRAINER_FN_KEY, USER_CODE_KEY
from components.tuner import executor
from components.tuner.search import SETTINGS_KEY
from components.tuner.settings import TunerSettings
from components.user import source as user_source

_INPUTS = ("examples", "schema", "transform_graph", "base_model")
_PARAMETERS = (
    standard_component_specs.MODULE_FILE_KEY,
    standard_component_specs.RUN_FN_KEY,
    TRAINER_FN_KEY,
    USER_CODE_KEY,
    standard_component_specs.TRAIN_ARGS_KEY,
    standard_component_specs.EVAL_ARGS_KEY,
    standard_component_specs.CUSTOM_CONFIG_KEY,
)


class TunerSpec(ComponentSpec):
    """The Trainer's inputs and parameters without a model, and the outputs of TFX's Tuner."""

    PARAMETERS = {
        **{key: TrainerSpec.PARAMETERS[key] for key in _PARAMETERS},
        SETTINGS_KEY: ExecutionParameter(type=str),
    }
    INPUTS = {key: TrainerSpec.INPUTS[key] for key in _INPUTS}
    OUTPUTS = {
        standard_component_specs.BEST_HYPERPARAMETERS_KEY: ChannelParameter(
            type=standard_artifacts.HyperParameters
        ),
        standard_component_specs.TUNER_RESULTS_KEY: ChannelParameter(type=standard_artifacts.TunerResults),
    }


class Tuner(base_component.BaseComponent):
    """Searches the hyperparameters of the user's `trainer_fn` or `run_fn` with Optuna.

    Each trial calls the function as the Trainer does, with other values in `fn_args.hyperparameters`, which
    `components.hyperparameters` reads. A trial of a trainer_fn is judged by the evaluation of the checkpoint
    that the Trainer would serve: the last export of the first exporter of its eval_spec. A run_fn
    reports its evaluations itself, with `fn_args.trial.report`, and is judged by the last one.

    `fn_args.eval_files` of a trial are a fifth of the training rows, and `train_files` the others: the
    evaluation split has no part in the search.

    Outputs:
        best_hyperparameters: `HyperParameters`, for the Trainer, ours or TFX's; in KerasTuner's form.
        tuner_results: `TunerResults`, with a row for each trial in TFX's form, all trials with their
            evaluations in `search.json`, and Optuna's study as a journal.

    A search that is killed continues when the component runs again under the same pipeline run id, with the
    trial that was running, from its last checkpoint.

    Example:
        tuner = Tuner(
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            schema=schema_gen.outputs["schema"],
            trainer_fn="my_project.taxi.trainer_fn",
            train_args=TrainArgs(num_steps=1000),
            settings=TunerSettings(
                SearchSpace((Range("learning_rate", 1e-4, 1e-1, log=True), Choice("units", (32, 64)))),
                trials=20,
            ),
        )
        trainer = Trainer(..., hyperparameters=tuner.outputs["best_hyperparameters"])

    Source: TFX's Tuner, whose outputs it has. Unlike it, it needs no tuner_fn, and searches any training
    function.
    """

    SPEC_CLASS = TunerSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(
        self,
        examples: BaseChannel,
        settings: TunerSettings,
        transform_graph: BaseChannel | None = None,
        schema: BaseChannel | None = None,
        base_model: BaseChannel | None = None,
        trainer_fn: str | None = None,
        run_fn: str | None = None,
        module_file: str | None = None,
        train_args: TrainArgs | None = None,
        eval_args: EvalArgs | None = None,
        custom_config: dict[str, Any] | None = None,
    ) -> None:
        """Declares the component.

        Args:
            examples: See `Trainer`.
            settings: The search space, and the settings of the search.
            transform_graph: See `Trainer`.
            schema: See `Trainer`.
            base_model: See `Trainer`.
            trainer_fn: See `Trainer`.
            run_fn: See `Trainer`.
            module_file: See `Trainer`.
            train_args: See `Trainer`; of each trial.
            eval_args: `num_steps` of an evaluation; its splits are not read.
            custom_config: See `Trainer`.

        Raises:
            ValueError: Neither or both of trainer_fn and run_fn are given, the module_file defines both and
                neither is given, or a trainer_fn has no schema.
            TypeError: custom_config is not a dict, or holds values that JSON cannot.
        """
        check_user_function("Tuner", trainer_fn, run_fn, module_file, schema, custom_config)
        if not (trainer_fn or run_fn):
            definitions = user_source.read_definitions(module_file=module_file)
            name = os.path.basename(module_file or "")
            # Which of them the Trainer calls depends on its executor, which is not known here.
            if {f"{name}:{contract}" for contract in CONTRACTS} <= definitions.keys():
                raise ValueError(
                    f"{module_file} defines both trainer_fn and run_fn. Name the function to tune, which "
                    "the Trainer should call as well: trainer_fn='trainer_fn' or run_fn='run_fn'."
                )
        spec = TunerSpec(
            examples=examples,
            schema=schema,
            transform_graph=transform_graph,
            base_model=base_model,
            module_file=module_file,
            run_fn=run_fn,
            trainer_fn=trainer_fn,
            user_code=user_source.fingerprint(
                import_path=None if module_file else trainer_fn or run_fn, module_file=module_file
            ),
            train_args=train_args or TrainArgs(),
            eval_args=eval_args or EvalArgs(),
            custom_config=json_utils.dumps(custom_config),
            tuner_settings=settings.to_json(),
            best_hyperparameters=Channel(type=standard_artifacts.HyperParameters),
            tuner_results=Channel(type=standard_artifacts.TunerResults),
        )
        super().__init__(spec=spec)
