"""A `CheckpointSaverHook` that turns the graph into a proto once."""

from __future__ import annotations

import os
import time
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.background_saver import BackgroundSaver


class GraphOnceSaverHook(tf1.train.CheckpointSaverHook):
    """Writes the files of TensorFlow's `CheckpointSaverHook`, from one proto of the graph.

    TensorFlow turns the graph into a proto four times, and into text in Python.
    """

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Writes the graph, and the checkpoint of the step at which training begins."""
        saver = self._get_saver()
        if not isinstance(saver, BackgroundSaver):
            super().after_create_session(session, coord)
            return
        step = session.run(self._global_step_tensor)
        meta_graph = saver.meta_graph_def()
        if self._save_graph_def:
            path = os.path.join(self._checkpoint_dir, "graph.pbtxt")
            with tf.io.gfile.GFile(f"{path}.tmp", "w") as file:
                file.write(str(meta_graph.graph_def))  # in C
            tf.io.gfile.rename(f"{path}.tmp", path, overwrite=True)
        graph = meta_graph.graph_def.SerializeToString()
        self._summary_writer.add_event(tf1.Event(wall_time=time.time(), graph_def=graph))
        self._summary_writer.add_meta_graph(meta_graph)
        self._save(session, step)
        self._timer.update_last_triggered_step(step)
