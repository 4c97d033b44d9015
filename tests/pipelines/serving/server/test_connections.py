"""The protocol runs without sockets: a fake loop has the clock, and a fake transport keeps the answer."""

import types

import pytest
import uvicorn
from uvicorn.server import ServerState

from pipelines.serving.server.connections import ConnectionLimits, Connections
from pipelines.serving.server.metrics import ServerMetrics

LIMITS = ConnectionLimits(max_connections=3, max_header_bytes=200, header_secs=10, idle_secs=75)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"


class Pause:
    def __await__(self):
        yield


class Task:
    def add_done_callback(self, callback):
        pass


class Loop:
    """A clock with its timers, and tasks that run at once until they wait for something."""

    def __init__(self):
        self.now = 0.0
        self.timers = []
        self.tasks = []

    def call_later(self, secs, callback):
        timer = types.SimpleNamespace(when=self.now + secs, callback=callback)
        timer.cancel = lambda: timer in self.timers and self.timers.remove(timer)
        self.timers.append(timer)
        return timer

    def time(self):
        return self.now

    def advance(self, secs):
        end = self.now + secs
        while due := [timer for timer in self.timers if timer.when <= end]:
            timer = min(due, key=lambda timer: timer.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when)
            timer.callback()
        self.now = end

    def create_task(self, coroutine):
        self.tasks.append(coroutine)
        self.run(coroutine)
        return Task()

    def run(self, *tasks):
        for task in tasks or list(self.tasks):
            try:
                task.send(None)
            except StopIteration:
                self.tasks.remove(task)


class Transport:
    """Collects what is written; `unread` is the number of bytes that the client has not read."""

    def __init__(self):
        self.written, self.unread, self.end = b"", 0, None
        self._socket = types.SimpleNamespace(
            getpeername=lambda: ("127.0.0.1", 1), getsockname=lambda: ("127.0.0.1", 2)
        )

    def get_extra_info(self, name):
        return self._socket if name == "socket" else None

    def write(self, data):
        self.written += data

    def close(self):
        self.end = self.end or "closed"

    def abort(self):
        self.end = "aborted"

    def is_closing(self):
        return self.end is not None

    def get_write_buffer_size(self):
        return self.unread

    def pause_reading(self):
        pass

    resume_reading = pause_reading


class Server:
    """Opens connections to an application that answers at once; with `is_slow`, at the next `loop.run()`."""

    def __init__(self, limits=LIMITS):
        self.loop, self.metrics, self.is_slow = Loop(), ServerMetrics(), False
        connections = Connections(limits, 30.0, self.metrics)
        config = uvicorn.Config(
            self.answer,
            http=connections.protocol,
            interface="asgi3",
            log_config=None,
            timeout_keep_alive=1_000,
        )
        config.load()
        self.make = lambda: connections.protocol(
            config=config, server_state=state, app_state={}, _loop=self.loop
        )
        state = ServerState()

    async def answer(self, scope, receive, send):
        if self.is_slow:
            await Pause()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    def connect(self):
        protocol = self.make()
        transport = Transport()
        protocol.connection_made(transport)
        transport.send = protocol.data_received
        return transport


@pytest.fixture
def server():
    return Server()


def statuses(transport):
    lines = transport.written.split(b"HTTP/1.1 ")[1:]
    return [int(line[:3]) for line in lines]


@pytest.mark.parametrize("piece", [1, 70, 10_000])
@pytest.mark.parametrize(
    ("start", "more", "status"),
    [
        (b"GET / HTTP/1.1\r\nA: ", b"a", [431]),
        (b"GET /", b"a", [431]),
        (b"GET / HTTP/1.1\r\n", b"A: b\r\n", [431]),
        (CHUNKED + b"A: ", b"a", [431]),
        (CHUNKED, b"A: b\r\n", [431]),
        (b"", b"\r\n", []),
    ],
)
def test_headers_without_an_end_are_refused(server, start, more, status, piece):
    server.is_slow = True  # chunks are for an application that reads them
    connection = server.connect()
    sent = (start + more * 400)[: len(start) + 400]
    for position in range(0, len(sent), piece):
        if connection.end is None:
            connection.send(sent[position : position + piece])
    assert (statuses(connection), connection.end) == (status, "closed")
    refused = f'requests_total{{kind="other",status="431"}} {float(len(status))}'
    assert (refused in server.metrics.text().decode()) == bool(status)


