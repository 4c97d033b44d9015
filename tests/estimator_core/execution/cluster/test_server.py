"""Servers of tasks, and the wait for them, with a clock of the test's."""

import socket

import pytest
import tensorflow as tf

from estimator_core.cluster import Cluster
from estimator_core.execution.cluster import server
from estimator_core.execution.cluster.server import Task, answers, start_server, wait_for_tasks
from estimator_core.experimental.local_cluster import free_ports


@pytest.fixture
def listening():
    """A socket that listens, and its address."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener, f"127.0.0.1:{listener.getsockname()[1]}"


class Clock:
    def __init__(self, wake=lambda now: None):
        self.now = 50.0
        self._wake = wake

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self._wake(self.now)


def test_it_says_whether_something_listens(listening):
    listener, address = listening
    assert answers(address)
    listener.close()
    assert not answers(address)


def test_all_that_is_missing_is_named(listening):
    _, address = listening
    gone = [Task("ps", 1, "127.0.0.1:1"), Task("worker", 0, "127.0.0.1:2")]
    clock = Clock()
    with pytest.raises(tf.errors.DeadlineExceededError) as error:
        wait_for_tasks([Task("ps", 0, address), *gone], 7, clock, clock.sleep)
    assert "ps 1 at 127.0.0.1:1, worker 0 at 127.0.0.1:2." in error.value.message
    assert "ps 0" not in error.value.message
    assert 7 <= clock.now - 50 < 8


def test_a_task_that_comes_late_is_waited_for(monkeypatch, caplog):
    there_at = 115.0
    clock = Clock()
    monkeypatch.setattr(server, "answers", lambda address: clock.now >= there_at)
    with caplog.at_level("INFO", logger="tensorflow"):
        wait_for_tasks([Task("ps", 0, "a:1")], 100, clock, clock.sleep)
    assert there_at <= clock.now < there_at + 1
    lines = [r.getMessage() for r in caplog.records]
    assert lines == ["Waiting for the servers of: ps 0 at a:1."] * 2  # after 30 s and 60 s


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:http"])
def test_an_address_without_a_port_is_refused(address):
    with pytest.raises(ValueError, match="must be host:port"):
        answers(address)


def test_a_port_that_is_taken_is_named_with_the_task_that_wants_it(listening):
    _, address = listening
    cluster = Cluster({"chief": ("127.0.0.1:1",), "worker": ("127.0.0.1:2", address)}, "worker", 1)
    port = address.rpartition(":")[2]
    with pytest.raises(RuntimeError, match=f"worker 1 at {address}.*port {port}") as error:
        start_server(cluster)
    assert "Address already in use" in str(error.value)


def test_a_second_call_gives_the_server_that_there_is(listening):
    listener, address = listening
    listener.close()
    cluster = Cluster({"chief": (address,), "ps": ("127.0.0.1:2",)}, "chief", 0)
    first = start_server(cluster)
    assert answers(address)
    assert start_server(cluster) is first


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({"chief": ["here"], "worker": ["gone"], "ps": ["gone"]}, True),
        ({"master": ["here"], "ps": ["gone"]}, True),
        ({"chief": ["gone"], "worker": ["gone", "here"], "ps": ["gone"]}, True),
        ({"chief": ["gone"], "worker": ["gone"], "ps": ["here"]}, False),
        ({}, False),
    ],
)
def test_it_says_whether_tasks_that_train_answer(listening, tasks, expected):
    addresses = {"here": listening[1], "gone": f"127.0.0.1:{free_ports(1)[0]}"}
    known = {kind: tuple(addresses[each] for each in names) for kind, names in tasks.items()}
    assert server.tasks_that_train_answer(Cluster(known, "ps", 0, "")) is expected
