"""Arguments of the user's trainer_fn or run_fn: TFX's FnArgs under its old and new names."""

import json
from typing import Any

from tfx.components.trainer import fn_args_utils
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils

from components.trainer.trial import Trial


class TrainerFnArgs(fn_args_utils.FnArgs):
    """TFX's `FnArgs`, with the methods of the `HParams` that a classic trainer_fn received.

    `transform_graph_path`: Directory of Transform's output, None without one. `transform_output` is its old
    name.
    `serving_model_dir`: The model_dir to train in for a trainer_fn; the directory to write the model to for
    a run_fn.
    `hyperparameters`: KerasTuner's hyperparameters as a dict, or None. `components.hyperparameters` reads
    them.
    `custom_config`: The component's custom_config; an empty dict without one.
    """

    trial: Trial | None  # The trial of a Tuner that calls the function; None in a Trainer
    # Number of examples by split, if the Trainer was given `statistics`; else empty.
    num_examples: dict[str, int]

    @property
    def warm_start_from(self) -> str | None:
        """The old name of `base_model`."""
        return self.base_model

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an argument by name, as HParams did."""
        return getattr(self, name, default)

    def values(self) -> dict[str, Any]:
        """Returns all arguments by name, as HParams did."""
        return dict(vars(self))

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)


def make_fn_args(
    input_dict: dict[str, list[Artifact]],
    exec_properties: dict[str, Any],
    *,
    serving_model_dir: str,
    eval_model_dir: str,
    model_run_dir: str,
) -> TrainerFnArgs:
    """Returns the arguments for the user's function."""
    common = fn_args_utils.get_common_fn_args(
        input_dict, exec_properties, working_dir=model_run_dir
    )
    if common.custom_config is not None and not isinstance(common.custom_config, dict):
        raise ValueError(f"custom_config must be a dict. Received: {common.custom_config!r}")
    args = TrainerFnArgs(**vars(common))
    args.custom_config = common.custom_config or {}
    args.transform_output = args.transform_graph_path
    args.schema_file = args.schema_path
    args.serving_model_dir = serving_model_dir
    args.eval_model_dir = eval_model_dir
    args.model_run_dir = model_run_dir
    args.hyperparameters = _read_hyperparameters(input_dict)
    args.trial = None
    args.num_examples = _count_examples(input_dict)
    return args


def _count_examples(input_dict: dict[str, list[Artifact]]) -> dict[str, int]:
    artifacts = input_dict.get(standard_component_specs.STATISTICS_KEY)
    if not artifacts:
        return {}
    from tfx.components.statistics_gen import stats_artifact_utils  # imports TFDV

    statistics = artifact_utils.get_single_instance(artifacts)
    return {
        split: stats_artifact_utils.load_statistics(statistics, split)
        .proto()
        .datasets[0]
        .num_examples
        for split in artifact_utils.decode_split_names(statistics.split_names)
    }


def _read_hyperparameters(input_dict: dict[str, list[Artifact]]) -> dict[str, Any] | None:
    artifacts = input_dict.get(standard_component_specs.HYPERPARAMETERS_KEY)
    if not artifacts:
        return None
    path = io_utils.get_only_uri_in_dir(artifact_utils.get_single_uri(artifacts))
    return json.loads(io_utils.read_string_file(path))
