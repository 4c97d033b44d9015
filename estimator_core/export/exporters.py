"""Exporters: classes that decide when train_and_evaluate exports a SavedModel, and which ones it keeps."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from estimator_core.logs import logger
from estimator_core.run_config import check_path
from estimator_core.spec.types import EstimatorLike, ReceiverFn


class Exporter(abc.ABC):
    """Decides on an export after each evaluation of `train_and_evaluate`.

    Source: `tf.estimator.Exporter`.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name of the directory below `model_dir/export` of the exports."""

    @abc.abstractmethod
    def export(
        self,
        estimator: EstimatorLike,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports the model, or does nothing.

        Args:
            estimator: The Estimator to export.
            export_path: Directory for the exports.
            checkpoint_path: Checkpoint to export.
            eval_result: Result of `Estimator.evaluate` for that checkpoint.
            is_the_final_export: True if training has ended.

        Returns:
            Directory of the SavedModel; None if nothing was exported.
        """


class ServingExporter(Exporter):
    """Base class of exporters of a serving model; see the arguments of `Estimator.export_saved_model`."""

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ):
        if not name:
            raise ValueError(f"An exporter needs a name, for its directory. Received: name={name!r}")
        check_path("name", name)
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text

    @property
    def name(self) -> str:
        """Name of the directory below `model_dir/export` of the exports."""
        return self._name

    def export_to(self, estimator: EstimatorLike, export_path: str, checkpoint_path: str) -> bytes:
        """Exports the model and returns the directory of the SavedModel."""
        return estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )


class FinalExporter(ServingExporter):
    """Exports once, at the end of training.

    Args:
        name: Name of the directory below `model_dir/export`.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        assets_extra: See `Estimator.export_saved_model`.
        as_text: See `Estimator.export_saved_model`.

    Source: `tf.estimator.FinalExporter`.
    """

    def export(
        self,
        estimator: EstimatorLike,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports the model at the end of training; see `Exporter.export`."""
        del eval_result
        if not is_the_final_export:
            return None
        logger.info("Performing the final export in the end of training.")
        return self.export_to(estimator, export_path, checkpoint_path)


class LatestExporter(ServingExporter):
    """Exports after every evaluation, and keeps the newest exports.

    Args:
        name: Name of the directory below `model_dir/export`.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        assets_extra: See `Estimator.export_saved_model`.
        as_text: See `Estimator.export_saved_model`.
        exports_to_keep: Number of exports to keep; None keeps all.

    Raises:
        ValueError: `exports_to_keep` is not above 0.

    Source: `tf.estimator.LatestExporter`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: ReceiverFn,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(
                f"exports_to_keep must be above 0, or None. Received: exports_to_keep={exports_to_keep}"
            )
        self._exports_to_keep = exports_to_keep

    def export(
        self,
        estimator: EstimatorLike,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports the model, then deletes the oldest exports; see `Exporter.export`."""
        del eval_result, is_the_final_export
        result = self.export_to(estimator, export_path, checkpoint_path)
        if self._exports_to_keep is None:
            return result
        for directory in export_directories(export_path)[: -self._exports_to_keep]:
            try:
                tf.io.gfile.rmtree(directory)
            except tf.errors.OpError as error:
                logger.warning("Can not delete %s: %s", directory, error.message)
        return result


def export_directories(export_path: str) -> list[str]:
    """Returns the exports in `export_path`, whose names are timestamps, the oldest first."""
    if not tf.io.gfile.isdir(export_path):
        return []
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(export_path)]
    return [os.path.join(export_path, name) for name in sorted(filter(str.isdecimal, names), key=int)]
