"""The tasks of a cluster, as far as one process shows them; `cluster/` has whole clusters."""

import json
import socket
from unittest import mock

import pytest
import tensorflow as tf

import estimator_core as est
from estimator_core.execution.select import check_training
from estimator_core.training import roles

ParameterServerStrategy = tf.compat.v1.distribute.experimental.ParameterServerStrategy
TASKS = {
    "chief": ["127.0.0.1:1"],
    "worker": [f"127.0.0.1:{port}" for port in range(2, 22)],
    "ps": ["127.0.0.1:99"],
}


@pytest.fixture
def as_task(monkeypatch):
    """Sets TF_CONFIG for a task."""

    def set_task(kind, index=0, tasks=TASKS):
        task = {"type": kind, "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": tasks, "task": task}))

    return set_task


@pytest.mark.parametrize(
    ("kind", "index", "most", "expected"),
    [
        ("chief", 0, None, 0),
        ("worker", 0, None, 5),
        ("worker", 3, None, 20),
        ("worker", 19, None, 60),
        ("worker", 3, 12, 12),
        ("worker", 0, 12, 5),
        ("worker", 19, 90, 90),
        ("worker", 5, 0, 0),
    ],
)
def test_workers_begin_one_after_the_other(as_task, kind, index, most, expected):
    as_task(kind, index)
    config = est.RunConfig(experimental_max_worker_delay_secs=most)
    assert roles.start_delay_secs(config) == expected


@pytest.fixture
def calls(monkeypatch):
    """The calls, in order, instead of the server, the waits and the training."""
    calls = []
    monkeypatch.setattr(roles, "start_task_server", lambda config: calls.append(("server", config.protocol)))
    monkeypatch.setattr(est.Estimator, "train", lambda self, *_, **__: calls.append("train"))
    return calls


def run(make_estimator, input_fn, calls, **config):
    return roles.run_task(
        make_estimator(**config),
        est.TrainSpec(input_fn, 3),
        est.EvalSpec(input_fn, steps=1),
        sleep=lambda secs: calls.append(f"sleep {secs}"),
    )


def test_a_worker_starts_its_server_before_it_waits(as_task, make_estimator, input_fn, calls):
    as_task("worker", 1)
    assert run(make_estimator, input_fn, calls, protocol="grpc+x") is None
    assert calls == [("server", "grpc+x"), "sleep 10", "train"]


def test_a_task_of_another_type_has_no_part(as_task, make_estimator, input_fn, calls):
    as_task("coordinator", tasks={**TASKS, "coordinator": ["o:1"]})
    with pytest.raises(ValueError, match="no part for a task of type 'coordinator'"):
        run(make_estimator, input_fn, calls)
    assert calls == []


@pytest.mark.parametrize("kind", ["chief", "worker", "ps", "evaluator"])
def test_a_strategy_that_can_not_train_is_refused_before_a_task_waits(
    as_task, make_estimator, input_fn, calls, kind
):
    as_task(kind)
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with pytest.raises(ValueError, match="MirroredStrategy can't train in a cluster"):
        run(make_estimator, input_fn, calls, train_distribute=strategy)
    assert calls == []


TWO_WORKERS = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}


@pytest.mark.parametrize("kind", ["chief", "worker", "ps", "evaluator"])
def test_training_in_step_with_parameter_servers_is_refused_before_a_task_waits(
    as_task, make_estimator, input_fn, calls, kind
):
    as_task(kind)
    strategy = mock.Mock(spec=tf.distribute.MultiWorkerMirroredStrategy)
    with pytest.raises(ValueError, match=r"leave other tasks out.*127\.0\.0\.1:99"):
        run(make_estimator, input_fn, calls, train_distribute=strategy)
    assert calls == []


@pytest.mark.parametrize("kind", ["chief", "worker"])
def test_a_cluster_that_lacks_parameter_servers_is_refused_before_a_task_waits(
    as_task, make_estimator, input_fn, calls, kind
):
    as_task(kind, tasks=TWO_WORKERS)
    with pytest.raises(ValueError, match='add "ps"'):
        run(make_estimator, input_fn, calls)
    assert calls == []


