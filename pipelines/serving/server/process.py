"""Runs the server of a root until it is told to end."""

import ipaddress
import math
import os
import resource
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import uvicorn

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.serving.model import ModelFolder, version_folder
from pipelines.serving.request_files import SampleLimits
from pipelines.serving.server.app import make_app
from pipelines.serving.server.connections import Connections
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request_monitor import RequestMonitor
from pipelines.serving.server.server_settings import ServerSettings
from pipelines.serving.server.versions import ServedVersions
from pipelines.terminal.quiet_tensorflow import quiet_tensorflow

_BACKLOG = 2_048
_SPARE_FILES = 64  # for versions to load, samples to write, gRPC itself, connections being closed
_QUIET_SECS = 2.0
_MAX_GRPC_BYTES = 2**31 - 1


@dataclass(frozen=True)
class ServerAddress:
    host: str = "127.0.0.1"  # Address to listen on
    port: int = 8501  # Port to listen on; 0 takes a free one

    @property
    def is_loopback(self) -> bool:
        """True if only programs on this machine reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def serve(
    root: Root | ModelFolder,
    name: str,
    address: ServerAddress,
    say: Callable[[str], None],
    num_versions: int = 1,
    settings: ServerSettings | None = None,
    sample: SampleLimits | None = None,
    grpc_port: int | None = None,
) -> None:
    """Serves a model until SIGTERM or SIGINT; requests that have begun are answered first.

    `grpc_port`: port for gRPC on the same address; 0 takes a free one. Default: there is no gRPC.
    """
    settings = settings or ServerSettings()
    if not address.is_loopback and settings.token is None:
        raise BadInputError(
            f"The server needs a token, because other machines reach it on {address.host}. Give a file with "
            "--token-file, or leave --host out to serve this machine only."
        )
    if grpc_port is not None:
        if grpc_port == address.port != 0:
            raise BadInputError(f"--port and --grpc-port are both {grpc_port}. Choose two ports.")
        if settings.max_body_bytes > _MAX_GRPC_BYTES:
            raise BadInputError(
                f"--max-body is {_MAX_GRPC_BYTES} at most with --grpc-port, the limit of gRPC. Received: "
                f"{settings.max_body_bytes}"
            )
        grpc_address = ServerAddress(address.host, grpc_port)
        with _listening(grpc_address, "--grpc-port") as listener:  # or its error
            grpc_port = listener.getsockname()[1]
        settings = replace(settings, grpc_address=f"{_shown(address.host)}:{grpc_port}")
    metrics = ServerMetrics()
    versions = ServedVersions(
        root, name, metrics, num_versions, request_secs=settings.batches.timeout_secs, quiet_secs=_QUIET_SECS
    )
    folder = version_folder(root) if isinstance(root, Root) else root.path  # or the error for no model
    with quiet_tensorflow():
        while not versions.refresh() and versions.are_changing():
            time.sleep(_QUIET_SECS / 4)
    if not versions.versions():
        reason = next(iter(versions.failures().values()), f"{folder} was deleted. Try again.")
        raise BadInputError(reason)
    monitor = RequestMonitor(root, sample, metrics, time.time) if sample and isinstance(root, Root) else None
    num_connections = _connections_within_files(
        settings.connections.max_connections, num_servers=1 if grpc_port is None else 2
    )
    limits = replace(settings.connections, max_connections=num_connections)
    settings = replace(settings, connections=limits)
    app = make_app(versions, metrics, settings, monitor)
    server = http_server(app, settings, metrics)
    with _listening(address) as listener:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # raised again by uvicorn, after its end
        host, port = listener.getsockname()[:2]
        say(
            f"version {versions.versions()[0]} of {name} serves at http://{_shown(host)}:{port} "
            "(/openapi.json describes it)"
            + (f", and by gRPC at {settings.grpc_address}" if settings.grpc_address else "")
        )
        server.run(sockets=[listener])
    say("the server has ended")


def http_server(app: Any, settings: ServerSettings, metrics: ServerMetrics) -> Any:
    """Returns uvicorn's server of an ASGI application, with the limits of connections."""
    timeout_secs = settings.batches.timeout_secs
    connections = Connections(settings.connections, timeout_secs, metrics)
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=cast(Any, connections.protocol),
            ws="none",  # a WebSocket would leave the protocol with the limits
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nobody asks for the client's address
            server_header=False,
            timeout_keep_alive=math.ceil(settings.connections.idle_secs),
            timeout_graceful_shutdown=round(timeout_secs) + 1,
        )
    )


def _connections_within_files(max_connections: int, num_servers: int) -> int:
    """Returns the number of connections of each server for which the process can open enough files.

    Raises the limit of open files first, which is 1,024 on many systems, if the system allows it.
    """
    num_others = len(os.listdir("/proc/self/fd")) + _SPARE_FILES
    wanted = num_servers * max_connections + num_others
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max_connections
    highest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
    return max(1, (highest - num_others) // num_servers)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(address: ServerAddress, option: str = "--port") -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise BadInputError(
            f"The server cannot listen on {address.host}, port {address.port}: "
            f"{getattr(error, 'strerror', None) or error}. Choose another {option} or --host."
        ) from error
    return listener
