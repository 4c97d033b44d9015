"""Calls a trainer_fn, trains its Estimator, and exports the serving and the evaluation model."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.io import fileio
from tfx.utils import io_utils

import estimator_core
from components.file_systems import remove_tree
from components.tfx.model_paths import exported_model
from components.trainer.fn_args import TrainerFnArgs
from components.trainer.user_function import NO_SCHEMA

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingSpec:
    """The checked result of a trainer_fn."""

    estimator: estimator_core.Estimator
    train_spec: estimator_core.TrainSpec  # Settings of the training
    # Settings of the evaluation and the exports; has at least one exporter.
    eval_spec: estimator_core.EvalSpec
    # Makes the inputs of the evaluation model; returns an `estimator_core.export.EvalInputReceiver`.
    eval_input_receiver_fn: Callable[[], Any]

    @classmethod
    def parse(cls, returned: Any) -> "TrainingSpec":
        if not isinstance(returned, Mapping):
            raise TypeError(
                "trainer_fn must return a dict with the keys "
                f"{', '.join(_TYPES)}. Received: {type(returned).__name__} {returned!r}"
            )
        missing = [key for key in _TYPES if key not in returned]
        if missing:
            raise ValueError(
                f"trainer_fn's dict lacks {', '.join(map(repr, missing))}. "
                f"Received the keys: {', '.join(map(repr, returned))}"
            )
        for key, (kind, wanted) in _TYPES.items():
            if not (isinstance(returned[key], kind) if kind else callable(returned[key])):
                raise TypeError(
                    f"trainer_fn's {key!r} must be {wanted}. "
                    f"Received: {type(returned[key]).__name__} {returned[key]!r}"
                )
        spec = cls(**{key: returned[key] for key in _TYPES})
        if not spec.eval_spec.exporters:
            raise ValueError(
                "trainer_fn's 'eval_spec' has no exporter, so there would be no model to serve. Add "
                "exporters=[FinalExporter('serving', serving_input_receiver_fn)] to the EvalSpec."
            )
        return spec


_TYPES: dict[str, tuple[type | None, str]] = {
    "estimator": (estimator_core.Estimator, "an estimator_core.Estimator"),
    "train_spec": (estimator_core.TrainSpec, "an estimator_core.TrainSpec"),
    "eval_spec": (estimator_core.EvalSpec, "an estimator_core.EvalSpec"),
    "eval_input_receiver_fn": (None, "a function without arguments"),
}


def call_trainer_fn(trainer_fn: Callable[..., Any], args: TrainerFnArgs) -> TrainingSpec:
    """Calls a trainer_fn, and logs a warning for likely mistakes in the TrainingSpec it returns."""
    if args.schema_path is not None:
        schema = io_utils.parse_pbtxt_file(args.schema_path, schema_pb2.Schema())
    elif args.transform_graph_path is not None:
        import tensorflow_transform as tft  # takes seconds, and the user's module need not use it

        schema = tft.TFTransformOutput(args.transform_graph_path).raw_metadata.schema
    else:
        raise ValueError(NO_SCHEMA)
    spec = TrainingSpec.parse(trainer_fn(args, schema))
    is_part_of_run = os.path.join(spec.estimator.model_dir, "").startswith(
        os.path.join(args.model_run_dir, "")
    )
    if not is_part_of_run:
        _LOGGER.warning(
            "The Estimator's model_dir is %s, not trainer_fn_args.serving_model_dir (%s): its "
            "checkpoints do not become part of the model run, and a killed run starts from scratch.",
            spec.estimator.model_dir,
            args.serving_model_dir,
        )
    if args.base_model and spec.estimator.warm_start_settings is None:
        _LOGGER.warning(
            "The Trainer was given a base_model, but the Estimator has no warm_start_from: unless model_fn "
            "itself reads %s, training starts from scratch. Pass warm_start_from=fn_args.base_model.",
            args.base_model,
        )
    if spec.train_spec.max_steps is None:
        _LOGGER.warning(
            "train_spec has no max_steps: training ends when train_input_fn's data does, which "
            "may never happen."
        )
    return spec


def evaluate_and_run_exporters(spec: TrainingSpec) -> None:
    """Evaluates the last checkpoint and runs the exporters, like the end of `train_and_evaluate`."""
    estimator, eval_spec = spec.estimator, spec.eval_spec
    checkpoint = estimator.latest_checkpoint()
    if checkpoint is None:
        raise RuntimeError(f"The training has left no checkpoint in {estimator.model_dir}.")
    metrics = estimator.evaluate(
        eval_spec.input_fn,
        steps=eval_spec.steps,
        hooks=eval_spec.hooks,
        checkpoint_path=checkpoint,
        name=eval_spec.name,
    )
    for exporter in eval_spec.exporters:
        exporter.export(
            estimator=estimator,
            export_path=_export_path(estimator, exporter),
            checkpoint_path=checkpoint,
            eval_result=metrics,
            is_the_final_export=True,
        )


def write_models(spec: TrainingSpec, serving_model_dir: str, eval_model_dir: str) -> None:
    """Writes the evaluation model, and as serving model the newest export of the first exporter."""
    exporter = spec.eval_spec.exporters[0]
    if len(spec.eval_spec.exporters) > 1:
        _LOGGER.info("The model of the first exporter, %r, will be served", exporter.name)
    export_path = _export_path(spec.estimator, exporter)
    newest = exported_model(export_path)
    if newest is None:
        raise RuntimeError(
            f"The exporter {exporter.name!r} has exported nothing: no SavedModel in {export_path}."
        )
    io_utils.copy_dir(newest, serving_model_dir)
    _export_eval_model(spec, eval_model_dir)


def _export_path(estimator: estimator_core.Estimator, exporter: estimator_core.Exporter) -> str:
    return os.path.join(estimator.model_dir, "export", exporter.name)


def _export_eval_model(spec: TrainingSpec, eval_model_dir: str) -> None:
    base = os.path.join(spec.estimator.model_dir, "eval_export")
    if fileio.exists(base):
        remove_tree(base)  # left by an execution that was killed here
    exported = spec.estimator.experimental_export_all_saved_models(
        base, {estimator_core.ModeKeys.EVAL: spec.eval_input_receiver_fn}
    )
    io_utils.copy_dir(os.fsdecode(exported), eval_model_dir)
    remove_tree(base)
