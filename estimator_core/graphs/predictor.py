"""Predictor: a trained model as a function from feature values to predictions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from estimator_core.graphs.program import Program
from estimator_core.graphs.restoring import RestoringSessionCreator


class Predictor:
    """Predicts repeatedly with one graph and one session.

    Created by `Estimator.predictor`. Close it when done, or use it as a context manager.
    """

    def __init__(self, program: Program, receiver_tensors: Any, checkpoint_path: Callable[[], str | None]):
        self._placeholders = (
            dict(receiver_tensors) if isinstance(receiver_tensors, Mapping) else receiver_tensors
        )
        self._checkpoint_path = checkpoint_path
        self._program = program
        self._restored: str | None = None
        self._session: Any = None
        self._lock = threading.Lock()

    @property
    def input_names(self) -> list[str]:
        """Names of the input values; empty if there is a single one without a name."""
        return sorted(self._placeholders) if isinstance(self._placeholders, dict) else []

    def __call__(self, values: Any) -> Any:
        """Returns the predictions, NumPy arrays, for the values of a batch."""
        feeds = self._feeds(values)
        with self._lock:
            session = self._open_session(self._checkpoint_path())
        return session.run(self._program.fetches, feeds)

    def _open_session(self, checkpoint_path: str | None) -> Any:
        if checkpoint_path is None:
            raise ValueError("The checkpoint to predict with no longer exists. Received: None")
        if self._session is None or checkpoint_path != self._restored:
            # Other threads may still be using the last session; it is freed after their last call.
            creator = RestoringSessionCreator(self._program, self._checkpoint_path, has_hooks=False)
            with self._program.graph.as_default():
                self._session = creator.create_session()
            self._restored = creator.checkpoint_path
        return self._session

    def close(self) -> None:
        """Closes the session; a later call opens a new session."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self) -> Predictor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _feeds(self, values: Any) -> dict[Any, Any]:
        if not isinstance(self._placeholders, dict):
            return {self._placeholders: values}
        if not isinstance(values, Mapping):
            if len(self._placeholders) == 1:
                return {next(iter(self._placeholders.values())): values}
            raise ValueError(f"Give a dict with the values of {self.input_names}. Received: {values!r}")
        if set(values) != set(self._placeholders):
            raise ValueError(f"The model takes the values {self.input_names}. Received: {sorted(values)}")
        return {self._placeholders[name]: value for name, value in values.items()}
