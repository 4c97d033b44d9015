"""Ends a trial that falls behind the others."""

import statistics
from collections.abc import Mapping
from typing import Any

import optuna

MIN_OTHERS = 4
"""Number of finished trials that a trial is compared with, at least."""

MIN_EVALUATIONS = 4
"""Number of evaluations of a trial before it can be ended: small learning rates need more of them."""


class MedianPruner(optuna.pruners.BasePruner):
    """Ends a trial whose best value so far is worse than the median of the others' at the same evaluation.

    The others are the trials that ran to their end and have the same values of `groups`: the evaluations of
    different models do not compare. Of one that ended earlier, all evaluations count.

    Unlike Optuna's own, it takes evaluations by their number, so they need not be at the same steps.

    `groups`: names of parameters that trials must share.
    """

    def __init__(self, groups: tuple[str, ...] = (), min_evaluations: int = MIN_EVALUATIONS):
        self._groups, self._min_evaluations = groups, min_evaluations

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Returns whether to end the trial. Evaluations are numbered from 0."""
        last = trial.last_step
        if last is None or last + 1 < self._min_evaluations:
            return False
        best = max if study.direction == optuna.study.StudyDirection.MAXIMIZE else min
        others = [
            best(values)
            for one in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            if self._group(one) == self._group(trial)
            and (values := _until(one.intermediate_values, last))
        ]
        if len(others) < MIN_OTHERS:
            return False
        own, median = best(trial.intermediate_values.values()), statistics.median(others)
        return own != median and best(own, median) == median

    def _group(self, trial: optuna.trial.FrozenTrial) -> tuple[Any, ...]:
        values = trial.user_attrs.get("values", {})
        return tuple(values.get(name) for name in self._groups)


def _until(values: Mapping[int, float], last: int) -> list[float]:
    return [value for number, value in values.items() if number <= last]
