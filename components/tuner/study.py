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
from components.tuner.median_pruner import MedianPruner
from components.tuner.results import Evaluation, TrialResult
from components.tuner.search_space import Values
from components.tuner.settings import TunerSettings

JOURNAL = "study.journal"
"""Name of the file; Optuna and optuna-dashboard read it."""

MAX_ATTEMPTS = 3
"""Number of kills in a trial after which it counts as failed."""

_NAME = "tuner"
_EVALUATION = "evaluation "

_STATES = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


class Study:
    """The trials of a search, in a folder.

    A search that was killed goes on with the trials that were running then, before it begins others. The
    values of a trial depend on the seed and on the trials before it, so a kill does not change them if all
    evaluations are the same, with one trial at a time.

    `owner`: name of this execution: other executions' trials that are running are taken over. Processes of
    one execution share it. None makes one up.
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
                pruner=MedianPruner(groups)
                if settings.pruner == "median"
                else optuna.pruners.NopPruner(),
            )
            for values in settings.firsts[len(self._study.trials) : settings.trials]:
                self._enqueue(values)

    def _enqueue(self, values: Values) -> None:
        fixed = values if self.settings.space.contains(values) else {}
        self._study.enqueue_trial(fixed, user_attrs={"first": dict(values)})

    def next_trial(self) -> "StudyTrial | None":
        """Returns the next trial to run: one that was interrupted, or a new one; None at the end."""
        with self._locked():
            for number, attributes in self._running():
                if attributes.get("owner") == self.owner:
                    continue
                trial = self._trial(number)
                attempts = int(attributes.get("attempts", 0)) + 1
                if attempts > MAX_ATTEMPTS:
                    trial.set_user_attr(
                        "reason", f"the process was killed in it {MAX_ATTEMPTS} times"
                    )
                    self._study.tell(number, state=TrialState.FAIL)
                    continue
                return self._started(trial, attempts)
            begun = sum(one.state != TrialState.WAITING for one in self._trials())
            if begun >= self.settings.trials:
                return None
            self._study.sampler = self._sampler(begun)
            return self._started(self._study.ask(), attempts=1)

    def results(self) -> tuple[TrialResult, ...]:
        """Returns the trials that have begun, in order."""
        return tuple(_result(one) for one in self._trials() if one.state != TrialState.WAITING)

    def importance(self) -> dict[str, float]:
        """Returns the share of each parameter in the differences between trials, the largest first.

        Empty if too few trials have finished to tell.

        Source: PED-ANOVA (https://arxiv.org/abs/2304.10255).
        """
        finished = [
            one for one in self._trials() if one.state == TrialState.COMPLETE and one.params
        ]
        if len(finished) < _MIN_FOR_IMPORTANCE:
            return {}
        found = optuna.importance.get_param_importances(
            _only(self._study, finished),
            evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
        )
        return {name: float(share) for name, share in found.items()}

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
        """Returns the sampler of one trial: a kill does not change its random numbers."""
        return optuna.samplers.TPESampler(
            seed=(self.settings.seed * 1_000_003 + begun) % 2**32,
            n_startup_trials=min(10, max(3, self.settings.trials // 3)),
        )

    def _trials(self) -> list[optuna.trial.FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _running(self) -> list[tuple[int, dict[str, Any]]]:
        return [
            (one.number, one.user_attrs)
            for one in self._trials()
            if one.state == TrialState.RUNNING
        ]

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
    """A trial that runs.

    `values`: Values of its parameters, by name; empty for a trial without hyperparameters.
    """

    def __init__(
        self,
        study: optuna.Study,
        trial: optuna.Trial,
        settings: TunerSettings,
        values: dict[str, Any],
    ):
        self._study, self._trial, self._settings = study, trial, settings
        self.number, self.values = trial.number, values
        self.is_first = "first" in trial.user_attrs
        self._begin = time.monotonic()
        self._secs_before = float(trial.user_attrs.get("secs", 0.0))
        found = _evaluations(trial.user_attrs)
        self._results = list(trial.user_attrs.get("folds", ()))
        self.reported: set[str] = set()
        self.evaluations = {(one.fold, one.step): one for one in found}

    @property
    def fold(self) -> int:
        """Fold that is next, from 0."""
        return len(self._results)

    def report(self, metrics: Mapping[str, Any], step: int, *, is_last: bool = False) -> None:
        """Stores an evaluation of the training. One of a step that was evaluated before replaces that."""
        numbers = {name: float(value) for name, value in metrics.items() if np.ndim(value) == 0}
        self.reported |= set(numbers)
        value = numbers.get(self._settings.metric)
        if value is None:
            return
        one = Evaluation(step, numbers, self.fold)
        key = (self.fold, step)
        is_new = key not in self.evaluations
        self.evaluations[key] = one  # in order, also where one is replaced
        number = list(self.evaluations).index(key)
        self._trial.set_user_attr(f"{_EVALUATION}{number}", one.as_record())
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
        self._end()
        self._study.tell(self._trial, statistics.fmean(self._results))

    def prune(self, reason: str) -> None:
        """Ends the trial as one that has fallen behind."""
        self._trial.set_user_attr("reason", reason)
        self._end()
        self._study.tell(self._trial, state=TrialState.PRUNED)

    def fail(self, reason: str) -> None:
        """Ends the trial as one without a result."""
        self._trial.set_user_attr("reason", reason)
        self._end()
        self._study.tell(self._trial, state=TrialState.FAIL)

    def _end(self) -> None:
        self._trial.set_user_attr("secs", self._secs)

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
    return [Evaluation.of_record(named[number]) for number in sorted(named)]


def _only(study: optuna.Study, trials: list[optuna.trial.FrozenTrial]) -> optuna.Study:
    """Returns a study in memory with some of the trials."""
    copy = optuna.create_study(direction=study.direction)
    copy.add_trials(trials)
    return copy


def _drop_partial_line(journal: Path) -> None:
    """Removes what a process that was killed has written of a line."""
    if not journal.is_file():
        return
    content = journal.read_bytes()
    complete = content.rfind(b"\n") + 1
    if complete < len(content):
        os.truncate(journal, complete)
