"""Keeps the checkpoint with the lowest loss, and makes it the final checkpoint of a training."""

import json
import logging
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

import estimator_core
from estimator_core import tf1
from pipelines.atomic_files import write_uri

_LOGGER = logging.getLogger(__name__)

LOSS = "average_loss"
"""Metric to minimize; unlike "loss", the mean over batches, it is not biased by a smaller last batch."""

_FOLDER = "best"
_FILE = "best.json"


class BestCheckpointExporter(estimator_core.Exporter):
    """Exports the checkpoint of the evaluation with the lowest loss, at the end of the training.

    A copy of it is kept in `best/` of the model_dir, as training deletes older checkpoints. The final
    export makes it the newest checkpoint of the model_dir again, so that exports and evaluations after the
    training use the same model.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, str] | None = None,
    ) -> None:
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra

    @property
    def name(self) -> str:
        """Name of the folder of exports."""
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any] | None,
        is_the_final_export: bool,
    ) -> bytes | None:
        """Keeps the checkpoint if its loss is the lowest so far; exports the best one at the end."""
        best = BestCheckpoint(estimator.model_dir)
        metrics = {name: float(value) for name, value in (eval_result or {}).items()}
        loss = metrics.get(LOSS, math.nan)
        best.losses[_global_step(checkpoint_path)] = loss
        if best.checkpoint is None or loss < best.loss or math.isnan(best.loss):
            best.keep(checkpoint_path, metrics)
        else:
            best.write_note()
        if not is_the_final_export:
            return None
        path = best.make_newest()
        _LOGGER.info("The best checkpoint is %s, with a loss of %g.", path, best.loss)
        if self._serving_input_receiver_fn is None:
            return None
        exported: bytes = estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            checkpoint_path=path,
        )
        return exported


class BestCheckpoint:
    """Copy of the best checkpoint in a model_dir."""

    def __init__(self, model_dir: str) -> None:
        self._model_dir = model_dir
        self._folder = os.path.join(model_dir, _FOLDER)
        self.checkpoint: str | None = None
        self.metrics: dict[str, float] = {}
        self.losses: dict[int, float] = {}
        note = os.path.join(self._folder, _FILE)
        if tf.io.gfile.exists(note):
            with tf.io.gfile.GFile(note) as stream:
                fields = json.load(stream)
            self.checkpoint = fields["checkpoint"]
            self.metrics = {name: float(value) for name, value in fields["metrics"].items()}
            self.losses = {int(step): float(loss) for step, loss in fields["losses"].items()}

    @property
    def loss(self) -> float:
        """Loss of its evaluation; NaN without one."""
        return self.metrics.get(LOSS, math.nan)

    @property
    def step(self) -> int:
        """Global step of the checkpoint; 0 without one."""
        return _global_step(self.checkpoint) if self.checkpoint else 0

    def keep(self, checkpoint_path: str, metrics: Mapping[str, float]) -> None:
        """Copies a checkpoint; if the process is killed while copying, the previous copy stays."""
        earlier = self.checkpoint
        tf.io.gfile.makedirs(self._folder)
        name = os.path.basename(checkpoint_path)
        for file in tf.io.gfile.glob(f"{checkpoint_path}.*"):
            target = os.path.join(self._folder, os.path.basename(file))
            tf.io.gfile.copy(file, target, overwrite=True)
        self.checkpoint, self.metrics = name, dict(metrics)
        self.write_note()
        if earlier not in (None, name):
            for file in tf.io.gfile.glob(os.path.join(self._folder, f"{earlier}.*")):
                tf.io.gfile.remove(file)

    def write_note(self) -> None:
        """Writes the attributes next to the copy."""
        note = os.path.join(self._folder, _FILE)
        fields: dict[str, Any] = {"checkpoint": self.checkpoint}
        for name, values in (("metrics", self.metrics), ("losses", self.losses)):
            fields[name] = {key: str(value) for key, value in values.items()}  # JSON has no NaN
        write_uri(note, json.dumps(fields))

    def make_newest(self) -> str:
        """Makes the copy the newest checkpoint of the model_dir, and returns its path."""
        path = os.path.join(self._model_dir, str(self.checkpoint))
        for file in tf.io.gfile.glob(os.path.join(self._folder, f"{self.checkpoint}.*")):
            target = os.path.join(self._model_dir, os.path.basename(file))
            if not tf.io.gfile.exists(target):
                tf.io.gfile.copy(file, target)
        state = tf.train.get_checkpoint_state(self._model_dir)
        others = [] if state is None else state.all_model_checkpoint_paths
        # Relative paths, as an Estimator writes them: the directory may be moved.
        names = [os.path.basename(other) for other in others]
        kept = [name for name in names if name != self.checkpoint]
        tf1.train.update_checkpoint_state(
            self._model_dir, str(self.checkpoint), [*kept, str(self.checkpoint)]
        )
        return path


def _global_step(checkpoint: str) -> int:
    return int(checkpoint.rpartition("-")[2])
