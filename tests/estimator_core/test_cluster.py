"""TF_CONFIG, read from any mapping."""

import json

import pytest

from estimator_core.cluster import Cluster, from_environment

TASKS = {"chief": ["c:1"], "worker": ["w:1", "w:2"], "ps": ["p:1", "p:2", "p:3"]}


def cluster(**config):
    return from_environment({"TF_CONFIG": json.dumps(config)})


def test_without_tf_config_it_is_a_single_machine():
    for environment in ({}, {"TF_CONFIG": ""}, {"TF_CONFIG": "{}"}):
        assert from_environment(environment) == Cluster()
    assert Cluster().is_chief
    assert (Cluster().num_worker_replicas, Cluster().num_ps_replicas) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "index", "global_id"),
    [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2), ("ps", 0, 3), ("ps", 2, 5)],
)
def test_the_rank_of_a_task(kind, index, global_id):
    found = cluster(cluster=TASKS, task={"type": kind, "index": index})
    assert found.global_id == global_id
    assert found.is_chief is (kind == "chief")
    assert (found.num_worker_replicas, found.num_ps_replicas) == (3, 3)
    assert found.address == TASKS[kind][index]
    assert found.master == f"grpc://{TASKS[kind][index]}"
    assert found.is_distributed
    assert found.spec.as_dict() == TASKS


def test_an_evaluator_stands_by_itself():
    found = cluster(cluster=TASKS, task={"type": "evaluator", "index": 0})
    assert (found.tasks, found.global_id, found.is_chief) == ({}, None, False)
    assert found.address == ""
    assert found.num_worker_replicas == 0


@pytest.mark.parametrize(("kind", "global_id"), [("chief", 0), ("worker", 2), ("evaluator", None)])
def test_an_evaluator_that_is_listed_does_not_train(kind, global_id):
    tasks = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    task = {"type": kind, "index": 1 if kind == "worker" else 0}
    found = cluster(cluster={**tasks, "evaluator": ["e:1"]}, task=task).without_evaluator
    assert found.training_tasks == {kind: tuple(value) for kind, value in tasks.items()}
    assert found.global_id == global_id
    assert found.num_worker_replicas == (0 if kind == "evaluator" else 3)


def test_a_cluster_of_one_task_runs_in_this_process_and_the_first_worker_is_chief_without_one():
    found = cluster(cluster={"chief": ["c:1"]}, task={"type": "chief", "index": 0})
    assert found.master == ""
    assert not found.is_distributed
    workers = {"worker": ["w:1", "w:2"]}
    both = [cluster(cluster=workers, task={"type": "worker", "index": i}) for i in range(2)]
    assert [(each.is_chief, each.global_id) for each in both] == [(True, 0), (False, 1)]


def test_sessions_speak_grpc_whatever_rpc_layer_says():
    task = {"type": "worker", "index": 1}
    for layer in ("grpc", "grpc+loas", ""):
        assert cluster(cluster=TASKS, task=task, rpc_layer=layer).master == "grpc://w:2"


@pytest.mark.parametrize(
    ("kind", "index", "global_id"),
    [("coordinator", 1, 2), ("evaluator_helper", 0, 3), ("worker", 0, 4), ("zoo", 0, 6), ("ps", 2, 9)],
)
def test_a_cluster_may_have_tasks_of_other_types(kind, index, global_id):
    others = {"zoo": ["z:1"], "coordinator": ["o:1", "o:2"], "evaluator_helper": ["h:1"]}
    found = cluster(cluster=TASKS | others, task={"type": kind, "index": index})
    assert (found.task_type, found.global_id, found.is_chief) == (kind, global_id, False)
    assert (found.num_worker_replicas, found.num_ps_replicas) == (3, 3)
    assert found.master == f"grpc://{(TASKS | others)[kind][index]}"


def test_the_sessions_of_a_managed_service():
    sessions = {"session_master": "grpc://s:1", "eval_session_master": "grpc://e:1"}
    alone = cluster(**sessions)
    assert (alone.master, alone.evaluation_master) == ("grpc://s:1", "grpc://e:1")
    worker = cluster(cluster=TASKS, task={"type": "worker", "index": 1}, **sessions)
    assert (worker.master, worker.evaluation_master) == ("grpc://s:1", "")
    evaluator = cluster(cluster=TASKS, task={"type": "evaluator", "index": 0}, **sessions)
    assert (evaluator.master, evaluator.evaluation_master) == ("", "grpc://e:1")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cluster": TASKS}, "must name this task's `type`"),
        ({"model_dir": ""}, "model_dir in TF_CONFIG should be non-empty"),
        (
            {"cluster": {"master": ["m:1"]}, "task": {"type": "evaluator", "index": 0}},
            "'master' task evaluates",
        ),
        ({"cluster": TASKS, "task": {"type": "worker"}}, "must name this task's `index`"),
        ({"cluster": TASKS, "task": {"type": "worker", "index": 2}}, "no 'worker' task with index 2"),
        ({"cluster": TASKS, "task": {"type": "worker", "index": -1}}, "must not be negative"),
        ({"cluster": TASKS, "task": {"type": "worker", "index": "x"}}, "must be an integer"),
        ({"cluster": TASKS, "task": {"type": "boss", "index": 0}}, "no 'boss' task with index 0"),
        ({"cluster": {"chief": ["c"], "master": ["m"]}, "task": {"type": "chief", "index": 0}}, "not both"),
        ({"cluster": {"chief": "c:1"}}, "must list addresses"),
        ({"task": {"type": "ps", "index": 0}}, "without a `cluster` can't be task type 'ps'"),
        ({"task": {"type": "worker", "index": 1}}, "Received: index=1"),
    ],
)
def test_contradictions_are_refused(config, message):
    with pytest.raises(ValueError, match=message):
        cluster(**config)


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ValueError, match="must be a JSON object"):
        from_environment({"TF_CONFIG": text})
    assert cluster(service={"k": 1}).service == {"k": 1}
    with pytest.raises(TypeError, match="Received: service='k'"):
        cluster(service="k")


@pytest.mark.parametrize(
    ("tasks", "address"),
    [
        ({"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, "a:1"),
        ({"worker": ["b:1", "b:2"], "ps": ["c:1"]}, "b:1"),
        ({"ps": ["c:1"]}, ""),
        ({}, ""),
    ],
)
def test_the_address_of_the_task_that_saves_checkpoints(tasks, address):
    """An evaluator knows it, though it is no task of the cluster."""
    found = cluster(cluster=tasks, task={"type": "evaluator", "index": 0})
    assert found.chief_address == address
    assert found.tasks == {}
    if tasks:
        assert cluster(cluster=tasks, task={"type": "ps", "index": 0}).chief_address == address
    tasks = {"master": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}  # which has no evaluator
    assert cluster(cluster=tasks, task={"type": "ps", "index": 0}).chief_address == "a:1"
