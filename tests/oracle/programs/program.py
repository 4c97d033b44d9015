"""Programs: code that runs unchanged on tf.estimator 2.15 and on estimator_core."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

STEPS = 100


@dataclasses.dataclass(frozen=True)
class Program:
    """An Estimator that is trained, evaluated, asked for predictions and exported.

    Both sides start from the same initial variables: those that the reference drew.

    Args:
        inputs: `inputs(repeat=None)` returns an input_fn, over the same examples in the same order
            each time; `repeat` says how often, None is for ever.
        make: `make(e, config=...)` returns the Estimator; `e` is the module with the API's names.
        serving_features: Spec of `tf.io.parse_example` for the export; None exports nothing.
        v1: True if `e` is `tf.compat.v1.estimator` and `estimator_core.v1`, not `tf.estimator` and
            `estimator_core`.
        slow: True if only `make test-all` runs it.
        legacy_keras: True if it needs Keras 2 as `tf.keras`: the package tf_keras, and the environment
            variable TF_USE_LEGACY_KERAS=1. The reference has no other Keras.
        seed: Seed of the initial variables that the reference draws; None takes one of the name.
    """

    inputs: Callable[..., Callable[[], Any]]
    make: Callable[..., Any]
    serving_features: dict[str, Any] | None = None
    v1: bool = False
    slow: bool = False
    legacy_keras: bool = False
    seed: int | None = None


@dataclasses.dataclass(frozen=True)
class Scenario:
    """Code that uses the API freely, and returns its own observation.

    Nothing is handed over from the reference: let all variables start from constants.

    Args:
        run: `run(e, model_dir)` returns plain data: dicts with text keys, lists, numbers, text,
            booleans, None. Numbers with a fraction are compared to 1e-5, all else exactly.
        v1: True for `tf.compat.v1.estimator` and `estimator_core.v1`.
    """

    run: Callable[[Any, str], Any]
    v1: bool = False
