"""Servers of a whole cluster in the tests' own process, for tests that need no other."""

import functools

import tensorflow as tf

from estimator_core.cluster import Cluster
from estimator_core.experimental.local_cluster import free_ports

tf1 = tf.compat.v1


@functools.cache
def cluster_in_this_process(name="", num_ps=2):
    """Returns the cluster of a chief, a worker and parameter servers; all but the worker run here.

    TensorFlow can't end a server, and it keeps variables when a session ends: tests that do not ask for
    a name of their own share one cluster.
    """
    del name
    kind = "chief"
    ports = iter(free_ports(2 + num_ps))
    tasks = {
        "chief": (f"127.0.0.1:{next(ports)}",),
        "worker": (f"127.0.0.1:{next(ports)}",),
        "ps": tuple(f"127.0.0.1:{next(ports)}" for _ in range(num_ps)),
    }
    cluster = Cluster(tasks, kind, 0, f"grpc://{tasks[kind][0]}")
    servers = [tf1.train.Server(cluster.spec, "ps", index) for index in range(num_ps)]
    servers.append(tf1.train.Server(cluster.spec, kind, 0))
    _kept.extend(servers)
    return cluster


_kept = []


def tf_config_of(cluster):
    """Returns the TF_CONFIG that describes it."""
    tasks = {kind: list(addresses) for kind, addresses in cluster.tasks.items()}
    return {"cluster": tasks, "task": {"type": cluster.task_type, "index": cluster.task_id}}


def device_filters(cluster):
    """Returns a session configuration with which a session does without the task that is not here."""
    return tf1.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", f"/job:{cluster.task_type}"])
