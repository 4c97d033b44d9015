"""Sessions that begin with the values of a checkpoint."""

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

    Building a graph takes seconds, in which a training beside may have deleted what was the newest
    checkpoint before; so the question is asked as late as possible, and again if need be.

    Args:
        program: Whose sessions they are.
        newest: Returns the path of the checkpoint; None initializes the variables.
        has_hooks: Whether hooks of the user's see the graph. For them it gets all that a `Scaffold` adds.

    Attributes:
        checkpoint_path: What the last session was restored from.
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
    """Checks the shapes in the checkpoint, unless the user's own saver decides what is restored."""
    if checkpoint_path and spec.scaffold.saver is None:
        reader.check_shapes(checkpoint_path)
