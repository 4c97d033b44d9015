"""Hooks that give variables their initial values from the input."""

from __future__ import annotations

from estimator_core import tf1


class InitializationHook(tf1.train.SessionRunHook):
    """A hook whose `after_create_session` finishes what the initializers began.

    It runs once the input is there and before the first checkpoint is written, which so has these
    values; other training hooks see the session after that.
    """
