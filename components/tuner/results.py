"""The results of a search, and the files of the Tuner's outputs."""

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from components.tuner.search_space import Values
from components.tuner.settings import TunerSettings

BEST_FILE = "best_hyperparameters.txt"
"""File of `best_hyperparameters`, as TFX's Tuner names it: KerasTuner's HyperParameters as JSON."""

RESULTS_FILE = "tuner_results.json"
"""File of `tuner_results`, as TFX's Tuner writes it: the trials that have finished, the best first."""

SEARCH_FILE = "search.json"
"""File of `tuner_results` with all trials."""

MARGIN_OF_ONE_FOLD = 0.01
"""Share of the default's value by which a trial must be better, if there is only one fold."""

STANDARD_ERRORS = 2.0
"""Number of standard errors of the mean difference over the folds by which a trial must be better."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation during the training of a trial."""

    step: int
    metrics: dict[str, float]
    fold: int = 0  # Part of the rows that was evaluated on, from 0

    def as_record(self) -> dict[str, Any]:
        """Returns the fields for JSON, with None for values that are not finite."""
        shown = {name: v if math.isfinite(v) else None for name, v in self.metrics.items()}
        return {"fold": self.fold, "step": self.step, "metrics": shown}

    @staticmethod
    def from_record(record: Mapping[str, Any]) -> "Evaluation":
        metrics = {name: math.nan if v is None else v for name, v in record["metrics"].items()}
        return Evaluation(int(record["step"]), metrics, int(record["fold"]))


@dataclass(frozen=True)
class TrialResult:
    number: int
    state: str  # `finished`, `pruned`, `failed` or `running`
    value: float | None  # Value of the metric that decides; None unless it is finished
    values: Values  # Values of the parameters, by name; empty for a trial without hyperparameters
    is_first: bool = False  # True for a trial of the values that are used without a search
    # Global step of the checkpoint with the value, in the first fold; None unless it is finished.
    step: int | None = None
    secs: float = 0.0  # Duration, without that of an attempt after its last evaluation before a kill
    reason: str = ""  # Reason why it was pruned or failed; empty without one
    attempts: int = 1  # Number of executions in which it ran
    evaluations: tuple[Evaluation, ...] = field(default=())
    folds: tuple[float, ...] = ()  # Value of each fold that is finished; `value` is their mean

    def describe(self, metric: str) -> str:
        value = f"{metric} {self.value:.5g}" if self.value is not None else self.state
        named = ", ".join(
            f"{name} {setting:.4g}" if isinstance(setting, float) else f"{name} {setting}"
            for name, setting in self.values.items()
        )
        reason = f", {self.reason}" if self.reason else ""
        return f"trial {self.number}: {value}{reason} ({named or 'without hyperparameters'})"

    def as_record(self) -> dict[str, Any]:
        evaluations = [evaluation.as_record() for evaluation in self.evaluations]
        return {**asdict(self), "evaluations": evaluations}


@dataclass(frozen=True)
class SearchResult:
    settings: TunerSettings
    trials: tuple[TrialResult, ...]
    # Share of each parameter in the differences between trials; empty if it is not known.
    importance: Mapping[str, float]

    @property
    def ranked(self) -> tuple[TrialResult, ...]:
        """The trials that have finished, the best first; of equal ones, the earlier."""
        finished = [trial for trial in self.trials if trial.value is not None]
        sign = -1 if self.settings.direction == "maximize" else 1
        return tuple(sorted(finished, key=lambda trial: (sign * (trial.value or 0.0), trial.number)))

    @property
    def best(self) -> TrialResult | None:
        """The best trial, if any has finished."""
        return next(iter(self.ranked), None)

    @property
    def default(self) -> TrialResult | None:
        """The best of the trials with the values that are used without a search, if any has finished."""
        return next((trial for trial in self.ranked if trial.is_first), None)

    @property
    def margin(self) -> float | None:
        """Amount by which a trial must be better than the default to be more than chance.

        With several folds, two standard errors of the mean difference between the best trial and the
        default, over the folds; with one, `MARGIN_OF_ONE_FOLD` of the default's value. None without the two.
        """
        best, default = self.best, self.default
        if best is None or default is None or default.value is None:
            return None
        if len(default.folds) < 2:
            return MARGIN_OF_ONE_FOLD * abs(default.value)
        differences = [a - b for a, b in zip(best.folds, default.folds, strict=True)]
        return STANDARD_ERRORS * statistics.stdev(differences) / math.sqrt(len(differences))

    @property
    def chosen(self) -> TrialResult | None:
        """The trial whose values are used: the best, or the default if the lead of the best may be chance."""
        best, default, margin = self.best, self.default, self.margin
        if best is None or default is None or margin is None:
            return best
        difference = abs((best.value or 0.0) - (default.value or 0.0))
        return best if difference > margin * (1 + 1e-9) else default  # not a rounding error

    def as_record(self) -> dict[str, Any]:
        """Returns the content of a report, for JSON."""
        best, default, chosen = self.best, self.default, self.chosen
        return {
            "metric": self.settings.metric,
            "direction": self.settings.direction,
            "planned": self.settings.trials,
            "folds": self.settings.folds,
            "best": best.number if best else None,
            "default": default.number if default else None,
            "chosen": chosen.number if chosen else None,
            "margin": self.margin,
            "parameters": list(self.settings.space.names),
            "importance": dict(self.importance),
            "trials": [trial.as_record() for trial in self.trials],
        }


def write_best_hyperparameters(result: SearchResult, folder: Path) -> None:
    """Writes the values of the chosen trial, as TFX's Tuner does, for our Trainer and TFX's."""
    if result.chosen is None:
        raise ValueError("No trial has finished.")
    folder.mkdir(parents=True, exist_ok=True)
    config = result.settings.space.keras_tuner_config(result.chosen.values)
    (folder / BEST_FILE).write_text(json.dumps(config))


def write_tuner_results(result: SearchResult, folder: Path) -> None:
    """Writes all trials: as TFX's Tuner does, and with the content of a report."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"trial_id": str(trial.number), "score": trial.value, **trial.values} for trial in result.ranked]
    (folder / RESULTS_FILE).write_text(json.dumps(rows))
    (folder / SEARCH_FILE).write_text(json.dumps(result.as_record(), allow_nan=False))


def load_search(uri: str) -> dict[str, Any]:
    """Returns the search that a Tuner recorded, see `SearchResult.as_record`.

    Args:
        uri: Folder of the artifact `tuner_results`.
    """
    search: dict[str, Any] = json.loads((Path(uri) / SEARCH_FILE).read_text())
    return search
