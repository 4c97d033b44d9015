"""Reading the newest checkpoint while a concurrent training deletes old ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import tensorflow as tf

from estimator_core.logs import logger

_WAIT_SECS = 0.1
_MAX_WAITS = 50  # a training that keeps a single checkpoint has none for a moment

Result = TypeVar("Result")


def with_newest(
    newest: Callable[[], str | None],
    use: Callable[[str | None], Result],
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Returns `use(newest())`; if that checkpoint is deleted meanwhile, tries again with the next one.

    `newest`: function that returns the path of a checkpoint, or None when there is none.
    `sleep`: function that waits for a number of seconds.
    """
    while True:
        path = newest()
        try:
            return use(path)
        except Exception:
            if path is None or tf.io.gfile.exists(f"{path}.index"):
                raise
            following = newest()
            for _ in range(_MAX_WAITS):
                if following is not None:
                    break
                sleep(_WAIT_SECS)
                following = newest()
            if following in (None, path):
                raise
            logger.info("The checkpoint %s was deleted; taking the next one, %s.", path, following)
