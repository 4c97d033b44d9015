"""Settings of a search."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from components.tuner.search_space import SearchSpace, Values

Direction = Literal["maximize", "minimize"]

DEFAULT_METRIC = "average_loss"

MAX_FOLDS = 5
"""Largest number of folds: a fifth of the training rows is held out."""


@dataclass(frozen=True)
class TunerSettings:
    """Settings of a search.

    Attributes:
        space: The parameters that are searched.
        trials: Number of trials, the first ones among them.
        folds: Number of trainings of a trial, whose mean value counts: each holds out other rows. At most
            `MAX_FOLDS`. More than one takes as many times as long; on few rows, a single part of them gives a
            value that says little.
        parallel: Number of trials that run in parallel, each in its own process.
        metric: Metric of the evaluations during training that decides.
        direction: `maximize` or `minimize`.
        pruner: `median` ends a trial that is worse than the median of the others at the same evaluation;
            `none` runs all trials to their end.
        timeout_secs: Seconds after which no trial begins; None for no limit.
        seed: Seed of the search. With one trial at a time, it gives the same trials again, also after a kill.
        first_trials: Values of the first trials: what is used without a search. They are not pruned.
            Default: one trial with the defaults of all parameters or, if one has none, without
            hyperparameters.
        own_validation: True if the training function holds out rows of the training files itself and is
            evaluated on them; it gets no files for evaluation then. Otherwise a fifth of the training rows
            are its files for evaluation.
        group: Feature of the examples: rows with the same value of it are held out together. None holds out
            row by row. The function that holds out rows itself does not read it.

    Raises:
        ValueError: A number is too small, or a name is unknown.
    """

    space: SearchSpace
    trials: int = 20
    folds: int = 1
    parallel: int = 1
    metric: str = DEFAULT_METRIC
    direction: Direction = "minimize"
    pruner: Literal["median", "none"] = "median"
    timeout_secs: float | None = None
    seed: int = 1
    first_trials: tuple[Values, ...] = ()
    own_validation: bool = False
    group: str | None = None

    def __post_init__(self) -> None:
        for name in ("trials", "parallel"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1. Received: {getattr(self, name)}")
        if self.timeout_secs is not None and self.timeout_secs <= 0:
            raise ValueError(f"timeout_secs must be above 0, or None. Received: {self.timeout_secs}")
        if not 1 <= self.folds <= MAX_FOLDS:
            raise ValueError(f"folds must be from 1 to {MAX_FOLDS}. Received: {self.folds}")
        for name, choices in (("direction", _DIRECTIONS), ("pruner", _PRUNERS)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}. Received: {getattr(self, name)!r}"
                )

    @property
    def firsts(self) -> tuple[Values, ...]:
        """Values of the first trials; empty ones are a trial without hyperparameters."""
        return self.first_trials or (self.space.defaults or {},)

    def to_json(self) -> str:
        """Returns the settings as JSON, for an execution property."""
        return json.dumps({**asdict(self), "space": self.space.as_json()}, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> "TunerSettings":
        """Returns the settings of `to_json`."""
        fields: Mapping[str, Any] = json.loads(text)
        changed = {
            "space": SearchSpace.from_json(fields["space"]),
            "first_trials": tuple(fields["first_trials"]),
        }
        return TunerSettings(**{**fields, **changed})


_DIRECTIONS = ("maximize", "minimize")
_PRUNERS = ("median", "none")
