"""The model that a chief describes, and the worker's use of it."""

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from estimator_core.execution import parameter_server
from estimator_core.execution.cluster.chief_model import ChiefModel, Model
from estimator_core.execution.cluster.server import Task
from estimator_core.experimental.local_cluster import free_ports
from tests.estimator_core.programs import AfterEachRun

_kept = []  # a server lives as long as its object

WEIGHT = {"weight": ["float32", "()"], "global_step": ["int64", "()"]}


def model(variables=None, version=tf.__version__):
    return Model(version, WEIGHT if variables is None else variables)


def test_a_model_is_its_variables_and_the_version_of_tensorflow():
    with tf.Graph().as_default() as graph:
        tf1.train.create_global_step()
        tf1.get_variable("dense/kernel", [2, 3], tf.float64)
        tf1.get_variable("old", [4], use_resource=False)
        tf1.get_variable("here", [1], collections=[tf1.GraphKeys.LOCAL_VARIABLES])
    found = Model.from_graph(graph)
    assert found.tensorflow == tf.__version__
    assert found.variables == {
        "global_step": ["int64", "()"],
        "dense/kernel": ["float64", "(2, 3)"],
        "old": ["float32", "(4,)"],
    }


@pytest.mark.parametrize("chief", [model(), model({**WEIGHT, "of_the_chief_alone": ["float32", "(2,)"]})])
def test_a_worker_can_train_with_a_chief_that_has_all_its_variables(chief):
    assert model().why_not_equal(chief) is None


@pytest.mark.parametrize(
    ("chief", "words"),
    [
        ({"global_step": ["int64", "()"]}, "'weight': float32 () here, missing at the chief."),
        ({**WEIGHT, "weight": ["float32", "(2,)"]}, "float32 () here, float32 (2,) at the chief."),
        ({**WEIGHT, "weight": ["float64", "()"]}, "float32 () here, float64 () at the chief."),
    ],
)
def test_a_variable_that_differs_is_named(chief, words):
    assert model().why_not_equal(model(chief)).endswith(words)


def test_no_more_than_five_variables_are_listed():
    why_not = model({f"v{number}": ["float32", "()"] for number in range(7)}).why_not_equal(model({}))
    assert why_not.endswith("'v4': float32 () here, missing at the chief, and 2 more.")


@pytest.mark.parametrize(("version", "is_fine"), [("2.16.1", True), ("2.17.2", False)])
def test_another_release_of_tensorflow_is_named(version, is_fine):
    why_not = model(version="2.16.2").why_not_equal(model(version=version))
    expected = "This task has TensorFlow 2.16.2, and the chief has TensorFlow 2.17.2."
    assert why_not == (None if is_fine else expected)


@pytest.fixture(scope="module")
def tasks():
    """A cluster whose tasks are all in this process, as their types and addresses."""
    kinds = ("chief", "worker", "ps")
    addresses = {kind: [f"127.0.0.1:{port}"] for kind, port in zip(kinds, free_ports(3), strict=True)}
    spec = tf.train.ClusterSpec(addresses)
    _kept.extend(tf1.train.Server(spec, kind, 0) for kind in kinds)
    return addresses


def task(tasks, kind):
    return Task(kind, 0, tasks[kind][0])


def of_chief(tasks, by):
    own = task(tasks, by)
    return ChiefModel(task(tasks, "chief"), own, f"grpc://{own.address}")


def test_the_worker_reads_what_the_chief_has_told_until_it_is_taken_back(tasks):
    chief, worker = of_chief(tasks, "chief"), of_chief(tasks, "worker")
    assert worker.read() is None
    chief.publish(model())
    assert worker.read().variables == WEIGHT
    chief.publish(model({}, "2.99.0"))
    assert worker.read().tensorflow == "2.99.0"
    chief.take_back()
    assert worker.read() is None


def test_a_chief_that_does_not_answer_has_told_nothing(tasks):
    own = task(tasks, "worker")
    gone = Task("chief", 0, f"127.0.0.1:{free_ports(1)[0]}")
    assert ChiefModel(gone, own, f"grpc://{own.address}").read() is None


@pytest.mark.parametrize(
    ("chief", "message"),
    [
        (model({"global_step": ["int64", "()"]}), "'weight': float32 [(][)] here, missing"),
        (model(version="2.99.1"), f"TensorFlow {tf.__version__}, and the chief has TensorFlow 2.99"),
    ],
)
def test_a_worker_with_another_model_is_refused(
    tasks, as_task, monkeypatch, make_estimator, input_fn, chief, message
):
    as_task("worker", tasks=tasks)
    monkeypatch.setattr(parameter_server, "_OTHER_MODEL_SECS", 3)
    publisher = of_chief(tasks, "chief")
    publisher.publish(chief)
    try:
        with pytest.raises(ValueError, match=message):
            make_estimator().train(input_fn, steps=1)
    finally:
        publisher.take_back()


def test_a_chief_takes_its_model_back_when_its_training_ends(tasks, as_task, make_estimator, input_fn):
    def told():
        return of_chief(tasks, "worker").read()

    found = []
    as_task("chief", tasks=tasks)
    make_estimator().train(input_fn, hooks=[AfterEachRun(lambda _: found.append(told()))], steps=2)
    assert [each.variables["weight"] for each in found] == [["float32", "()"]] * 2
    assert told() is None
