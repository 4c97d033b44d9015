"""Ports of this machine that nothing uses."""

from __future__ import annotations

import random
import socket

# Below the ports that Linux gives to outgoing connections: between the choice of a port and its use
# lie the seconds in which a process imports TensorFlow.
_FIRST, _LAST = 12000, 32000


def free_ports(count: int) -> list[int]:
    """Returns so many different ports that were free a moment ago."""
    draws = random.SystemRandom()
    ports: list[int] = []
    while len(ports) < count:
        port = draws.randint(_FIRST, _LAST)
        if port not in ports and _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
