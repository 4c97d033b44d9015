"""Sessions that start with the values of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from estimator_core import tf1
from estimator_core.checkpoints import reader
from estimator_core.checkpoints.background_saver import BackgroundSaver
from estimator_core.checkpoints.latest import with_newest
from estimator_core.graphs.program import Program
from estimator_core.logs import logger
from estimator_core.spec.estimator_spec import EstimatorSpec


class RestoringSessionCreator(tf1.train.SessionCreator):
    """Creates the sessions of a program, restored from the newest checkpoint at that moment.

    Building a graph takes seconds, during which a concurrent training may delete the checkpoint that was
    newest before. Therefore the newest checkpoint is looked up as late as possible, and again if necessary.
    """

    def __init__(self, program: Program, newest: Callable[[], str | None], has_hooks: bool = True):
        self._program = program
        self._has_hooks = has_hooks
        self._newest = newest
        self.checkpoint_path: str | None = None

    def create_session(self) -> Any:
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


class HookVariablesSessionCreator(tf1.train.SessionCreator):
    """Initializes the variables that hooks add to a training, if the checkpoint does not have them.

    This happens when a hook is added to a model that was trained without it. A missing variable of the model
    itself remains an error, because the checkpoint then belongs to another model.
    """

    def __init__(self, creator: tf1.train.SessionCreator, scaffold: Any, checkpoint_path: str | None):
        self._creator = creator
        self._scaffold = scaffold
        self._checkpoint_path = checkpoint_path
        self._model_variables = {variable.ref() for variable in tf1.global_variables()}

    def create_session(self) -> Any:
        if self._checkpoint_path and not tf1.get_default_graph().finalized:
            missing = self._missing(self._checkpoint_path)
            if missing:
                self._restore_without(missing)
        return self._creator.create_session()

    def _missing(self, path: str) -> list[Any]:
        """Returns the variables of hooks that the checkpoint at `path` does not have."""
        variables = tf1.global_variables()
        added = [variable for variable in variables if variable.ref() not in self._model_variables]
        saved = reader.saved_shapes(path) if added else {}
        missing = []
        for variable in added:
            part = getattr(variable, "_save_slice_info", None)  # of a partitioned variable
            if (variable.op.name if part is None else part.full_name) not in saved:
                missing.append(variable)
        return missing

    def _restore_without(self, missing: list[Any]) -> None:
        """Makes the scaffold's saver initialize these variables after it has restored the others."""
        # A saver that the user's model_fn made restores the variables that existed then. Any other restores
        # all variables, or fails, so it is replaced for checkpoints that lack some.
        others = None
        savers = tf1.get_collection(tf1.GraphKeys.SAVERS)
        if self._scaffold.saver is None and all(isinstance(saver, BackgroundSaver) for saver in savers):
            refs = {variable.ref() for variable in missing}
            variables = [variable for variable in tf1.global_variables() if variable.ref() not in refs]
            objects = tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)
            others = tf1.train.Saver([*variables, *objects], sharded=True)
        initializers = [variable.initializer for variable in missing]
        self._scaffold.finalize()
        saver = self._scaffold.saver
        restore_all = saver.restore

        def restore(session: Any, path: str) -> None:
            # A session that replaces a lost one, from a checkpoint of this training, lacks none.
            if not self._missing(path):
                restore_all(session, path)
                return
            (others.restore if others else restore_all)(session, path)
            session.run(initializers)
            names = ", ".join(variable.op.name for variable in missing)
            logger.warning(
                "Hooks have added variables that are not in %s. They have their initial values: %s",
                path,
                names,
            )

        saver.restore = restore


def check_checkpoint(spec: EstimatorSpec, checkpoint_path: str | None) -> None:
    """Checks the shapes in the checkpoint, unless the user's own saver restores it."""
    if checkpoint_path and spec.scaffold.saver is None:
        reader.check_shapes(checkpoint_path)
