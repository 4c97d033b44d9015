"""The study of a search: Optuna's, in a file that survives a kill and that several processes share."""

import contextlib
import fcntl
import math
import os
import statistics
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from components import file_systems
from components.tuner.results import Evaluation, TrialResult
from components.tuner.settings import TunerSettings

JOURNAL = "study.journal"
"""Name of the file; Optuna and optuna-dashboard read it."""

MAX_ATTEMPTS = 3
"""Number of kills in a trial after which it counts as failed."""

MIN_OTHERS = 4
"""Number of finished trials that a trial is compared with, at least."""

MIN_EVALUATIONS = 4
"""Number of evaluations of a trial before it can be ended: small learning rates need more of them."""

_NAME = "tuner"
_EVALUATION = "evaluation "

_STATES = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


class MedianPruner(optuna.pruners.BasePruner):
    """Ends a trial whose best value so far is worse than the median of the others' at the same evaluation.

    The others are the completed trials with the same values of the parameters `groups`, as evaluations
    of different models do not compare. Of a trial that ended earlier, all evaluations count.

    Unlike Optuna's own, it takes evaluations by their number, so they need not be at the same steps.
    """

    def __init__(self, groups: tuple[str, ...] = (), min_evaluations: int = MIN_EVALUATIONS):
        self._groups, self._min_evaluations = groups, min_evaluations

    def prune(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> bool:
        """Returns True to end the trial. Evaluations are numbered from 0."""
        last = trial.last_step
        if last is None or last + 1 < self._min_evaluations:
            return False
        best = max if study.direction == optuna.study.StudyDirection.MAXIMIZE else min
        others = []
        for other in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            values = [value for number, value in other.intermediate_values.items() if number <= last]
            if values and self._group(other) == self._group(trial):
                others.append(best(values))
        if len(others) < MIN_OTHERS:
            return False
        own, median = best(trial.intermediate_values.values()), statistics.median(others)
        return own != median and best(own, median) == median

    def _group(self, trial: optuna.trial.FrozenTrial) -> tuple[Any, ...]:
        values = trial.user_attrs.get("values", {})
        return tuple(values.get(name) for name in self._groups)


class Study:
    """The trials of a search, in a folder.

    A search that was killed resumes the trials that were running, before it begins others. The values
    of a trial depend on the seed and on the trials before it, so a kill does not change them if all
    evaluations are the same, with one trial at a time.

    Trials that run under another `owner`, the name of an execution, are taken over. The processes of an
    execution share it.
    """

    def __init__(self, folder: Path, settings: TunerSettings, owner: str | None = None):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.folder, self.settings = folder, settings
        self.owner = owner or uuid.uuid4().hex
        folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            journal = folder / JOURNAL
            _drop_partial_line(journal)
            self._storage = JournalStorage(JournalFileBackend(str(journal)))
            groups = settings.space.groups
            self._study = optuna.create_study(
                study_name=_NAME,
                storage=self._storage,
                direction=settings.direction,
                load_if_exists=True,
                pruner=MedianPruner(groups) if settings.pruner == "median" else optuna.pruners.NopPruner(),
            )
            for values in settings.firsts[len(self._study.trials) : settings.trials]:
                fixed = values if settings.space.contains(values) else {}
                self._study.enqueue_trial(fixed, user_attrs={"first": dict(values)})

    def next_trial(self) -> "StudyTrial | None":
        """Returns the next trial to run, interrupted trials first; None at the end."""
        with self._locked():
            for running in self._trials():
                is_ours = running.user_attrs.get("owner") == self.owner
                if running.state != TrialState.RUNNING or is_ours:
                    continue
                trial = self._trial(running.number)
                attempts = int(running.user_attrs.get("attempts", 0)) + 1
                if attempts > MAX_ATTEMPTS:
                    trial.set_user_attr("reason", f"its process was killed {MAX_ATTEMPTS} times")
                    self._study.tell(running.number, state=TrialState.FAIL)
                    continue
                return self._started(trial, attempts)
            begun = len(self.results())
            if begun >= self.settings.trials:
                return None
            self._study.sampler = self._sampler(begun)
            return self._started(self._study.ask(), attempts=1)

    def results(self) -> tuple[TrialResult, ...]:
        return tuple(_result(trial) for trial in self._trials() if trial.state != TrialState.WAITING)

    def importance(self) -> dict[str, float]:
        """Returns the share of each parameter in the differences between trials, the largest first.

        Empty if too few trials have finished.

        Source: PED-ANOVA (https://arxiv.org/abs/2304.10255).
        """
        finished = [trial for trial in self._trials() if trial.state == TrialState.COMPLETE and trial.params]
        if len(finished) < _MIN_FOR_IMPORTANCE:
            return {}
        study = optuna.create_study(direction=self._study.direction)  # in memory
        study.add_trials(finished)
        shares = optuna.importance.get_param_importances(
            study, evaluator=optuna.importance.PedAnovaImportanceEvaluator()
        )
        return {name: float(share) for name, share in shares.items()}

    def _started(self, trial: optuna.Trial, attempts: int) -> "StudyTrial":
        trial.set_user_attr("owner", self.owner)
        trial.set_user_attr("attempts", attempts)
        values = trial.user_attrs.get("values")
        if values is None:
            first = trial.user_attrs.get("first")
            # Optuna can't learn from a trial outside of the space, such as one without hyperparameters.
            is_in_space = first is None or self.settings.space.contains(first)
            values = self.settings.space.suggest(trial) if is_in_space else first
            trial.set_user_attr("values", values)
        return StudyTrial(self._study, trial, self.settings, values)

    def _sampler(self, begun: int) -> optuna.samplers.BaseSampler:
        """Returns the sampler of one trial, whose random numbers a kill does not change."""
        return optuna.samplers.TPESampler(
            seed=(self.settings.seed * 1_000_003 + begun) % 2**32,
            n_startup_trials=min(10, max(3, self.settings.trials // 3)),
        )

    def _trials(self) -> list[optuna.trial.FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _trial(self, number: int) -> optuna.Trial:
        storage = self._storage
        study = storage.get_study_id_from_name(_NAME)
        trial = storage.get_trial_id_from_study_id_trial_number(study, number)
        self._study.sampler = self._sampler(number)
        return optuna.Trial(self._study, trial)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps the other processes of the search from beginning a trial at the same time."""
        with (self.folder / "lock").open("w") as file:
            file_systems.lock(file, file.name, fcntl.LOCK_EX)
            yield


class StudyTrial:
    def __init__(
        self, study: optuna.Study, trial: optuna.Trial, settings: TunerSettings, values: dict[str, Any]
    ):
        self._study, self._trial, self._settings = study, trial, settings
        self.number, self.values = trial.number, values
        self.is_first = "first" in trial.user_attrs
        self._begin = time.monotonic()
        self._secs_before = float(trial.user_attrs.get("secs", 0.0))
        self._results = list(trial.user_attrs.get("folds", ()))
        self.reported: set[str] = set()
        self.evaluations = {(past.fold, past.step): past for past in _evaluations(trial.user_attrs)}

    @property
    def fold(self) -> int:
        """The next fold, from 0."""
        return len(self._results)

    def report(self, metrics: Mapping[str, Any], step: int, *, is_last: bool = False) -> None:
        """Stores an evaluation of the training, which replaces an earlier one at the same step."""
        numbers = {name: float(value) for name, value in metrics.items() if np.ndim(value) == 0}
        self.reported |= set(numbers)
        value = numbers.get(self._settings.metric)
        if value is None:
            return
        evaluation = Evaluation(step, numbers, self.fold)
        key = (self.fold, step)
        is_new = key not in self.evaluations
        self.evaluations[key] = evaluation  # in order, also where one is replaced
        number = list(self.evaluations).index(key)
        self._trial.set_user_attr(f"{_EVALUATION}{number}", evaluation.as_record())
        self._trial.set_user_attr("secs", self._secs)
        if not is_new or self.fold > 0:  # the others have had other rows
            return
        self._trial.report(value, number)
        if not (is_last or self.is_first) and self._trial.should_prune():
            raise optuna.TrialPruned(
                f"after {number + 1} evaluations, it was worse than the median of the others"
            )

    def finish_fold(self, step: int) -> None:
        """Ends a fold with the evaluation at a step as its result."""
        value = self.evaluations[self.fold, step].metrics[self._settings.metric]
        if not math.isfinite(value):
            raise ValueError(f"its {self._settings.metric} is {value}")
        if self.fold == 0:
            self._trial.set_user_attr("step", step)
        self._results.append(value)
        self._trial.set_user_attr("folds", self._results)
        self._trial.set_user_attr("secs", self._secs)

    def finish(self) -> None:
        """Ends the trial with the mean of its folds as its result."""
        self._trial.set_user_attr("secs", self._secs)
        self._study.tell(self._trial, statistics.fmean(self._results))

    def prune(self, reason: str) -> None:
        """Ends the trial because it is worse than the others."""
        self._end(TrialState.PRUNED, reason)

    def fail(self, reason: str) -> None:
        """Ends the trial without a result."""
        self._end(TrialState.FAIL, reason)

    def _end(self, state: TrialState, reason: str) -> None:
        self._trial.set_user_attr("reason", reason)
        self._trial.set_user_attr("secs", self._secs)
        self._study.tell(self._trial, state=state)

    @property
    def _secs(self) -> float:
        return self._secs_before + time.monotonic() - self._begin


_MIN_FOR_IMPORTANCE = 6


def _result(trial: optuna.trial.FrozenTrial) -> TrialResult:
    attributes = trial.user_attrs
    is_finished = trial.state == TrialState.COMPLETE
    return TrialResult(
        number=trial.number,
        state=_STATES[trial.state],
        value=trial.value if is_finished else None,
        values=dict(attributes.get("values", {})),
        is_first="first" in attributes,
        step=attributes.get("step"),
        secs=float(attributes.get("secs", 0.0)),
        reason=str(attributes.get("reason", "")),
        attempts=int(attributes.get("attempts", 0)),
        evaluations=tuple(_evaluations(attributes)),
        folds=tuple(attributes.get("folds", ())),
    )


def _evaluations(attributes: dict[str, Any]) -> list[Evaluation]:
    named = {
        int(key.removeprefix(_EVALUATION)): value
        for key, value in attributes.items()
        if key.startswith(_EVALUATION)
    }
    return [Evaluation.from_record(named[number]) for number in sorted(named)]


def _drop_partial_line(journal: Path) -> None:
    """Removes a partial last line, left by a killed process."""
    if not journal.is_file():
        return
    content = journal.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        os.truncate(journal, complete)
