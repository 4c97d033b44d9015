"""How boosted trees are trained: in one process, many steps in a call."""

from __future__ import annotations

from typing import Any

from estimator_core.boosted_trees.boosting_hook import BoostingHook
from estimator_core.execution.base import Execution, Step, StepFn
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.run_config import RunConfig
from estimator_core.spec.mode_keys import ModeKeys


def select_for_trees(config: RunConfig, mode: str, most_steps: int) -> Execution:
    """Returns how `mode` runs.

    Args:
        config: The settings.
        mode: One of `ModeKeys`.
        most_steps: Training steps that one call makes at most.

    Raises:
        ValueError: The settings ask for several devices, or tasks of a cluster.
    """
    execution = select_execution(config, mode)
    check_one_process(execution)
    if mode != ModeKeys.TRAIN:
        return execution
    return LayerSteps(config.session_config, config.master, most_steps)


def check_one_process(execution: Execution) -> None:
    """Checks that the model runs on one device of this process.

    Raises:
        ValueError: It runs in another way.
    """
    if not isinstance(execution, SingleDevice):
        raise ValueError(
            "Boosted trees are grown and evaluated in one process, by all of its cores: leave "
            "train_distribute and eval_distribute out of RunConfig, and unset TF_CONFIG. A TPU can't grow "
            f"them. Received: {type(execution).__name__}"
        )


class LayerSteps(SingleDevice):
    """Trains on one device; a `BoostingHook` makes the steps at which no other hook is due.

    Args:
        session_config: As for `SingleDevice`.
        master: As for `SingleDevice`.
        most_steps: Training steps that one call makes at most.
    """

    def __init__(self, session_config: Any, master: str, most_steps: int):
        super().__init__(session_config, master)
        self.steps_per_session_run = most_steps

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the step that `step_fn` builds, and what makes many of them."""
        step = super().build_step(inputs, step_fn, mode)
        (hook,) = (hook for hook in step.spec.training_hooks if isinstance(hook, BoostingHook))
        hook.makes_steps = True
        return step._replace(advance=hook.advance)
