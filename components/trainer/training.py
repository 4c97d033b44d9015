"""Trains what a trainer_fn returned, and exports the serving and the evaluation model."""

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfx.dsl.io import fileio
from tfx.utils import io_utils

import estimator_core
from components.model_paths import exported_model

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingSpec:
    """What a trainer_fn returns, checked.

    Attributes:
        estimator: The Estimator to train.
        train_spec: How to train it.
        eval_spec: How to evaluate and export it; has at least one exporter.
        eval_input_receiver_fn: Makes the inputs of the evaluation model; returns an
            `estimator_core.export.EvalInputReceiver`.
    """

    estimator: estimator_core.Estimator
    train_spec: estimator_core.TrainSpec
    eval_spec: estimator_core.EvalSpec
    eval_input_receiver_fn: Callable[[], Any]

    @classmethod
    def parse(cls, returned: Any) -> "TrainingSpec":
        """Returns the TrainingSpec for what a trainer_fn returned.

        Raises:
            TypeError: It is not a dict, or a value has the wrong type.
            ValueError: A key is missing, or nothing would be exported for serving.
        """
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


def train_and_export(spec: TrainingSpec, serving_model_dir: str, eval_model_dir: str) -> None:
    """Trains and evaluates, then writes the serving and the evaluation model.

    The serving model is the newest export of the eval_spec's first exporter.

    Args:
        spec: What to train.
        serving_model_dir: Directory for the serving SavedModel.
        eval_model_dir: Directory for the SavedModel with the signature `eval`.

    Raises:
        RuntimeError: The first exporter exported nothing.
    """
    if spec.train_spec.max_steps is None:
        _logger.warning(
            "train_spec has no max_steps: training ends when train_input_fn's data does, which it "
            "may never do."
        )
    estimator_core.train_and_evaluate(spec.estimator, spec.train_spec, spec.eval_spec)
    # Only the chief exports; the other tasks of a cluster are done.
    if not spec.estimator.config.is_chief:
        return
    exporter = spec.eval_spec.exporters[0]
    if len(spec.eval_spec.exporters) > 1:
        _logger.info("Serving the model of the first exporter, %r", exporter.name)
    io_utils.copy_dir(_newest_export(spec.estimator.model_dir, exporter.name), serving_model_dir)
    _export_eval_model(spec, eval_model_dir)


def _newest_export(model_dir: str, exporter_name: str) -> str:
    export_path = os.path.join(model_dir, "export", exporter_name)
    newest = exported_model(export_path)
    if newest is None:
        raise RuntimeError(
            f"The exporter {exporter_name!r} has exported nothing: no SavedModel in {export_path}."
        )
    return newest


def _export_eval_model(spec: TrainingSpec, eval_model_dir: str) -> None:
    base = os.path.join(spec.estimator.model_dir, "eval_export")
    if fileio.exists(base):
        fileio.rmtree(base)  # Of an execution that was killed here.
    exported = spec.estimator.experimental_export_all_saved_models(
        base, {estimator_core.ModeKeys.EVAL: spec.eval_input_receiver_fn}
    )
    io_utils.copy_dir(os.fsdecode(exported), eval_model_dir)
    fileio.rmtree(base)
