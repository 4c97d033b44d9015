"""The Executions that the contract suite holds to it. A new one is one more line here."""

import contextlib

import tensorflow as tf

from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync


def several_steps_in_a_run(kind, steps):
    """Returns a subclass of an Execution that makes up to so many training steps in a session call.

    It has no loop in the graph: that is enough to see whether hooks are called at the right steps.
    """

    class SeveralSteps(kind):
        steps_per_session_run = steps

        def __init__(self, *args):
            super().__init__(*args)
            self.advanced = []

        def build_step(self, inputs, step_fn, mode):
            step = super().build_step(inputs, step_fn, mode)

            def advance(session, count):
                self.advanced.append(count)
                for _ in range(count):
                    session.run(step.spec.train_op)

            return step._replace(advance=advance)

    return SeveralSteps


def one_replica(kind=ReplicasInSync):
    return kind(tf.distribute.OneDeviceStrategy("/cpu:1"))


def two_replicas(kind=ReplicasInSync):
    return kind(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]))


EXECUTIONS = {
    "single_device": SingleDevice,
    "one_replica": one_replica,
    "two_replicas": two_replicas,
    "five_steps": lambda: several_steps_in_a_run(SingleDevice, 5)(),
    "five_steps_of_two_replicas": lambda: two_replicas(several_steps_in_a_run(ReplicasInSync, 5)),
}


@contextlib.contextmanager
def session_of(execution, inputs, spec, hooks=()):
    """Opens a session that has started the input."""
    creator = execution.session_creator(spec.scaffold)
    with tf.compat.v1.train.MonitoredSession(creator, hooks=[*inputs.hooks, *hooks]) as session:
        yield session
