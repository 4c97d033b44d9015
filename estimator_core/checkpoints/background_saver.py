"""A saver that writes checkpoints while training continues."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.logs import logger

_MOST_BYTES = 1 << 30  # of values: a second copy is held in memory during the write


class BackgroundSaver(tf1.train.Saver):
    """A `Saver` that can return from `save` as soon as it has the values of a checkpoint.

    A thread writes them in the same format, and then updates the checkpoint state: until everything is on
    disk, the previous checkpoint remains the newest. A call of `save` waits for the previous call and
    raises its error. `save` writes in the foreground if the session belongs to a server, or if there are more
    than 1 GiB of values, since they are held in memory twice. The `MetaGraphDef` is computed once per graph,
    and written each time.
    """

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.writes_beside = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._meta_graph: tuple[Any, Any] | None = None

    def save(self, sess: Any, save_path: str, global_step: Any = None, **options: Any) -> Any:
        """Saves a checkpoint; see `tf.compat.v1.train.Saver.save`."""
        self.wait()
        values = None
        if self.writes_beside and isinstance(sess, tf1.Session) and not sess.sess_str:
            values = _values_to_save(sess, self.saver_def.save_tensor_name)
        if values is None:
            return super().save(sess, save_path, global_step, **options)
        fed = _SessionWithValues(sess, values)
        self._thread = threading.Thread(
            target=self._write,
            args=(fed, save_path, global_step, options),
            name=f"checkpoint of step {global_step}",
        )
        self._thread.start()
        return f"{save_path}-{global_step}"

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Takes over earlier checkpoints, oldest first, except deleted ones."""
        checkpoints = []
        for path in checkpoint_paths:
            index = f"{path}.index"
            if tf.io.gfile.exists(index):
                checkpoints.append((path, tf.io.gfile.stat(index).mtime_nsec / 1e9))
        self.set_last_checkpoints_with_time(checkpoints)

    def _write(self, session: Any, save_path: str, global_step: Any, options: Any) -> None:
        try:
            with session.graph.as_default():  # a new thread has no default graph
                super().save(session, save_path, global_step, **options)
        except BaseException as error:  # `wait` raises it in the training thread
            self._error = error

    def wait(self) -> None:
        """Waits until the last checkpoint is on disk; raises the error if it could not be written."""
        if self._thread is None:
            return
        self._thread.join()
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    @contextlib.contextmanager
    def waited_for_after_errors(self) -> Iterator[None]:
        """Opens a context that waits for the last checkpoint before an error leaves it."""
        try:
            yield
        except BaseException:
            try:
                self.wait()
            except Exception as error:  # the first error is raised
                logger.error("The last checkpoint could not be written: %s", error)
            raise

    def export_meta_graph(self, filename: str | None = None, *args: Any, **options: Any) -> Any:
        """Writes the `MetaGraphDef`; see `tf.compat.v1.train.Saver.export_meta_graph`."""
        if filename is None or args or options.get("as_text") or options.get("save_debug_info"):
            return super().export_meta_graph(filename, *args, **options)
        with tf.io.gfile.GFile(filename, "wb") as file:
            file.write(self.meta_graph_def(**options).SerializeToString())
        return None

    def meta_graph_def(self, **options: Any) -> Any:
        """Returns the `MetaGraphDef` of the default graph, computed anew after the graph has changed."""
        graph = tf1.get_default_graph()
        sizes = tuple((key, len(tf1.get_collection(key))) for key in graph.get_all_collection_keys())
        not_defaults = tuple(sorted(option for option in options.items() if option[1]))
        key = (id(graph), graph.version, sizes, not_defaults)
        if self._meta_graph is None or self._meta_graph[0] != key:
            self._meta_graph = (key, super().export_meta_graph(None, **options))
        return self._meta_graph[1]


class WaitForCheckpoint(tf1.train.SessionRunHook):
    """Waits for the last checkpoint at the end of training; comes after the hook that saves it."""

    def __init__(self, saver: BackgroundSaver):
        self._saver = saver

    def end(self, session: Any) -> None:
        del session
        self._saver.wait()


class _SessionWithValues(tf1.SessionInterface):
    """A session in which some tensors keep the values they had at an earlier moment."""

    def __init__(self, session: Any, values: dict[tf.Tensor, Any]):
        self._session = session
        self._values = values

    @property
    def graph(self) -> tf.Graph:
        return self._session.graph

    def run(self, fetches: Any, feed_dict: Any = None, *args: Any, **options: Any) -> Any:
        """Runs the fetches with the kept values fed."""
        return self._session.run(fetches, {**self._values, **(feed_dict or {})}, *args, **options)


def _values_to_save(session: Any, save_tensor_name: str) -> dict[tf.Tensor, Any] | None:
    """Returns the values to save by tensor; None if they can't be kept until they are written."""
    tensors = _saved_tensors(session.graph.get_tensor_by_name(save_tensor_name).op)
    sizes = [(tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in tensors]
    if sum(sizes) > _MOST_BYTES or not all(map(session.graph.is_feedable, tensors)):
        return None
    return dict(zip(tensors, session.run(tensors), strict=True))


def _saved_tensors(save_op: tf.Operation) -> Sequence[tf.Tensor]:
    """Returns the tensors written by the operations that `save_op` depends on."""
    tensors: dict[Any, tf.Tensor] = {}
    upstream = {save_op}
    pending = [save_op]
    while pending:
        operation = pending.pop()
        inputs = list(operation.inputs)
        if operation.type == "SaveV2":
            _, _, _, *written = inputs  # the first three: file name, tensor names, slices
            tensors.update((tensor.ref(), tensor) for tensor in written)
            continue
        sources = {*operation.control_inputs, *(tensor.op for tensor in inputs)} - upstream
        upstream |= sources
        pending += sources
    return [*tensors.values()]


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
