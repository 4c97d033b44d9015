"""TrainSpec and EvalSpec: the settings of training and evaluation in train_and_evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from estimator_core import tf1
from estimator_core.export.exporters import Exporter
from estimator_core.run_config import RunConfig
from estimator_core.spec.arguments import checked_instances, checked_steps
from estimator_core.spec.types import Hook, InputFn, SavingListener


class _TrainFields(NamedTuple):
    input_fn: InputFn
    max_steps: int | None
    hooks: tuple[Any, ...]
    saving_listeners: tuple[Any, ...]


class TrainSpec(_TrainFields):
    """The training part of `train_and_evaluate`.

    Args:
        input_fn: See `Estimator.train`.
        max_steps: Global step at which training ends; None trains to the end of the input.
        hooks: `SessionRunHook`s for training, on every worker.
        saving_listeners: `CheckpointSaverListener`s.

    Raises:
        TypeError: `input_fn` is not callable, `max_steps` is not a whole number, or a hook or listener
            has the wrong type.
        ValueError: `max_steps` is not above 0.

    Source: `tf.estimator.TrainSpec`.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: InputFn,
        max_steps: int | None = None,
        hooks: Sequence[Hook] | None = None,
        saving_listeners: Sequence[SavingListener] | None = None,
    ) -> TrainSpec:
        """Returns the checked TrainSpec."""
        _check_input_fn(input_fn)
        return super().__new__(
            cls,
            input_fn,
            checked_steps("max_steps", max_steps),
            checked_instances(hooks, "hooks"),
            checked_instances(saving_listeners, "saving_listeners", tf1.train.CheckpointSaverListener),
        )


class _EvalFields(NamedTuple):
    input_fn: InputFn
    steps: int | None
    name: str | None
    hooks: tuple[Any, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float
    every_n_steps: int | None
    keeps_graph: bool


class EvalSpec(_EvalFields):
    """The evaluation part of `train_and_evaluate`.

    Args:
        input_fn: See `Estimator.evaluate`.
        steps: Batches of one evaluation; None goes to the end of the input.
        name: Name of the evaluation; summaries go to `eval_<name>`.
        hooks: `SessionRunHook`s for evaluation.
        exporters: An `Exporter` or several, with different names.
        start_delay_secs: Seconds that a separate evaluator waits before its first evaluation.
        throttle_secs: Minimum seconds between the starts of two evaluations; 0 evaluates at each
            checkpoint.
        every_n_steps: Steps between two evaluations, regardless of the time between them; a multiple
            of `RunConfig.save_checkpoints_steps`. None uses `throttle_secs`, as a separate
            evaluator always does.
        keeps_graph: True to build the graph of the evaluations, and its session, once, which saves their
            time in all others. `input_fn` and `model_fn` are then called for the first one only, and random
            operations do not restart from their seed. False calls both for each evaluation.

    Raises:
        TypeError: `input_fn` is not callable, a number of steps is not a whole number, or a hook or
            exporter has the wrong type.
        ValueError: A number is out of range, or two exporters share a name.

    Source: `tf.estimator.EvalSpec`; only ours has `every_n_steps` and `keeps_graph`.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: InputFn,
        steps: int | None = 100,
        name: str | None = None,
        hooks: Sequence[Hook] | None = None,
        exporters: Exporter | Sequence[Exporter] | None = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
        every_n_steps: int | None = None,
        keeps_graph: bool = False,
    ) -> EvalSpec:
        """Returns the checked EvalSpec."""
        _check_input_fn(input_fn)
        steps = checked_steps("steps", steps)
        if checked_steps("every_n_steps", every_n_steps) != every_n_steps:
            raise TypeError(
                f"every_n_steps must be a whole number. Received: every_n_steps={every_n_steps!r}"
            )
        if name is not None and not isinstance(name, str):
            raise TypeError(f"name must be text. Received: name={name!r}")
        if start_delay_secs < 0 or throttle_secs < 0:
            raise ValueError(
                "start_delay_secs and throttle_secs must not be negative. Received: "
                f"start_delay_secs={start_delay_secs}, throttle_secs={throttle_secs}"
            )
        if isinstance(exporters, Exporter):
            exporters = [exporters]
        exporters = checked_instances(exporters, "exporters", Exporter)
        names = [exporter.name for exporter in exporters]
        if not all(isinstance(name, str) and name for name in names):
            raise ValueError(
                f"An exporter must have a string as its name, for its directory. Received: names={names}"
            )
        if len(set(names)) < len(names):
            raise ValueError(f"Exporters must have different names. Received: {names}")
        return super().__new__(
            cls,
            input_fn,
            steps,
            name,
            checked_instances(hooks, "hooks"),
            exporters,
            start_delay_secs,
            throttle_secs,
            every_n_steps,
            keeps_graph,
        )


def check_every_n_steps(eval_spec: EvalSpec, config: RunConfig) -> None:
    """Checks that there is a checkpoint at each step that `eval_spec` evaluates."""
    every, saved = eval_spec.every_n_steps, config.save_checkpoints_steps
    if every is not None and (not saved or every % saved):
        raise ValueError(
            "EvalSpec.every_n_steps must be a multiple of RunConfig.save_checkpoints_steps, since only "
            f"checkpoints are evaluated: set save_checkpoints_steps={every}, or a divisor of "
            f"it. Received: every_n_steps={every}, save_checkpoints_steps={saved}"
        )


def _check_input_fn(input_fn: Any) -> None:
    if not callable(input_fn):
        raise TypeError(f"input_fn must be callable. Received: input_fn={input_fn!r}")
