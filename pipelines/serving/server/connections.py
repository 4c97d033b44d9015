"""Limits of connections: size and time of a request's headers, time between requests, number of connections.

uvicorn offers none of these with httptools. Its `h11_max_incomplete_event_size` is for h11, which takes twice
the time, and its `limit_concurrency` answers requests with status 503 but keeps all connections open.
"""

import asyncio
import json
from asyncio.events import TimerHandle
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pipelines.serving.server.metrics import ServerMetrics

_MAX_PIPELINED = 16  # requests of a connection that wait for their answers


@dataclass(frozen=True)
class ConnectionLimits:
    # Number of open connections. One more closes the connection that has waited longest for its
    # client; if none waits for its client, the new connection is refused with status 503.
    max_connections: int = 1_000
    max_header_bytes: int = 16 << 10  # Size of a request's line and headers; larger ones have status 431
    # Time for the line and the headers to arrive; then the status is 408. Also the time for the
    # rest of a body whose request has been answered already.
    header_secs: float = 10.0
    idle_secs: float = 75.0  # Time for which a connection stays open between two requests


class Connections:
    def __init__(self, limits: ConnectionLimits, request_secs: float, metrics: ServerMetrics):
        self.limits = limits
        self.metrics = metrics
        # The application has its own time limit; this limit covers answers that the client does not read.
        self.request_secs = request_secs + limits.header_secs
        # Connections that wait for bytes of their clients, in the order in which they began to wait.
        self.waiting: dict[LimitedProtocol, None] = {}

    def protocol(self, **settings: Any) -> "LimitedProtocol":
        """Returns the protocol of a new connection, for `uvicorn.Config(http=...)`."""
        return LimitedProtocol(self, **settings)

    def has_room(self, connection: "LimitedProtocol") -> bool:
        """Returns whether a new connection can stay, after closing another connection if necessary."""
        if len(connection.connections) <= self.limits.max_connections:
            return True
        oldest = next(iter(self.waiting), None)
        if oldest is not None:
            oldest.time_out()
        return oldest is not None


class LimitedProtocol(HttpToolsProtocol):
    """HTTP/1.1 of one connection, within the limits."""

    def __init__(self, group: Connections, **settings: Any):
        super().__init__(**settings)
        self._group = group
        self._limits = group.limits
        self._is_arriving = False  # a request has begun and is not complete
        self._is_head = True  # the next bytes belong to a request's line and headers
        self._num_unanswered = 0  # requests whose headers have arrived
        self._has_progress = False
        self._bytes_left = self._limits.max_header_bytes  # until there must be progress
        self._deadline = 0.0
        self._timer: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accepts a connection, or refuses it if there are too many."""
        super().connection_made(transport)
        if not self._group.has_room(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "The server has too many connections.")
            return
        self._group.waiting[self] = None
        self._set_deadline(self._limits.header_secs)
        self._check_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._group.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parses bytes, up to the size of headers at a time."""
        # httptools keeps a header until it is complete, so it gets no more bytes than the limit until there
        # is progress: complete headers, or a part of a body. This also covers the trailers after chunks.
        while data and not self.transport.is_closing():
            part, data = data[: self._bytes_left], data[self._bytes_left :]
            self._has_progress = False
            super().data_received(part)
            if self._has_progress:
                self._bytes_left = self._limits.max_header_bytes
                continue
            self._bytes_left -= len(part)
            if not self._bytes_left:
                self._refuse(
                    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                    f"The request line and the headers have more than {self._limits.max_header_bytes} bytes.",
                )

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_arriving = self._is_head = True
        if not self._num_unanswered:
            self._set_deadline(self._limits.header_secs)

    def on_headers_complete(self) -> None:
        self._has_progress = True
        self._is_head = False
        self._num_unanswered += 1
        if self._num_unanswered > _MAX_PIPELINED:
            self._refuse(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"More than {_MAX_PIPELINED} requests wait on this connection. Read the answers first.",
            )
            return
        self._set_deadline(self._group.request_secs)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._has_progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._has_progress = True
        self._is_arriving = False
        self._is_head = True
        self._group.waiting.pop(self, None)
        if not self._num_unanswered:  # it was answered before its body was complete
            self._wait_for_next_request()

    def on_response_complete(self) -> None:
        self._num_unanswered -= 1
        super().on_response_complete()
        # All complete requests are answered: what is left, if anything, is waited for.
        is_body_arriving = self._is_arriving and not self._is_head
        if self._num_unanswered <= is_body_arriving and not self.transport.is_closing():
            self._group.waiting[self] = None
        if self._num_unanswered:
            self._set_deadline(self._group.request_secs)
        elif self._is_arriving:
            self._set_deadline(self._limits.header_secs)
        else:
            self._wait_for_next_request()

    def time_out(self) -> None:
        """Closes the connection; a request that has no answer has status 408."""
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time.")

    def _wait_for_next_request(self) -> None:
        if not self.transport.is_closing():
            self._group.waiting[self] = None
            self._set_deadline(self._limits.idle_secs)

    def _set_deadline(self, secs: float) -> None:
        """Sets the time after which the connection is given up, unless this is called again before."""
        self._deadline = self.loop.time() + secs

    def _check_deadline(self) -> None:
        secs = self._deadline - self.loop.time()
        if secs <= 0:
            self.time_out()
            return
        # No limit is shorter than these two, so a request moves the deadline without a new timer.
        shortest_secs = min(self._limits.header_secs, self._limits.idle_secs)
        self._timer = self.loop.call_later(min(secs, shortest_secs), self._check_deadline)

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Closes the connection, after an answer if the client waits for one."""
        if self.transport.is_closing():
            return
        self._group.waiting.pop(self, None)
        is_new = status == HTTPStatus.SERVICE_UNAVAILABLE
        is_asking = self._num_unanswered or (self._is_arriving and self._is_head) or is_new
        if is_asking and not self.transport.get_write_buffer_size():
            body = json.dumps({"error": message}).encode()
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            head += "Retry-After: 1\r\n" if is_new else ""
            head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.transport.write(head.encode() + body)
            self._group.metrics.add_request("other", status.value, 0.0)
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # its client does not read: to close would wait for it
        else:
            self.transport.close()
