"""The number of checkpoints that an object-based saver keeps."""

from __future__ import annotations

from typing import Any

from estimator_core import tf1


class KeepCheckpoints(tf1.train.SessionRunHook):
    """Applies `RunConfig`'s number of checkpoints to an object-based saver.

    The scaffold makes that saver from a `tf.train.Checkpoint`, with default numbers.

    Args:
        scaffold: Scaffold with the saver.
        config: The `RunConfig`.
    """

    def __init__(self, scaffold: Any, config: Any):
        self._scaffold = scaffold
        self._config = config

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the numbers after the saver was made."""
        del session, coord
        saver_def = self._scaffold.saver.saver_def
        saver_def.max_to_keep = self._config.keep_checkpoint_max or 0
        saver_def.keep_checkpoint_every_n_hours = self._config.keep_checkpoint_every_n_hours
