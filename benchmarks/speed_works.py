"""The pieces of work that `speed.py` measures, their contestants, and the ratios to aim at."""

import dataclasses
from collections.abc import Mapping
from typing import Any

OURS = "estimator_core"
REFERENCE = "tf.estimator 2.15"
BEST_KERAS = "Keras fit, its best"
FLOOR = "floor"


@dataclasses.dataclass(frozen=True)
class Contestant:
    """A contestant, which does a piece of work."""

    name: str
    # Kind of `contestant.py`: "ours", "reference", "keras", "floor", "input", "tensorflow"
    kind: str
    # Settings of the RunConfig, or of Keras's fit
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    # Name of a work of `contestant.py`, if it differs from that of the others
    work: str | None = None
    count: int | None = None  # Units of work, if they differ from those of the others
    # Name in `speed_runs.PACKAGES`. "": the name `kind` if it is there, else this project's
    environment: str = ""


@dataclasses.dataclass(frozen=True)
class Work:
    """One piece of work."""

    letter: str  # Short name for the command line and the plot
    title: str  # Title in the table
    work: str  # Name of a work of `contestant.py`
    unit: str  # Unit of the measurement
    contestants: tuple[Contestant, ...]  # Contestants; the others are compared with the first one
    # Minimum ratio of a contestant's time to ours, by its name or BEST_KERAS
    targets: Mapping[str, float]
    count: int | None = None  # Units of work; None for the default of the work
    # Loss of an untrained model; None skips the comparison of losses
    untrained_loss: float | None = None


_REFERENCE = Contestant(REFERENCE, "reference")
# A call of it takes a quarter of a second: a hundred calls give the same figure as a thousand.
_FEWER_CALLS = dataclasses.replace(_REFERENCE, count=100)
_OURS = Contestant(OURS, "ours")
_ONE_STEP = Contestant("estimator_core, one step a call", "ours", {"steps_per_session_run": 1})
_KERAS = tuple(
    Contestant(
        f"Keras fit, steps_per_execution={steps}{', jit_compile' if jit else ''}",
        "keras",
        {"steps_per_execution": steps, "jit_compile": jit},
    )
    for steps in (1, 50)
    for jit in (False, True)
)
_FLOORS = (
    Contestant(FLOOR, "floor", {"jit_compile": True}),
    Contestant("floor, not compiled by XLA", "floor", {"jit_compile": False}),
)
_INPUT = Contestant("the input alone", "input")
# TensorFlow imports scikit-learn and jax if it finds them, so an environment without them is compared with
# that of tf.estimator, which lacks them, too.
_PLAIN = dataclasses.replace(_OURS, environment="plain")
_TENSORFLOW = Contestant("our TensorFlow alone", "tensorflow", environment="plain")
_WITH_PIPELINES = Contestant("estimator_core, where the pipelines are installed", "ours")
_TRAINING = (_OURS, _ONE_STEP, _REFERENCE, *_KERAS)

_PAIR = (_OURS, _ONE_STEP, _REFERENCE)
_LN_2, _LN_10 = 0.693, 2.303

WORKS = (
    Work(
        "a",
        "DNN, from memory",
        "dnn",
        "step",
        (*_TRAINING, *_FLOORS, _INPUT),
        {REFERENCE: 3.0, BEST_KERAS: 1.2},
        untrained_loss=_LN_2,
    ),
    Work(
        "b", "wide and deep, taxi", "taxi", "step", (*_PAIR, _INPUT), {REFERENCE: 2.5}, untrained_loss=_LN_2
    ),
    Work(
        "c",
        "a hook at every step",
        "hooked",
        "step",
        (_OURS, _REFERENCE, _INPUT),
        {REFERENCE: 1.0},
        untrained_loss=_LN_2,
    ),
    Work(
        "d",
        "linear, 1e6 buckets",
        "sparse_linear",
        "step",
        (*_PAIR, _INPUT),
        {REFERENCE: 2.0},
        untrained_loss=_LN_2,
    ),
    Work("e", "Keras model", "keras_model", "step", _TRAINING, {BEST_KERAS: 1.0}, untrained_loss=_LN_2),
    Work("f", "evaluate", "evaluate", "row", (_OURS, _REFERENCE), {REFERENCE: 4.0}),
    Work("g", "predict", "predict", "row", (_OURS, _REFERENCE), {REFERENCE: 4.0}),
    Work("h", "one row, predict", "one_row", "call", (_OURS, _FEWER_CALLS), {REFERENCE: 10.0}),
    Work(
        "h2",
        "one row, predictor",
        "predictor",
        "call",
        (_OURS, dataclasses.replace(_FEWER_CALLS, work="one_row")),
        {REFERENCE: 200.0},
    ),
    Work(
        "i",
        "import",
        "import",
        "import",
        (_PLAIN, _REFERENCE, _TENSORFLOW, _WITH_PIPELINES),
        {REFERENCE: 1.0},
    ),
    Work("i2", "first step", "first_step", "start", (_OURS, _REFERENCE), {REFERENCE: 1.0}),
    Work("j", "CNN", "cnn", "step", (*_TRAINING, *_FLOORS), {REFERENCE: 1.2}, untrained_loss=_LN_10),
    Work("k", "RNN, LSTM", "rnn", "step", (*_TRAINING, *_FLOORS), {REFERENCE: 1.2}, untrained_loss=_LN_2),
)
