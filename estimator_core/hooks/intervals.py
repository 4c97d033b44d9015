"""At which steps a hook has to be called, so that the steps in between can run in one session call.

A hook of the user's declares it with the two methods of `StepInterval`. One that does not is called at
every step: what it does there is not known.
"""

from __future__ import annotations

import abc
from typing import Any, Protocol, runtime_checkable

from estimator_core import tf1
from estimator_core.spec.types import Hook


@runtime_checkable
class StepInterval(Protocol):
    """When a hook has to be called next.

    Example:
        >>> class EveryHundredSteps(SessionRunHook):
        ...     def steps_until_due(self, global_step):
        ...         return 100 - global_step % 100
        ...
        ...     def skip_steps(self, steps):
        ...         pass
        ...
        ...     def after_run(self, run_context, run_values):
        ...         print("another hundred")
    """

    def steps_until_due(self, global_step: int) -> int | None:
        """Returns how many steps after `global_step` the hook has to be called; None is never.

        Args:
            global_step: Steps that are done.

        Returns:
            1 for the next step, or more. The hook may be called earlier.
        """

    def skip_steps(self, steps: int) -> None:
        """Hears that so many steps were made without a call of the hook; the next call is one more."""


def interval_of(hook: Hook) -> StepInterval | None:
    """Returns when a hook has to be called; None when that is at every step."""
    if isinstance(hook, StepInterval):
        return hook
    for kind, make in _OF_TENSORFLOW.items():
        if isinstance(hook, kind) and _has_the_calls_of(kind, hook):
            return make(hook)
    return _Never() if _has_the_calls_of(Hook, hook) else None


def _has_the_calls_of(kind: type, hook: Hook) -> bool:
    """Returns whether `hook` does around steps what hooks of that class do, and nothing of its own."""
    return all(getattr(type(hook), name) is getattr(kind, name) for name in _AROUND_STEPS)


_AROUND_STEPS = ("before_run", "after_run")


class _Never:
    """A hook that does nothing around steps, only at the beginning or the end."""

    def steps_until_due(self, global_step: int) -> int | None:
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        del steps


class _OfTensorFlow(abc.ABC):
    """A hook of `tf.compat.v1.train`, whose interval has no public name.

    Args:
        hook: The hook.
    """

    def __init__(self, hook: Any):
        self._hook = hook

    @abc.abstractmethod
    def steps_until_due(self, global_step: int) -> int | None:
        """Returns how many steps after `global_step` the hook has to be called; None is never."""

    def skip_steps(self, steps: int) -> None:
        """Hears of skipped steps; most go by the global step, which they read for themselves."""
        del steps


class _Stop(_OfTensorFlow):
    def steps_until_due(self, global_step: int) -> int | None:
        return max(self._hook._last_step - global_step, 1)


class _ByGlobalStep(_OfTensorFlow):
    """Saves a checkpoint or counts steps when its timer says so of the global step."""

    def steps_until_due(self, global_step: int) -> int | None:
        return steps_until_triggered(self._hook._timer, global_step)


class _Summaries(_ByGlobalStep):
    """Decides before a step, by the step number that it expects: one above the last that it saw."""

    def skip_steps(self, steps: int) -> None:
        if self._hook._next_step is not None:
            self._hook._next_step += steps

    def steps_until_due(self, global_step: int) -> int | None:
        if self._hook._next_step is None:
            return 1  # it has not been called in this session
        return super().steps_until_due(global_step)


class _Logging(_OfTensorFlow):
    """Counts its own calls, from 0, and asks before the call whose number is due."""

    def steps_until_due(self, global_step: int) -> int | None:
        del global_step
        return steps_until_triggered(self._hook._timer, self._hook._iter_count - 1)

    def skip_steps(self, steps: int) -> None:
        self._hook._iter_count += steps


_OF_TENSORFLOW: dict[type, type[_OfTensorFlow]] = {
    tf1.train.CheckpointSaverHook: _ByGlobalStep,
    tf1.train.LoggingTensorHook: _Logging,
    tf1.train.StepCounterHook: _ByGlobalStep,
    tf1.train.StopAtStepHook: _Stop,
    tf1.train.SummarySaverHook: _Summaries,
}


def steps_until_multiple(count: int, every: int | None) -> int | None:
    """Returns how many calls after the first `count` one has a number, from 0, divisible by `every`.

    Args:
        count: Calls so far.
        every: The interval; None or 0 means never.
    """
    return None if not every else -count % every + 1


def steps_until_triggered(timer: Any, step: int) -> int | None:
    """Returns how many steps after `step` a `SecondOrStepTimer` triggers; None when it goes by time.

    One that goes by time triggers at whatever step comes once the time is over.
    """
    if timer.should_trigger_for_step(step + 1):
        return 1
    every_steps = getattr(timer, "_every_steps", None)  # what never triggers has none
    return None if every_steps is None else timer.last_triggered_step() + every_steps - step
