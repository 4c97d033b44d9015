"""The steps at which hooks have to be called; the steps in between can run in one session call.

A user's hook declares its interval with the two methods of `StepInterval`. A hook that does not is called
at every step.
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
    """Methods by which a hook declares the steps at which it has to be called.

    The declaration covers the `before_run` and `after_run` of the same class and of its bases. A subclass
    that overrides one of these has to declare the interval again; otherwise it is called at every step.

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

        Returns 1 or more; 1 is the next step. The hook may be called earlier.
        """

    def skip_steps(self, steps: int) -> None:
        """Counts steps that were made without calling the hook."""


def find_interval(hook: Hook) -> StepInterval | None:
    """Returns the interval of a hook; None if it has to be called at every step."""
    if isinstance(hook, SaverUnlessNan):
        return find_interval(hook.saver)
    if _declares_its_interval(hook):
        return cast("StepInterval", hook)
    for kind, make in _OF_TENSORFLOW.items():
        if isinstance(hook, kind) and _inherits_calls(kind, hook):
            return make(hook)
    return _Never() if _inherits_calls(Hook, hook) else None


def is_called_around_steps(hook: Hook) -> bool:
    """Returns whether a hook does anything around steps, not only at the beginning or the end."""
    return not _inherits_calls(Hook, hook)


def is_of_library(hook: Hook) -> bool:
    """Returns whether a hook runs only code of this package, TensorFlow or Keras, and no user code."""
    is_library = type(hook).__module__.partition(".")[0] in _LIBRARIES
    return is_library and not getattr(hook, "calls_the_user", False)


_LIBRARIES = ("estimator_core", "keras", "tensorflow", "tf_keras")
_FEWEST_FOR_A_LOOP = 200  # building a loop takes as long as a few hundred small steps
_CALLS = ("before_run", "after_run")
_DECLARATION = ("steps_until_due", "skip_steps")


def _declares_its_interval(hook: Hook) -> bool:
    """Returns whether the class of `hook` declares an interval, and nothing overrides its calls.

    A `before_run` or `after_run` of a subclass, or of the instance itself, is not covered by the interval
    that the base class declared.
    """
    if not all(callable(getattr(type(hook), name, None)) for name in _DECLARATION):
        return False
    if _has_calls_of_its_own(hook):
        return False
    declared_in = _index_of_class(hook, "steps_until_due")
    return all(declared_in <= _index_of_class(hook, name) for name in _CALLS)


def _index_of_class(hook: Hook, name: str) -> int:
    """Returns the index in the method resolution order of the class with the method: 0 is the hook's own."""
    return next(index for index, kind in enumerate(type(hook).__mro__) if name in vars(kind))


def _has_calls_of_its_own(hook: Hook) -> bool:
    """Returns whether `before_run` or `after_run` was set on the instance."""
    return any(name in getattr(hook, "__dict__", ()) for name in _CALLS)


def _inherits_calls(kind: type, hook: Hook) -> bool:
    """Returns whether `hook` inherits both calls from the class `kind` unchanged.

    A mock or a proxy says that it is of a class, but its own type has none of the calls.
    """
    same = all(getattr(type(hook), name, None) is getattr(kind, name) for name in _CALLS)
    return same and not _has_calls_of_its_own(hook)


class _Never:
    """Interval of a hook that does nothing around steps, only at the beginning or the end."""

    def steps_until_due(self, global_step: int) -> int | None:
        del global_step
        return None

    def skip_steps(self, steps: int) -> None:
        del steps


class _OfTensorFlow(abc.ABC):
    """Interval of a `tf.compat.v1.train` hook, read from its private attributes."""

    def __init__(self, hook: Any):
        self._hook = hook

    @abc.abstractmethod
    def steps_until_due(self, global_step: int) -> int | None:
        """Returns how many steps after `global_step` the hook has to be called; None is never."""

    def skip_steps(self, steps: int) -> None:
        """Does nothing: most of these hooks read the global step themselves."""
        del steps


class _Stop(_OfTensorFlow):
    def steps_until_due(self, global_step: int) -> int | None:
        return max(self._hook._last_step - global_step, 1)


class _ByGlobalStep(_OfTensorFlow):
    """Interval of a hook whose timer is triggered by the global step."""

    def steps_until_due(self, global_step: int) -> int | None:
        return steps_until_triggered(self._hook._timer, global_step)


class _ByNextStep(_ByGlobalStep):
    """Interval of a hook that decides before a step, by the step number it expects: its last one plus 1.

    Such a hook writes summaries or a profile.
    """

    def skip_steps(self, steps: int) -> None:
        if self._hook._next_step is not None:
            self._hook._next_step += steps

    def steps_until_due(self, global_step: int) -> int | None:
        if self._hook._next_step is None:
            return 1  # it has not been called in this session
        return super().steps_until_due(global_step)


class _Logging(_OfTensorFlow):
    """Interval of a hook that counts its calls from 0, and fetches before a call at its interval."""

    def steps_until_due(self, global_step: int) -> int | None:
        del global_step
        return steps_until_triggered(self._hook._timer, self._hook._iter_count - 1)

    def skip_steps(self, steps: int) -> None:
        self._hook._iter_count += steps


class _Waiting(_OfTensorFlow):
    """Interval of a hook that waits before its first step, and does nothing after that."""

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
    """Returns whether enough steps are to come to make building a loop in the graph worthwhile."""
    intervals = []
    for hook in hooks:
        if isinstance(hook, tf1.train.StopAtStepHook):
            intervals.append(hook._last_step if hook._num_steps is None else hook._num_steps)
    return min(intervals, default=_FEWEST_FOR_A_LOOP) >= _FEWEST_FOR_A_LOOP


def steps_until_multiple(count: int, every: int | None) -> int | None:
    """Returns the number of calls, after `count` of them, to the next one whose index `every` divides."""
    return None if not every else -count % every + 1


def steps_until_triggered(timer: Any, step: int) -> int | None:
    """Returns how many steps after `step` a `SecondOrStepTimer` triggers; None when it goes by time.

    A timer that goes by time triggers at the first step after the time is over.
    """
    if timer.should_trigger_for_step(step + 1):
        return 1
    every_steps = getattr(timer, "_every_steps", None)  # a timer that never triggers has none
    if every_steps is None:
        return None
    return math.ceil(timer.last_triggered_step() + every_steps - step)
