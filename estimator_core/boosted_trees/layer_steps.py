"""Execution of boosted trees: in one process, with many training steps in a call."""

from __future__ import annotations

from typing import Any

from estimator_core.boosted_trees.boosting_hook import BoostingHook
from estimator_core.execution.base import Execution, Step, StepFn
from estimator_core.execution.inputs import Inputs
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.run_config import RunConfig
from estimator_core.spec.mode_keys import ModeKeys

_SESSION_CALL_SECS = 1.0  # a signal ends the training between two calls


def select_for_trees(config: RunConfig, mode: str, max_steps_per_call: int) -> Execution:
    execution = select_execution(config, mode)
    check_one_process(execution)
    if mode != ModeKeys.TRAIN:
        return execution
    return LayerSteps(config.session_config, config.master, max_steps_per_call)


def check_one_process(execution: Execution) -> None:
    """Checks that the execution is a single device of this process."""
    if not isinstance(execution, SingleDevice):
        raise ValueError(
            "Boosted trees are grown and evaluated in one process, by all of its cores: leave "
            "train_distribute and eval_distribute out of RunConfig, and unset TF_CONFIG. A TPU can't grow "
            f"them. Received: {type(execution).__name__}"
        )


class LayerSteps(SingleDevice):
    """Trains on one device; a `BoostingHook` makes the steps at which no other hook is due."""

    def __init__(self, session_config: Any, master: str, max_steps_per_call: int):
        super().__init__(session_config, master)
        self.steps_per_session_run = max_steps_per_call
        self.session_call_secs = _SESSION_CALL_SECS

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        """Returns the step that `step_fn` builds, with the hook's `advance` for many steps at once."""
        step = super().build_step(inputs, step_fn, mode)
        (hook,) = (hook for hook in step.spec.training_hooks if isinstance(hook, BoostingHook))
        hook.makes_steps = True
        return step._replace(advance=hook.advance)
