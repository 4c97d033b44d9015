"""Running one copy of the model in this process: the plain case."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from estimator_core import tf1
from estimator_core.execution.base import Step, StepFn
from estimator_core.execution.evaluation_metrics import with_evaluation_metrics
from estimator_core.execution.inputs import Inputs, inputs_from
from estimator_core.execution.loops.effects import stateful_operations
from estimator_core.execution.loops.evaluation_loop import RepeatedUpdate
from estimator_core.execution.loops.in_graph_loop import ManySteps, RepeatsSteps, with_calls_in_order
from estimator_core.execution.restored_session import KeptSession, restored_session
from estimator_core.spec.mode_keys import ModeKeys
from estimator_core.spec.types import InputFn


class SingleDevice(RepeatsSteps):
    """Runs one copy of the model; the identity among executions.

    `master`: address of the server on which sessions are opened; "" is this process.
    `many_steps`: limits on the training steps, or evaluated batches, of a session call; None makes one.
    `jit_compile`: True to compile training steps by XLA; "auto" chooses.
    """

    def __init__(
        self,
        session_config: Any = None,
        master: str = "",
        many_steps: ManySteps | None = None,
        jit_compile: bool | str = False,
    ):
        super().__init__(many_steps, jit_compile)
        makes_many = self.steps_per_session_run > 1
        self._session_config = with_calls_in_order(session_config) if makes_many else session_config
        self._master = master

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a context that changes nothing."""
        return contextlib.nullcontext()

    def make_inputs(self, input_fn: InputFn, mode: str) -> Inputs:
        """Returns the inputs; the input pipeline is placed on the CPU."""
        with tf1.device("/cpu:0"):
            return inputs_from(input_fn(), mode)

    def build_step(self, inputs: Inputs, step_fn: StepFn, mode: str) -> Step:
        batch = inputs.next_batch()
        tensors = tf.nest.flatten(batch)  # now, as model_fn may remove features from their dict
        spec = step_fn(*batch)
        if mode != ModeKeys.EVAL:
            return self.make_step(spec, mode)
        spec = with_evaluation_metrics(spec, tensors)
        if self.steps_per_session_run == 1:
            return Step(spec)
        updates = [update for _, update in spec.eval_metric_ops.values()]
        repeated = RepeatedUpdate(tf.group(*stateful_operations(updates)))
        return Step(spec, repeated, repeated.add_loop, batches_made=lambda: repeated.batches_made)

    def session_creator(
        self, scaffold: Any, *, checkpoint_dir: str | None = None, checkpoint_path: str | None = None
    ) -> Any:
        return tf1.train.ChiefSessionCreator(
            scaffold=scaffold,
            master=self._master,
            config=self._session_config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_path,
        )

    def restored_session(self, scaffold: Any, checkpoint_path: str, kept: KeptSession | None = None) -> Any:
        """Returns a session of this process if the checkpoint and the Scaffold are of the usual kind."""
        if self._master:
            return None
        return restored_session(scaffold, checkpoint_path, self._session_config, kept)
