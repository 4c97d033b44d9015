"""The number of checkpoints that a training keeps."""

from __future__ import annotations

import time
from typing import Any

from estimator_core import tf1


class KeepCheckpoints(tf1.train.SessionRunHook):
    """Applies `RunConfig`'s number of checkpoints to a saver that was made with TensorFlow's defaults.

    Comes before the hook that saves.
    """

    def __init__(self, scaffold: Any, config: Any, deletes_surplus: bool):
        self._scaffold = scaffold
        self._max = config.keep_checkpoint_max or 0
        hours = config.keep_checkpoint_every_n_hours
        self._hours = float("inf") if hours is None else hours  # a Saver keeps all if it is 0
        self._deletes_surplus = deletes_surplus
        self._is_set = False

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the numbers in the saver, which the scaffold has made by now."""
        del session, coord
        saver = self._scaffold.saver
        # A session that replaces a lost one keeps counting the hours.
        if not self._is_set:
            self._is_set = True
            saver.saver_def.max_to_keep = self._max
            saver.saver_def.keep_checkpoint_every_n_hours = self._hours
            saver._next_checkpoint_time = time.time() + self._hours * 3600  # noqa: SLF001
        # A saver deletes at most one checkpoint for each that it saves. If an earlier training kept more
        # checkpoints than this one, their number would never become smaller.
        paths = saver.last_checkpoints
        surplus = paths[: -self._max] if self._max else []
        if surplus and self._deletes_surplus:
            for path in surplus:
                tf1.train.remove_checkpoint(path)
            saver.recover_last_checkpoints(paths[-self._max :])