@pytest.mark.parametrize("kind", ["chief", "worker", "evaluator"])
def test_a_strategy_that_lacks_parameter_servers_is_refused_before_a_task_waits(
    as_task, make_estimator, input_fn, calls, kind
):
    as_task(kind, tasks=TWO_WORKERS)
    strategy = mock.Mock(spec=ParameterServerStrategy, num_replicas_in_sync=1)
    with pytest.raises(ValueError, match='add "ps"'):
        run(make_estimator, input_fn, calls, train_distribute=strategy)
    assert calls == []


@pytest.mark.parametrize("kind", ["chief", "worker"])
def test_several_devices_are_refused_before_a_task_waits(as_task, make_estimator, input_fn, calls, kind):
    as_task(kind)
    strategy = mock.Mock(spec=ParameterServerStrategy, num_replicas_in_sync=2)
    with pytest.raises(ValueError, match="with 2 devices"):
        run(make_estimator, input_fn, calls, train_distribute=strategy)
    assert calls == []


@pytest.mark.parametrize("kind", ["chief", "worker", "ps", "evaluator"])
def test_steps_that_can_not_be_compiled_are_refused_before_a_task_waits(
    as_task, make_estimator, input_fn, calls, kind
):
    as_task(kind)
    with pytest.raises(ValueError, match=r"not for a cluster.*127\.0\.0\.1:99"):
        run(make_estimator, input_fn, calls, jit_compile=True)
    assert calls == []


@pytest.mark.parametrize(("tasks", "devices"), [(TWO_WORKERS, None), (TASKS, 2)])
def test_an_evaluator_is_not_refused_for_what_it_needs_less(as_task, tasks, devices):
    as_task("evaluator", tasks=tasks)
    strategy = devices and mock.Mock(spec=ParameterServerStrategy, num_replicas_in_sync=devices)
    check_training(est.RunConfig(train_distribute=strategy))


def test_the_chief_does_not_wait(as_task, make_estimator, input_fn, calls):
    as_task("chief")
    assert run(make_estimator, input_fn, calls) is None
    assert calls == [("server", None), "train"]


def test_a_parameter_server_serves_until_it_is_ended_and_no_task_trains(
    as_task, make_estimator, input_fn, calls, monkeypatch
):
    def serve(is_needed):
        calls.append(is_needed())
        raise SystemExit(143)

    monkeypatch.setattr(roles, "serve_until_sigterm", serve)
    with socket.create_server(("127.0.0.1", 0)) as chief:
        address = f"127.0.0.1:{chief.getsockname()[1]}"
        as_task("ps", tasks={**TASKS, "chief": [address]})
        with pytest.raises(SystemExit):
            run(make_estimator, input_fn, calls)
    with pytest.raises(SystemExit):
        run(make_estimator, input_fn, calls)
    assert calls == [("server", None), True, ("server", None), False]


def test_the_chief_of_a_cluster_of_one_trains_here_and_does_not_evaluate(
    as_task, make_estimator, input_fn, tmp_path
):
    as_task("chief", tasks={"chief": ["127.0.0.1:1"]})
    estimator = make_estimator()
    result = est.train_and_evaluate(estimator, est.TrainSpec(input_fn, 3), est.EvalSpec(input_fn, steps=1))
    assert result is None
    assert estimator.get_variable_value("global_step") == 3
    assert not (tmp_path / "model" / "eval").exists()


def test_the_master_of_a_cluster_of_one_evaluates_and_exports_too(
    as_task, make_estimator, input_fn, tmp_path
):
    as_task("master", tasks={"master": ["127.0.0.1:1"]})
    result = est.train_and_evaluate(
        make_estimator(), est.TrainSpec(input_fn, 3), est.EvalSpec(input_fn, steps=1)
    )
    assert result is None
    assert (tmp_path / "model" / "eval").exists()


def test_workers_in_step_do_not_wait(monkeypatch):
    task = {"type": "worker", "index": 3}
    tasks = {"worker": [f"localhost:{port}" for port in range(1, 6)]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": tasks, "task": task}))
    config = est.RunConfig(train_distribute=object())
    assert roles.start_delay_secs(config) == 0
