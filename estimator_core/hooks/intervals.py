"""At which steps a hook has to be called, so that the steps in between can run in one session call.

A hook of the user's declares its interval with the two methods of `StepInterval`. One that does not is
called at every step: what it does there is not known.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import Any, Protocol, cast

from estimator_core import tf1
from estimator_core.hooks.nan_loss import SaverUnlessNan
from estimator_core.spec.types import Hook


class StepInterval(Protocol):
    """When a hook has to be called next.

    The two methods speak for the `before_run` and `after_run` of the same class, and of its bases. A
    subclass that overrides one of these declares the interval anew; if it does not, it is called at
    every step.

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
        """Counts steps that were made without calling the hook.

        Args:
            steps: How many, 1 or more.
        """


def interval_of(hook: Hook) -> StepInterval | None:
    """Returns when a hook has to be called; None when that is at every step."""
    if isinstance(hook, SaverUnlessNan):
        return interval_of(hook.saver)
    if _declares_its_interval(hook):
        return cast("StepInterval", hook)
    for kind, make in _OF_TENSORFLOW.items():
        if isinstance(hook, kind) and _has_the_calls_of(kind, hook):
            return make(hook)
    return _Never() if _has_the_calls_of(Hook, hook) else None


def is_called_around_steps(hook: Hook) -> bool:
    """Returns whether a hook does anything around steps, and not only at the beginning or the end."""
    return not _has_the_calls_of(Hook, hook)


def is_of_library(hook: Hook) -> bool:
    """Returns whether a hook runs code of this package, TensorFlow or Keras only, and none of the user's."""
    is_library = type(hook).__module__.partition(".")[0] in _LIBRARIES
    return is_library and not getattr(hook, "calls_the_user", False)


_LIBRARIES = ("estimator_core", "keras", "tensorflow", "tf_keras")
_FEWEST_FOR_A_LOOP = 200  # to build a loop takes as long as some hundred small steps
_CALLS = ("before_run", "after_run")
_DECLARATION = ("steps_until_due", "skip_steps")


def _declares_its_interval(hook: Hook) -> bool:
    """Returns whether the class of `hook` declares an interval, and nothing overrides the calls since.

    What a subclass, or the instance itself, does in a `before_run` or `after_run` of its own is not
    known to the class that declared the interval.
    """
    if not all(callable(getattr(type(hook), name, None)) for name in _DECLARATION):
        return False
    if _has_calls_of_its_own(hook):
        return False
    declared_in = _index_of_class(hook, "steps_until_due")
    return all(declared_in <= _index_of_class(hook, name) for name in _CALLS)


def _index_of_class(hook: Hook, name: str) -> int:
    """Returns where in the method resolution order the method is found: 0 is the hook's own class."""
    return next(index for index, kind in enumerate(type(hook).__mro__) if name in vars(kind))


def _has_calls_of_its_own(hook: Hook) -> bool:
    """Returns whether a method was set on the instance."""
    return any(name in getattr(hook, "__dict__", ()) for name in _CALLS)


def _has_the_calls_of(kind: type, hook: Hook) -> bool:
    """Returns whether `hook` does around steps what hooks of that class do, and nothing of its own."""
    same = all(getattr(type(hook), name) is getattr(kind, name) for name in _CALLS)
    return same and not _has_calls_of_its_own(hook)


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
        """Counts nothing: most go by the global step, which they read themselves."""
        del steps


class _Stop(_OfTensorFlow):
    def steps_until_due(self, global_step: int) -> int | None:
        return max(self._hook._last_step - global_step, 1)


class _ByGlobalStep(_OfTensorFlow):
    """Saves a checkpoint or counts steps when its timer says so of the global step."""

    def steps_until_due(self, global_step: int) -> int | None:
        return steps_until_triggered(self._hook._timer, global_step)


class _ByNextStep(_ByGlobalStep):
    """Decides before a step, by the step number that it expects: one above the last that it saw.

    It writes summaries, or a profile.
    """

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


class _Waiting(_OfTensorFlow):
    """Waits before its first step, and does nothing after that."""

    def steps_until_due(self, global_step: int) -> int | None:
        del global_step
        return None if self._hook._worker_is_started else 1


_OF_TENSORFLOW: dict[type, type[_OfTensorFlow]] = {
    tf1.train.CheckpointSaverHook: _ByGlobalStep,
    tf1.train.GlobalStepWaiterHook: _Waiting,
    tf1.train.LoggingTensorHook: _Logging,
    tf1.train.ProfilerHook: _ByNextStep,
    tf1.train.StepCounterHook: _ByGlobalStep,
    tf1.train.StopAtStepHook: _Stop,
    tf1.train.SummarySaverHook: _ByNextStep,
}


def pays_to_prepare(hooks: Sequence[Hook]) -> bool:
    """Returns whether so many steps are to come that a loop in the graph is worth building.

    Args:
        hooks: Those of the training, before the session is there. It may begin at any step.
    """
    known = []
    for hook in hooks:
        if isinstance(hook, tf1.train.StopAtStepHook):
            known.append(hook._last_step if hook._num_steps is None else hook._num_steps)
    return min(known, default=_FEWEST_FOR_A_LOOP) >= _FEWEST_FOR_A_LOOP


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
    if every_steps is None:
        return None
    return math.ceil(timer.last_triggered_step() + every_steps - step)
