"""A trial of a Tuner, as the user's training function sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Trial:
    """A trial of a Tuner."""

    number: int
    # Function of (metrics by name, step) that tells the Tuner of an evaluation. A run_fn calls it
    # after each of its evaluations; the last one is the trial's result. The evaluations of a
    # trainer_fn are reported for it. It raises an error that ends the trial if it has fallen behind
    # the others, so don't catch it.
    report: Callable[[Mapping[str, Any], int], None]
    # Number of the training of this trial, from 0: each has other rows for evaluation.
    fold: int = 0
