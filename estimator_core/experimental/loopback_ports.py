"""Free ports of this machine."""

from __future__ import annotations

import random
import socket

# Below the ports that Linux gives to outgoing connections: a port is used seconds after it was chosen,
# when a process has imported TensorFlow.
_FIRST, _LAST = 12000, 32000


def free_ports(count: int) -> list[int]:
    """Returns `count` different ports that were free a moment ago."""
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
