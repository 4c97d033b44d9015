"""The Executions that the contract suite tests. A new one is one more line in EXECUTIONS."""

import contextlib

import numpy as np
import tensorflow as tf

from estimator_core.execution.loops.in_graph_loop import ManySteps
from estimator_core.execution.parameter_server import ParameterServers
from estimator_core.execution.sharded import Sharded, Sharding
from estimator_core.execution.shards.shard_inputs import ShardInput
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync
from tests.integration.cluster.in_process import cluster_in_this_process, device_filters
from tests.oracle import observe


def several_steps_in_a_run(kind, steps):
    """Returns a subclass of an Execution that makes up to `steps` training steps in a session call.

    It has no loop in the graph: that is enough to see whether hooks are called at the right steps.
    """

    class SeveralSteps(kind):
        steps_per_session_run = steps

        def build_step(self, inputs, step_fn, mode):
            step = super().build_step(inputs, step_fn, mode)
            if mode != "train" or steps == 1:
                return step

            def advance(session, count):
                for _ in range(count):
                    _, loss = session.run([step.spec.train_op, step.spec.loss])
                    if np.isnan(loss):
                        return True
                return False

            return step._replace(advance=advance)

    return SeveralSteps


def count_advances(execution, monkeypatch):
    """Returns a list that gets the number of steps of each call of `advance`."""
    advanced = []
    build_step = execution.build_step

    def counting(inputs, step_fn, mode):
        step = build_step(inputs, step_fn, mode)
        if step.advance is None:
            return step

        def advance(session, steps):
            advanced.append(steps)
            return step.advance(session, steps)

        return step._replace(advance=advance)

    monkeypatch.setattr(execution, "build_step", counting)
    return advanced


def ends_of_calls(execution, last, every=None):
    """Returns the steps at which the session calls of a training run end.

    The first call makes one step. Each later one ends at the nearest of: the most steps that the Execution
    makes, the next multiple of `every`, and the last step.

    Args:
        execution: Execution of the training.
        last: The last step.
        every: The interval of a hook that is due at multiples of it; None when there is none.
    """
    ends = [1]
    while ends[-1] < last:
        due = last if every is None else (ends[-1] // every + 1) * every
        ends.append(min(ends[-1] + execution.steps_per_session_run, due, last))
    return ends


def steps_without_hooks(ends):
    """Returns the arguments of `advance` when session calls end at these steps."""
    lengths = [end - before for before, end in zip([0, *ends], ends, strict=False)]
    return [length - 1 for length in lengths if length > 1]


def one_replica(kind=ReplicasInSync):
    return kind(tf.distribute.OneDeviceStrategy("/cpu:1"))


def two_replicas(kind=ReplicasInSync):
    return kind(tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]))


def parameter_servers(kind=ParameterServers):
    cluster = cluster_in_this_process()
    return kind(cluster, cluster.master, device_filters(cluster))


def two_shards():
    """Shards that take a batch each, of a model that was not written for them."""
    return Sharded(Sharding(2, ShardInput.NEXT, adds_up_gradients=True, has_static_shapes=False))


EXECUTIONS = {
    "single_device": SingleDevice,
    "one_replica": one_replica,
    "two_replicas": two_replicas,
    "parameter_servers": parameter_servers,
    "two_shards": two_shards,
    "loop": lambda: SingleDevice(many_steps=ManySteps(5)),
    "loop_of_two_replicas": lambda: two_replicas(
        lambda strategy: ReplicasInSync(strategy, many_steps=ManySteps(5))
    ),
    "five_steps": lambda: several_steps_in_a_run(SingleDevice, 5)(),
    "five_steps_of_two_replicas": lambda: two_replicas(several_steps_in_a_run(ReplicasInSync, 5)),
}

FIRST = ("single_device", "two_replicas", "two_shards", "loop")
"""What `make test` runs."""

OTHER_NUMBERS_OF_STEPS = {
    "two_steps": lambda: several_steps_in_a_run(SingleDevice, 2)(),
    "ten_steps": lambda: several_steps_in_a_run(SingleDevice, 10)(),
}
"""For the tests of how many steps a call makes; the others would only take longer."""


def together(execution, losses):
    """Returns the reported losses of all replicas: shards report their mean, replicas in sync the sum."""
    return losses.mean(axis=1) if isinstance(execution, Sharded) else losses.sum(axis=1)


@contextlib.contextmanager
def session_of(execution, inputs, spec, hooks=()):
    """Opens a session that has started the input."""
    creator = execution.session_creator(spec.scaffold)
    with tf.compat.v1.train.MonitoredSession(creator, hooks=[*inputs.hooks, *hooks]) as session:
        yield session


def values_of(checkpoint):
    """Returns all values of a checkpoint, by name."""
    reader = tf.train.load_checkpoint(str(checkpoint))
    return {name: np.asarray(reader.get_tensor(name)) for name in reader.get_variable_to_shape_map()}


def summaries_of(directory, tag):
    """Returns the steps and the values of a summary."""
    return [
        (event.step, value.simple_value)
        for event in observe.events_of(str(directory))
        for value in event.summary.value
        if value.tag == tag
    ]


def lines_of(caplog, start):
    """Returns the messages of the log that begin like this."""
    return [message for message in caplog.messages if message.startswith(start)]
