"""The tasks of a cluster, as far as one process shows them; `cluster/` has whole clusters."""

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
    as_task(kind, index, TASKS)
    assert roles.start_delay_secs(est.RunConfig(experimental_max_worker_delay_secs=most)) == expected


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


@pytest.mark.parametrize(
    ("kind", "index", "protocol", "waits"), [("worker", 1, "grpc+x", ["sleep 10"]), ("chief", 0, None, [])]
)
def test_a_task_starts_its_server_before_it_waits_and_the_chief_does_not_wait(
    as_task, make_estimator, input_fn, calls, kind, index, protocol, waits
):
    as_task(kind, index, TASKS)
    assert run(make_estimator, input_fn, calls, protocol=protocol) is None
    assert calls == [("server", protocol), *waits, "train"]


def test_a_task_of_another_type_has_no_part(as_task, make_estimator, input_fn, calls):
    as_task("coordinator", tasks={**TASKS, "coordinator": ["o:1"]})
    with pytest.raises(ValueError, match="no part for a task of type 'coordinator'"):
        run(make_estimator, input_fn, calls)
    assert calls == []


TWO_WORKERS = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}
ALL_BUT_PS = ("chief", "worker", "evaluator")
ALL = (*ALL_BUT_PS, "ps")


def of_devices(number):
    return {"train_distribute": mock.Mock(spec=ParameterServerStrategy, num_replicas_in_sync=number)}


REFUSED = {
    "a strategy that can't train": (
        ALL,
        TASKS,
        lambda: {"train_distribute": tf.distribute.MirroredStrategy(["/cpu:0"])},
        "MirroredStrategy can't train in a cluster",
    ),
    "training in step with parameter servers": (
        ALL,
        TASKS,
        lambda: {"train_distribute": mock.Mock(spec=tf.distribute.MultiWorkerMirroredStrategy)},
        r"leave other tasks out.*127\.0\.0\.1:99",
    ),
    "a cluster without parameter servers": (("chief", "worker"), TWO_WORKERS, dict, 'add "ps"'),
    "a strategy without parameter servers": (ALL_BUT_PS, TWO_WORKERS, lambda: of_devices(1), 'add "ps"'),
    "several devices": (("chief", "worker"), TASKS, lambda: of_devices(2), "with 2 devices"),
    "compiled steps": (ALL, TASKS, lambda: {"jit_compile": True}, r"not for a cluster.*127\.0\.0\.1:99"),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, (kinds, *_) in REFUSED.items() for kind in kinds]
)
def test_what_can_not_train_is_refused_before_a_task_waits(
    as_task, make_estimator, input_fn, calls, name, kind
):
    _, tasks, settings, message = REFUSED[name]
    as_task(kind, tasks=tasks)
    with pytest.raises(ValueError, match=message):
        run(make_estimator, input_fn, calls, **settings())
    assert calls == []


@pytest.mark.parametrize(("tasks", "devices"), [(TWO_WORKERS, None), (TASKS, 2)])
def test_an_evaluator_is_not_refused_for_what_it_needs_less(as_task, tasks, devices):
    as_task("evaluator", tasks=tasks)
    check_training(est.RunConfig(**(of_devices(devices) if devices else {})))


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


@pytest.mark.parametrize("kind", ["chief", "master"])
def test_the_master_of_a_cluster_of_one_evaluates_and_the_chief_does_not(
    as_task, make_estimator, input_fn, tmp_path, kind
):
    as_task(kind, tasks={kind: ["127.0.0.1:1"]})
    specs = est.TrainSpec(input_fn, 3), est.EvalSpec(input_fn, steps=1)
    estimator = make_estimator()
    assert est.train_and_evaluate(estimator, *specs) is None
    assert estimator.get_variable_value("global_step") == 3
    assert (tmp_path / "model" / "eval").exists() == (kind == "master")


def test_workers_in_step_do_not_wait(as_task):
    as_task("worker", 3, {"worker": [f"localhost:{port}" for port in range(1, 6)]})
    assert roles.start_delay_secs(est.RunConfig(train_distribute=object())) == 0
