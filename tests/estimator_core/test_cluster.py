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


def test_a_cluster_of_one_task_runs_in_this_process():
    found = cluster(cluster={"chief": ["c:1"]}, task={"type": "chief", "index": 0})
    assert found.master == ""
    assert not found.is_distributed


def test_the_protocol_may_be_another_or_none():
    task = {"type": "worker", "index": 1}
    assert cluster(cluster=TASKS, task=task, rpc_layer="http").master == "http://w:2"
    assert cluster(cluster=TASKS, task=task, rpc_layer="").master == "w:2"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"cluster": TASKS}, "must name this task's `type`"),
        ({"cluster": TASKS, "task": {"type": "worker"}}, "must name this task's `index`"),
        (
            {"cluster": TASKS, "task": {"type": "worker", "index": 2}},
            "no 'worker' task with index 2",
        ),
        ({"cluster": TASKS, "task": {"type": "worker", "index": -1}}, "must not be negative"),
        ({"cluster": TASKS, "task": {"type": "worker", "index": "x"}}, "must be an integer"),
        ({"cluster": TASKS, "task": {"type": "boss", "index": 0}}, "Received: type='boss'"),
        ({"cluster": {"boss": ["b:1"]}}, "Received: 'boss'"),
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
