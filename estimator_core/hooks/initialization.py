"""Hooks that give variables their initial values from the input."""

from __future__ import annotations

from estimator_core import tf1


class InitializationHook(tf1.train.SessionRunHook):
    """A hook whose `after_create_session` sets variables that the initializers could not.

    It runs once the input is available and before the first checkpoint is written, so that the checkpoint
    has these values. Other training hooks see the session after that.
    """
