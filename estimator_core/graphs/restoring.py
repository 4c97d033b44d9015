"""Sessions that start with the values of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core import tf1
from estimator_core.checkpoints import reader
from estimator_core.checkpoints.newest import with_newest
from estimator_core.graphs.program import Program
from estimator_core.spec.estimator_spec import EstimatorSpec


class RestoringSessionCreator(tf1.train.SessionCreator):
    """Creates the sessions of a program, restored from the newest checkpoint at that moment.

    Building a graph takes seconds, during which a concurrent training may delete the checkpoint that was
    newest before. So the newest checkpoint is looked up as late as possible, and again if necessary.

    Args:
        program: Program to create sessions for.
        newest: Function that returns the path of the checkpoint, or None to initialize the variables.
        has_hooks: True if the user's hooks see the graph, which then gets everything that a `Scaffold` adds.

    Attributes:
        checkpoint_path: Checkpoint that the last session was restored from.
    """

    def __init__(self, program: Program, newest: Callable[[], str | None], has_hooks: bool = True):
        self._program = program
        self._has_hooks = has_hooks
        self._newest = newest
        self.checkpoint_path: str | None = None

    def create_session(self) -> Any:
        """Returns a session."""
        return with_newest(self._newest, self._create)

    def _create(self, path: str | None) -> Any:
        check_checkpoint(self._program.spec, path)
        session = None
        if path and not self._has_hooks:
            session = self._program.restored_session(path)
        if session is None:
            session = self._program.session_creator(checkpoint_path=path).create_session()
        self.checkpoint_path = path
        return session


def check_checkpoint(spec: EstimatorSpec, checkpoint_path: str | None) -> None:
    """Checks the shapes in the checkpoint, unless the user's own saver restores it."""
    if checkpoint_path and spec.scaffold.saver is None:
        reader.check_shapes(checkpoint_path)
