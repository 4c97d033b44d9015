"""Changes that need no batch are made once at the end of the input, however many steps a call makes.

tf.estimator 2.15 does so too: the parts of a step that need no batch run beside the operation that finds
the end. The changes in `programs_at_the_end.PROGRAMS` are those of 2.15.1.
"""

import logging

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.base import LoopSize
from estimator_core.execution.loops.in_graph_loop import ManySteps
from estimator_core.execution.loops.step_graph import StepGraph
from estimator_core.execution.sharded import Sharded, Sharding
from estimator_core.execution.shards.shard_inputs import ShardInput
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync
from tests.circles import in_circles
from tests.contract.executions import lines_of, values_of
from tests.contract.programs_at_the_end import PROGRAMS, input_fn

STEPS = 4  # of a call; the first call makes one
POSITIONS = [1, 2, 3, 4]  # the input ends at each step of the second call
SLOW = {"embedding_and_counter", "global_step_apart", "moving_average"}


def same(found, expected):
    assert set(found) == set(expected)
    return [name for name in expected if found[name].tobytes() != expected[name].tobytes()]


@pytest.fixture
def train(monkeypatch, tmp_path_factory, caplog):
    """Returns a function that trains, and returns all values of the last checkpoint and lines of the log."""

    def train(model_fn, execution, inputs, **config):
        monkeypatch.setattr("estimator_core.estimator.select_execution", lambda config, mode: execution)
        model_dir = str(tmp_path_factory.mktemp("model"))
        config = est.RunConfig(model_dir, tf_random_seed=1, keep_checkpoint_max=20, **config)
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="tensorflow"):
            est.Estimator(model_fn, config=config).train(inputs, max_steps=30)
        told = lines_of(caplog, ("The input ended", "Loss for final"))
        assert len(told) == 2
        return model_dir, values_of(tf.train.latest_checkpoint(model_dir)), told

    return train


@pytest.fixture(scope="module")
def before_the_end(tmp_path_factory):
    """Returns a function from the name of a program and a step to all values after that step."""
    made = {}

    def values(name, step):
        if name not in made:
            made[name] = str(tmp_path_factory.mktemp(name))
            settings = {"steps_per_session_run": 1, "save_checkpoints_steps": 1, "keep_checkpoint_max": 20}
            config = est.RunConfig(made[name], tf_random_seed=1, **settings)
            est.Estimator(PROGRAMS[name][0], config=config).train(input_fn(30), max_steps=max(POSITIONS))
        return values_of(f"{made[name]}/model.ckpt-{step}")

    return values


@pytest.mark.more
@pytest.mark.parametrize("name", in_circles(sorted(PROGRAMS), slow=SLOW))
def test_a_program_that_changes_something_without_a_batch(name, train, before_the_end):
    model_fn, changes = PROGRAMS[name]
    for batches in POSITIONS:
        before = before_the_end(name, batches)
        expected = {
            key: np.asarray(changes[key](value, before) if key in changes else value)
            for key, value in before.items()
        }
        for steps in (1, STEPS):
            _, found, _ = train(model_fn, SingleDevice(many_steps=ManySteps(steps)), input_fn(batches))
            if steps == 1:
                by_one = found
            assert same(found, by_one) == []
            assert not set(same(found, before)) - set(changes)
            for key in changes:
                np.testing.assert_allclose(found[key], expected[key], rtol=1e-6)


def one_replica(steps):
    return ReplicasInSync(tf.distribute.OneDeviceStrategy("/cpu:0"), many_steps=ManySteps(steps))


def two_replicas(steps):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    return ReplicasInSync(strategy, many_steps=ManySteps(steps))


def two_shards(steps):
    kind, size = ShardInput.NEXT, LoopSize(steps)
    return Sharded(Sharding(2, kind, adds_up_gradients=True, loop_size=size))


WAYS = {"one_replica": one_replica, "two_replicas": two_replicas, "two_shards": two_shards}


@pytest.mark.more
@pytest.mark.parametrize("way", in_circles(sorted(WAYS), slow={"two_shards"}))
def test_a_way_of_running(way, train):
    model_fn, _ = PROGRAMS["embedding_and_counter"]
    for batches in POSITIONS:
        by_steps = {}
        for steps in (1, STEPS):
            execution = WAYS[way](steps)
            _, values, told = train(model_fn, execution, input_fn(batches * execution.num_replicas))
            by_steps[steps] = values, told
        assert same(by_steps[STEPS][0], by_steps[1][0]) == []
        assert by_steps[STEPS][1] == by_steps[1][1]
        assert by_steps[1][0]["steps_made"] == batches + 1
        assert by_steps[1][0]["global_step"] == batches


@pytest.mark.more
@pytest.mark.parametrize("name", in_circles(["mutable_table", "global_step_apart"], slow={"mutable_table"}))
def test_operations_of_the_graph_one_step_after_the_other(name, train, monkeypatch):
    monkeypatch.setattr(StepGraph, "why_not_copied", lambda self: "the test says so")
    model_fn, _ = PROGRAMS[name]
    for batches in POSITIONS:
        results = [
            train(model_fn, SingleDevice(many_steps=ManySteps(steps)), input_fn(batches))[1:]
            for steps in (1, STEPS)
        ]
        assert same(results[1][0], results[0][0]) == []
        assert results[1][1] == results[0][1]


@pytest.mark.slow
def test_steps_that_xla_compiles(train):
    model_fn, _ = PROGRAMS["batch_norm"]
    for batches in POSITIONS[1:]:
        execution = SingleDevice(many_steps=ManySteps(STEPS), jit_compile=True)
        _, found, _ = train(model_fn, execution, input_fn(batches))
        _, expected, _ = train(model_fn, SingleDevice(), input_fn(batches))
        for key in expected:
            np.testing.assert_allclose(found[key], expected[key], rtol=1e-5, atol=1e-7)


@pytest.mark.more
def test_a_checkpoint_of_the_last_step_is_the_last_one(train):
    """As in tf.estimator, it has the values from before the end was found."""
    model_fn, _ = PROGRAMS["embedding_and_counter"]
    for steps in (1, STEPS):
        execution = SingleDevice(many_steps=ManySteps(steps))
        model_dir, values, _ = train(model_fn, execution, input_fn(4), save_checkpoints_steps=2)
        assert values["steps_made"] == 4
        assert tf.train.latest_checkpoint(model_dir).endswith("model.ckpt-4")
