"""The one place that chooses how a mode runs."""

import json
from unittest import mock

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core.execution.parameter_server import ParameterServers
from estimator_core.execution.select import select_execution
from estimator_core.execution.single_device import SingleDevice
from estimator_core.execution.strategy import ReplicasInSync


@pytest.mark.parametrize("mode", ["train", "eval", "infer"])
def test_without_a_word_it_is_one_device(mode):
    assert type(select_execution(est.RunConfig(), mode)) is SingleDevice


def test_each_mode_has_its_own_strategy():
    strategy = tf.distribute.OneDeviceStrategy("/cpu:1")
    for mode, name in (("train", "train_distribute"), ("eval", "eval_distribute")):
        config = est.RunConfig(**{name: strategy})
        kinds = {m: type(select_execution(config, m)) for m in ("train", "eval", "infer")}
        assert kinds.pop(mode) is ReplicasInSync
        assert set(kinds.values()) == {SingleDevice}
        assert select_execution(config, mode).strategy is strategy


ParameterServerStrategy = tf1.distribute.experimental.ParameterServerStrategy
CentralStorageStrategy = tf1.distribute.experimental.CentralStorageStrategy
TASKS = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}


def config_in(monkeypatch, kind, tasks=TASKS, **settings):
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": tasks, "task": {"type": kind, "index": 0}}))
    return est.RunConfig(**settings)


@pytest.mark.parametrize(("kind", "is_chief"), [("chief", True), ("worker", False)])
def test_a_cluster_trains_with_parameter_servers_and_evaluates_here(monkeypatch, kind, is_chief):
    config = config_in(monkeypatch, kind)
    execution = select_execution(config, "train")
    assert type(execution) is ParameterServers
    assert execution.is_chief is is_chief
    assert type(select_execution(config, "eval")) is SingleDevice
    assert type(select_execution(config, "infer")) is SingleDevice


def test_a_cluster_of_one_task_is_one_device(monkeypatch):
    config = config_in(monkeypatch, "chief", {"chief": ["localhost:1"]})
    assert type(select_execution(config, "train")) is SingleDevice


def one_device():
    return tf.distribute.OneDeviceStrategy("/cpu:1")


REFUSED = {
    "workers without parameter servers": (
        "worker", {"chief": ["a:1"], "worker": ["b:2"]}, lambda: None, ['add "ps"', "b:2"],
    ),
    "a parameter server": ("ps", TASKS, lambda: None, ["'ps' does not train"]),
    "a strategy of one process": (
        "worker", TASKS, one_device,
        ["MultiWorkerMirroredStrategy to train in step", "OneDeviceStrategy can't train"],
    ),
    "central storage": (
        "worker", TASKS, lambda: CentralStorageStrategy(["/cpu:0"], "/cpu:0"),
        ["CentralStorageStrategyV1 can't train in a cluster"],
    ),
    "a parameter server strategy with two devices in a task": (
        "worker", TASKS, lambda: mock.Mock(spec=ParameterServerStrategy, num_replicas_in_sync=2),
        ["CUDA_VISIBLE_DEVICES", "with 2 devices"],
    ),
    "no strategy": ("worker", TASKS, lambda: "mirrored", ["Leave it out to run on one device"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_task_of_a_cluster_that_does_not_train(monkeypatch, name):
    kind, tasks, strategy, words = REFUSED[name]
    with tf.Graph().as_default():  # where a strategy does not wait for the other tasks
        config = config_in(monkeypatch, kind, tasks, train_distribute=strategy())
    with pytest.raises(ValueError) as error:
        select_execution(config, "train")
    assert [word for word in words if word not in str(error.value)] == []


def test_a_task_of_a_cluster_evaluates_with_a_strategy_of_one_process(monkeypatch):
    config = config_in(monkeypatch, "worker", train_distribute=one_device(), eval_distribute=one_device())
    assert type(select_execution(config, "eval")) is ReplicasInSync
    with tf.Graph().as_default():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with pytest.raises(ValueError, match="leave eval_distribute out"):
        select_execution(config.replace(eval_distribute=strategy), "eval")


@pytest.mark.parametrize(
    ("kind", "tasks", "index"),
    [("chief", TASKS, 0), ("worker", TASKS, 1), ("worker", {"worker": ["a:1"], "ps": ["b:1"]}, 0)],
)
def test_a_parameter_server_strategy_trains_as_the_ps_tasks_alone_do(monkeypatch, kind, tasks, index):
    config = config_in(monkeypatch, kind, tasks, train_distribute=ParameterServerStrategy())
    execution = select_execution(config, "train")
    assert type(execution) is ParameterServers
    contexts = []
    with tf.Graph().as_default():
        execution.make_inputs(lambda context: contexts.append(context) or tf.data.Dataset.range(3), "train")
    (context,) = contexts
    workers = len(tasks["worker"]) + len(tasks.get("chief", ()))
    found = context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync
    assert found == (workers, index, 1)


def test_a_parameter_server_strategy_on_one_machine(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    strategy = ParameterServerStrategy()
    config = est.RunConfig(train_distribute=strategy, eval_distribute=strategy)
    assert type(select_execution(config, "train")) is ReplicasInSync
    assert type(select_execution(config, "eval")) is ReplicasInSync


def test_what_is_no_strategy_is_refused_with_what_to_use(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(ValueError, match="Leave it out to run on one device"):
        select_execution(est.RunConfig(train_distribute="mirrored"), "train")


@pytest.mark.parametrize(("steps", "most", "secs"), [("auto", 1000, 0.2), (25, 25, None), (1, 1, None)])
@pytest.mark.parametrize("strategy", [None, "/cpu:1"])
def test_training_and_evaluation_make_many_steps_in_a_call(steps, most, secs, strategy):
    strategy = strategy and tf.distribute.OneDeviceStrategy(strategy)
    config = est.RunConfig(steps_per_session_run=steps, train_distribute=strategy)
    execution = select_execution(config, "train")
    assert (execution.steps_per_session_run, execution.session_call_secs) == (most, secs)
    evaluation = select_execution(config, "eval")
    assert (evaluation.steps_per_session_run, evaluation.session_call_secs) == (most, secs)
    assert select_execution(config, "infer").steps_per_session_run == 1
    replicas = config.replace(eval_distribute=tf.distribute.OneDeviceStrategy("/cpu:1"))
    assert select_execution(replicas, "eval").steps_per_session_run == 1


def test_tasks_of_a_cluster_make_one_step_in_a_call(monkeypatch):
    execution = select_execution(config_in(monkeypatch, "chief", steps_per_session_run=9), "train")
    assert execution.steps_per_session_run == 1


def test_steps_that_must_be_compiled_are_of_one_device_and_many_in_a_call(monkeypatch):
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with pytest.raises(ValueError, match=r"one device.*Received: jit_compile=True"):
        select_execution(est.RunConfig(jit_compile=True, train_distribute=strategy), "train")
    with pytest.raises(ValueError, match="steps_per_session_run=1"):
        select_execution(est.RunConfig(jit_compile=True, steps_per_session_run=1), "train")
    select_execution(est.RunConfig(jit_compile="auto", train_distribute=strategy), "train")
    select_execution(est.RunConfig(jit_compile=True, steps_per_session_run=1), "eval")
    with pytest.raises(ValueError, match="cluster"):
        select_execution(config_in(monkeypatch, "chief", jit_compile=True), "train")