def test_headers_up_to_the_limit_are_accepted_whatever_the_body_has(server):
    head = b"POST / HTTP/1.1\r\nContent-Length: 1000\r\nA: "
    full = head + b"a" * (LIMITS.max_header_bytes - len(head) - 4) + b"\r\n\r\n"
    connection = server.connect()
    for _ in range(3):
        connection.send(full + b"b" * 500)
        connection.send(b"b" * 500)
    assert (statuses(connection), connection.end) == ([200] * 3, None)
    connection.send(full.replace(b"A: ", b"A:  "))
    assert (statuses(connection), connection.end) == ([200] * 3 + [431], "closed")


def test_headers_have_a_time_limit_that_more_bytes_do_not_extend_and_silence_another(server):
    connection = server.connect()
    connection.send(GET[:5])
    server.loop.advance(6)
    connection.send(GET[5:9])
    server.loop.advance(3)
    assert connection.end is None
    server.loop.advance(1)
    assert (statuses(connection), connection.end) == ([408], "closed")
    connection = server.connect()
    server.loop.advance(LIMITS.header_secs)
    assert (connection.written, connection.end) == (b"", "closed")


def test_a_connection_stays_open_between_requests_for_some_time(server):
    connection = server.connect()
    for _ in range(3):
        connection.send(GET)
        server.loop.advance(LIMITS.idle_secs - 1)
    connection.send(b"\r\n")  # which may stand between two requests, and is no part of one
    assert (statuses(connection), connection.end) == ([200] * 3, None)
    server.loop.advance(1)
    assert (statuses(connection), connection.end) == ([200] * 3, "closed")


def test_a_body_after_the_answer_has_a_time_limit_and_leads_to_the_next_request(server):
    connection = server.connect()
    connection.send(POST)
    for _ in range(9):
        server.loop.advance(1)
        connection.send(b"b")
    assert connection.end is None
    server.loop.advance(1)
    assert (statuses(connection), connection.end) == ([200], "closed")
    connection = server.connect()
    connection.send(POST)
    connection.send(b"b" * 1_000)
    server.loop.advance(LIMITS.header_secs + 1)
    connection.send(GET)
    assert (statuses(connection), connection.end) == ([200, 200], None)


def test_a_client_that_does_not_read_is_cut_off(server):
    connection = server.connect()
    connection.send(GET)
    connection.unread = 1
    server.loop.advance(LIMITS.idle_secs)
    assert connection.end == "aborted"  # `close` would wait until it reads


def test_one_connection_more_than_allowed_closes_the_one_that_has_waited_longest(server):
    server.is_slow = True
    busy, idle, begun = (server.connect() for _ in range(3))
    busy.send(GET)
    begun.send(GET[:5])
    idle.send(GET)
    server.loop.run()  # `busy` and `idle` are answered; `begun` waits for longest now
    busy.send(GET)
    fourth = server.connect()
    assert (statuses(begun), begun.end) == ([408], "closed")
    assert [one.end for one in (busy, idle, fourth)] == [None] * 3


@pytest.mark.parametrize("rest", [b"G", POST, POST + b"b"])
def test_the_beginning_of_another_request_does_not_keep_a_connection_open(server, rest):
    server.is_slow = True
    first, second, third = (server.connect() for _ in range(3))
    for connection in (first, second, third):
        connection.send(GET + rest)
    server.loop.run()
    assert [statuses(connection)[:1] for connection in (first, second, third)] == [[200]] * 3
    fourth = server.connect()
    assert (statuses(first), first.end) == ([200, 408], "closed")
    assert [connection.end for connection in (second, third, fourth)] == [None] * 3
    server.loop.run()


def test_a_connection_is_refused_if_none_waits_for_its_client(server):
    server.is_slow = True
    connections = [server.connect() for _ in range(3)]
    for connection in connections:
        connection.send(GET)
    refused = server.connect()
    assert (statuses(refused), refused.end) == ([503], "closed")
    assert b"\r\nRetry-After: 1\r\n" in refused.written
    server.loop.run()
    assert [statuses(connection) for connection in connections] == [[200]] * 3


def test_a_connection_may_not_send_requests_without_end_before_their_answers(server):
    server.is_slow = True
    connection = server.connect()
    connection.send(GET * 16)
    assert connection.end is None
    connection.send(GET * 100)
    assert (statuses(connection), connection.end) == ([429], "closed")
    assert len(server.loop.tasks) == 1
