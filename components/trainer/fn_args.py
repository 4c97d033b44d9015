"""Arguments of the user's trainer_fn or run_fn: TFX's FnArgs under its old and new names."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfx.components.trainer import fn_args_utils
from tfx.types import artifact_utils, standard_component_specs
from tfx.types.artifact import Artifact
from tfx.utils import io_utils


@dataclass(frozen=True)
class Trial:
    number: int
    # Function of (metrics by name, step) that tells the Tuner of an evaluation. A run_fn calls it after each
    # of its evaluations; the last one is the trial's result. The evaluations of a trainer_fn are reported for
    # it. It raises an error that ends the trial if it has fallen behind the others, so don't catch it.
    report: Callable[[Mapping[str, Any], int], None]
    fold: int = 0  # Number of the training of this trial, from 0: each has other rows for evaluation


class TrainerFnArgs(fn_args_utils.FnArgs):
    """TFX's `FnArgs`, with the methods of the `HParams` that a classic trainer_fn received.

    `serving_model_dir` is the model_dir to train in for a trainer_fn, and the directory to write the model to
    for a run_fn. `hyperparameters` is KerasTuner's form of them, or None (see `components.hyperparameters`).
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
    common = fn_args_utils.get_common_fn_args(input_dict, exec_properties, working_dir=model_run_dir)
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
        split: stats_artifact_utils.load_statistics(statistics, split).proto().datasets[0].num_examples
        for split in artifact_utils.decode_split_names(statistics.split_names)
    }


def _read_hyperparameters(input_dict: dict[str, list[Artifact]]) -> dict[str, Any] | None:
    artifacts = input_dict.get(standard_component_specs.HYPERPARAMETERS_KEY)
    if not artifacts:
        return None
    path = io_utils.get_only_uri_in_dir(artifact_utils.get_single_uri(artifacts))
    return json.loads(io_utils.read_string_file(path))
