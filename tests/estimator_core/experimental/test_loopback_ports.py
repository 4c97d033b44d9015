"""Free ports."""

import pathlib
import random
import socket

import pytest

from estimator_core.experimental.local_cluster import free_ports


def test_ports_are_different_and_below_those_of_outgoing_connections():
    ports = free_ports(50)
    assert len(set(ports)) == 50
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(1024 < port < low for port in ports)


def test_a_port_that_is_taken_is_passed_over(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("", 0))
        port = taken.getsockname()[1]
        free = free_ports(1)[0]
        draws = iter([port, free, free, free])
        monkeypatch.setattr(random.SystemRandom, "randint", lambda self, first, last: next(draws))
        assert free_ports(1) == [free]
        with pytest.raises(StopIteration):
            free_ports(2)  # it never gives the same one twice
