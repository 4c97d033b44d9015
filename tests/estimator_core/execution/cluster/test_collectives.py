"""Tasks that are gone. The exchange itself is tested in tests/integration/cluster."""

import socket
import threading

import pytest
import tensorflow as tf

from estimator_core.execution.cluster.collectives import Peers, TaskLostError, Watch
from estimator_core.execution.cluster.server import Task
from estimator_core.experimental.local_cluster import free_ports


class FakeSession:
    def __init__(self):
        self.closed = threading.Event()

    def close(self):
        self.closed.set()


@pytest.fixture
def neighbour():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def peers_of(neighbour_port):
    return Peers([Task("chief", 0, f"127.0.0.1:{neighbour_port}"), Task("worker", 0, "127.0.0.1:1")], 1)


def test_this_task_among_its_peers():
    peers = peers_of(2)
    assert str(peers.own) == "worker 0 at 127.0.0.1:1"
    assert [task.kind for task in peers.others] == ["chief"]
    assert peers.device == "/job:worker/replica:0/task:0/device:CPU:0"


def test_a_session_is_closed_when_a_task_is_gone(neighbour):
    session = FakeSession()
    with Watch(peers_of(neighbour.getsockname()[1]), every_secs=0.01) as watch:
        watch.session = session
        assert not session.closed.wait(0.5)
        assert watch.lost is None
        neighbour.close()
        assert session.closed.wait(30)
    lost = pytest.raises(TaskLostError, match=r"process of chief 0 at 127\.0\.0\.1")
    with lost as error, watch.naming_the_lost():
        raise RuntimeError("closed")
    assert str(error.value.__cause__) == "closed"


def test_what_fails_while_all_are_there_stays_as_it_is():
    watch = Watch(peers_of(free_ports(1)[0]))
    with pytest.raises(tf.errors.InvalidArgumentError), watch.naming_the_lost():
        raise tf.errors.InvalidArgumentError(None, None, "of the model")


def test_what_has_one_shape_in_one_graph_and_another_in_the_next_has_another_key():
    keys = set()
    for size in (2, 3):
        for purpose in (4, 5):
            with tf.Graph().as_default():
                total = peers_of(2).sum(tf.zeros([size]), purpose)
            assert total.op.get_attr("group_size") == 2
            keys.add(total.op.get_attr("instance_key"))
    assert len(keys) == 4
