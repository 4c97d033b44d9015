"""BestExporter: exports a model if it is better than all before it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator_core import summaries
from estimator_core.export.exporters import LatestExporter, export_directories
from estimator_core.logs import logger
from estimator_core.spec.calling import arg_names
from estimator_core.spec.types import EstimatorLike, ReceiverFn

_LOSS = "loss"

Metrics = Mapping[str, Any]


def loss_smaller(best_eval_result: Metrics, current_eval_result: Metrics) -> bool:
    """Returns whether the current loss is below the best one; a NaN is never better."""
    for name, result in (
        ("best_eval_result", best_eval_result),
        ("current_eval_result", current_eval_result),
    ):
        if not result or _LOSS not in result:
            raise ValueError(f"{name} must hold {_LOSS!r}. Received: {name}={result!r}")
    best, current = float(best_eval_result[_LOSS]), float(current_eval_result[_LOSS])
    return current < best or (math.isnan(best) and not math.isnan(current))


class BestExporter(LatestExporter):
    """Exports after an evaluation that is better than all before it, and keeps the newest exports.

    The best result is saved in the model_dir as `best_eval_result.<name>.json`, replaced atomically, so
    that a restart continues with the same best result. Without that file (in a model_dir that
    `tf.estimator` wrote) the evaluations in the event files are used.

    Example:
        >>> def accuracy_larger(best_eval_result, current_eval_result):
        ...     return current_eval_result["accuracy"] > best_eval_result["accuracy"]
        >>> exporter = BestExporter(  # doctest: +SKIP
        ...     "best", serving_input_receiver_fn, compare_fn=accuracy_larger, exports_to_keep=1
        ... )

    Args:
        name: Name of the directory below `model_dir/export`.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        event_file_pattern: Pattern of event files, relative to the model_dir, whose evaluations
            count if there is no file of the best result yet; None counts none.
        compare_fn: Function of (best_eval_result, current_eval_result) that returns whether the
            current one is better.
        assets_extra: See `Estimator.export_saved_model`.
        as_text: See `Estimator.export_saved_model`.
        exports_to_keep: Number of exports to keep; None keeps all.

    Raises:
        TypeError: `compare_fn` is not callable.
        ValueError: `compare_fn` is None or has other arguments, or `exports_to_keep` is not above 0.

    Source: `tf.estimator.BestExporter`, which exports once in each process regardless of the result, and
    knows earlier results only from the event files.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: ReceiverFn | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] = loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ):
        if serving_input_receiver_fn is None:
            raise ValueError("serving_input_receiver_fn must be defined. Received: None")
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text, exports_to_keep)
        if compare_fn is None:
            raise ValueError("compare_fn must not be None. Leave it out to compare the loss.")
        if not callable(compare_fn):
            raise TypeError(f"compare_fn must be callable. Received: compare_fn={compare_fn!r}")
        names = arg_names(compare_fn)
        if set(names) != {"best_eval_result", "current_eval_result"}:
            raise ValueError(
                "compare_fn must take the arguments best_eval_result and current_eval_result, by which "
                f"it is called, and no others. Received: compare_fn={compare_fn!r} with {names}"
            )
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern

    def export(
        self,
        estimator: EstimatorLike,
        export_path: str,
        checkpoint_path: str,
        eval_result: Metrics | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Exports the model if `eval_result` is the best so far; see `Exporter.export`."""
        if eval_result is None:
            raise ValueError("BestExporter compares evaluations. Received: eval_result=None")
        best = self._best_before(estimator, export_path, eval_result)
        if best is not None and not self._compare_fn(best_eval_result=best, current_eval_result=eval_result):
            return None
        logger.info("Performing best model export.")
        result = super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)
        arrays = {name: np.asarray(value) for name, value in eval_result.items()}
        numbers = {name: array.tolist() for name, array in arrays.items() if array.dtype.kind not in "OSU"}
        path = self._best_file(estimator)
        with tf.io.gfile.GFile(f"{path}.tmp", "w") as file:
            file.write(json.dumps(numbers))
        tf.io.gfile.rename(f"{path}.tmp", path, overwrite=True)
        return result

    def _best_file(self, estimator: EstimatorLike) -> str:
        # Outside of the exports' directory: programs expect only numbers there.
        return os.path.join(estimator.model_dir, f"best_eval_result.{self.name}.json")

    def _best_before(
        self, estimator: EstimatorLike, export_path: str, current: Metrics
    ) -> dict[str, Any] | None:
        """Returns the best result so far, in this run or an earlier one; None if there is none."""
        path = self._best_file(estimator)
        if tf.io.gfile.exists(path):
            with tf.io.gfile.GFile(path) as file:
                return {name: np.asarray(number)[()] for name, number in json.loads(file.read()).items()}
        # Evaluations without an export must not prevent the first export.
        if not self._event_file_pattern or not export_directories(export_path):
            return None
        best: dict[str, Any] | None = None
        evaluations = summaries.read_evaluations(estimator.model_dir, self._event_file_pattern)
        for step, result in evaluations.items():
            # The current evaluation was written to the event files before the exporters run.
            if step == current.get("global_step"):
                continue
            if best is None or self._compare_fn(best_eval_result=best, current_eval_result=result):
                best = result
        return best
