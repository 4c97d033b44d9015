"""The newest checkpoint of a model_dir that can be restored.

The file `checkpoint` names the newest checkpoint. When that file, or that checkpoint, is broken, the
newest whole checkpoint of the folder takes its place.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from estimator_core import tf1
from estimator_core.checkpoints.whole import checkpoint_files, why_not_whole
from estimator_core.logs import logger

_POLL_SECS = 0.1
_MAX_POLLS = 50  # a training that keeps a single checkpoint has none for a moment

Result = TypeVar("Result")
_STATE = "checkpoint"
_NAME = "model.ckpt"  # name of an Estimator's checkpoints, before "-<step>"
_WAIT_SECS = 0.5  # a checkpoint that is saved again is broken while its files are written

_warned: set[Any] = set()
"""Broken checkpoints already warned about, since callers that follow new checkpoints look repeatedly."""


def latest_checkpoint(model_dir: str) -> str | None:
    """Returns the path of the newest whole checkpoint; None when `model_dir` has never been trained in."""
    named = _named(model_dir)
    if named and why_not_whole(named) is None:
        return named
    if not named and not tf.io.gfile.isdir(model_dir):
        return None
    return _fallback_checkpoint(named, model_dir)


def _fallback_checkpoint(named: str | None, model_dir: str) -> str | None:
    """Returns the newest whole checkpoint when the named one is broken or missing."""
    state = os.path.join(model_dir, _STATE)
    has_state = tf.io.gfile.exists(state)
    steps = _steps(model_dir, only=None if has_state else _NAME)
    if not has_state and not steps:
        return None
    key = (model_dir, named, checkpoint_files(named) if named else has_state)
    if key not in _warned:
        time.sleep(_WAIT_SECS)
    if _named(model_dir) != named or (named and why_not_whole(named) is None):
        return latest_checkpoint(model_dir)  # a concurrent training has just saved it
    problems = []
    if not named:
        problems.append(f"{state} can't be read" if has_state else f"{state} is missing")
    for path in dict.fromkeys([*([named] if named else ()), *steps]):
        problem = why_not_whole(path)
        if problem is None:
            if key not in _warned:
                reasons = "; ".join(problems)
                logger.warning("%s. Using the newest complete checkpoint: %s", reasons, path)
                _warned.add(key)
            return path
        problems.append(problem)
    raise ValueError(
        f"No checkpoint in {model_dir} is complete, so none can be restored: {'; '.join(problems)}. Restore "
        f"the files from a copy; or, to begin at step 0, use another model_dir or delete the file {_STATE!r} "
        "and the checkpoints."
    )


def name_newest(model_dir: str, path: str | None) -> None:
    """Makes the file `checkpoint` name `path` as the newest checkpoint; no file is deleted.

    A training that starts from `path` then saves, keeps and deletes checkpoints as if there had been no
    newer one.
    """
    if path is None or _named(model_dir) == path:
        return
    state = _state(model_dir)
    listed = [] if state is None else state.all_model_checkpoint_paths
    kept = [
        listed_path for listed_path in listed if listed_path != path and why_not_whole(listed_path) is None
    ]
    # Relative paths, as an Estimator writes them: the directory may be moved.
    prefix = os.path.join(model_dir, "")
    paths = [kept_path.removeprefix(prefix) for kept_path in (*kept, path)]
    new = tf1.train.generate_checkpoint_state_proto(model_dir, paths[-1])
    new.all_model_checkpoint_paths[:] = paths
    file = os.path.join(model_dir, _STATE)
    with tf.io.gfile.GFile(f"{file}.new", "w") as stream:
        stream.write(str(new))
    tf.io.gfile.rename(f"{file}.new", file, overwrite=True)


def _state(model_dir: str) -> Any:
    try:
        return tf.train.get_checkpoint_state(model_dir)
    except ValueError:  # the file is empty or not text
        return None


def _named(model_dir: str) -> str | None:
    """Returns the newest checkpoint that the file `checkpoint` names; None when it names none."""
    state = _state(model_dir)
    return None if state is None else str(state.model_checkpoint_path)


def _steps(model_dir: str, only: str | None) -> list[str]:
    """Returns the checkpoints of `model_dir` that have an index, highest step first.

    `only`: name of the checkpoints before "-<step>"; None takes all names, the Estimator's first.
    """
    checkpoints = []
    for name in tf.io.gfile.listdir(model_dir):
        match = re.fullmatch(r"(.+)-(\d+)\.index", name)
        if match and only in (None, match[1]):
            path = os.path.join(model_dir, name.removesuffix(".index"))
            checkpoints.append((match[1] == _NAME, int(match[2]), path))
    return [path for _, _, path in sorted(checkpoints, reverse=True)]


def with_newest(
    newest: Callable[[], str | None],
    use: Callable[[str | None], Result],
    sleep: Callable[[float], None] = time.sleep,
) -> Result:
    """Returns `use(newest())`, and tries the next checkpoint if that is deleted during the call."""
    while True:
        path = newest()
        try:
            return use(path)
        except Exception:
            if path is None or tf.io.gfile.exists(f"{path}.index"):
                raise
            following = newest()
            for _ in range(_MAX_POLLS):
                if following is not None:
                    break
                sleep(_POLL_SECS)
                following = newest()
            if following in (None, path):
                raise
            logger.info("The checkpoint %s was deleted; using the next one, %s.", path, following)
