"""The routes of the server, its limits, and its token."""

import asyncio
import contextlib
import functools
import gzip
import hmac
import io
import json
import logging
import re
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from pipelines.serving.model import Model
from pipelines.serving.server import open_inference, tf_serving
from pipelines.serving.server.batching import Batcher
from pipelines.serving.server.metrics import CONTENT_TYPE, ServerMetrics
from pipelines.serving.server.openapi import openapi_document
from pipelines.serving.server.request import LARGE_BYTES, HeldBytes, PreparedRequest, RequestError, check_json
from pipelines.serving.server.request_monitor import RequestMonitor
from pipelines.serving.server.server_settings import ServerSettings
from pipelines.serving.server.versions import ServedVersions

_LOGGER = logging.getLogger(__name__)

_V1 = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>\d{1,18})|/labels/(?P<label>[^/:]+))?"
    r"(?P<verb>:predict|:classify|:regress|/metadata)?"
)
_V2 = re.compile(r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>\d{1,18}))?(?P<verb>/ready|/infer)?")
_VERBS = {":predict": tf_serving.predict, ":classify": tf_serving.classify, ":regress": tf_serving.regress}
_WITHOUT_TOKEN = ("/v2/health/live", "/v2/health/ready")
_MAX_HELD_BODIES = 4  # number of the largest bodies in memory at a time; there may be more of smaller bodies
_LARGE_REQUESTS = 2  # that are read at a time: each needs many times the memory of its body


def make_app(
    versions: ServedVersions,
    metrics: ServerMetrics,
    settings: ServerSettings,
    monitor: RequestMonitor | None = None,
) -> Starlette:
    """Returns the ASGI application of a server."""
    server = _Server(versions, metrics, settings, monitor)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        readers = ThreadPoolExecutor(_LARGE_REQUESTS, thread_name_prefix="large")
        asyncio.get_running_loop().set_default_executor(readers)  # of asyncio.to_thread
        grpc = await server.start_grpc()
        tasks = [asyncio.create_task(server.watch_versions())]
        if monitor is not None:
            tasks.append(asyncio.create_task(server.watch_requests()))
        try:
            yield
        finally:
            if grpc is not None:
                await grpc.stop(settings.batches.timeout_secs)
            for task in tasks:
                task.cancel()
            await server.update_monitor()

    return Starlette(
        routes=[
            Route("/v1/{rest:path}", server.answered(server.v1), methods=["GET", "POST"]),
            Route("/v2/{rest:path}", server.answered(server.v2), methods=["GET", "POST"]),
            Route("/v2", server.answered(server.v2)),
            Route("/metrics", server.answered(server.metrics_page)),
            Route("/openapi.json", server.answered(server.openapi)),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error},
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "There is no such page." if error.status_code == 404 else error.detail
    return _json({"error": message}, error.status_code, dict(error.headers or {}))


class _Server:
    def __init__(
        self,
        versions: ServedVersions,
        metrics: ServerMetrics,
        settings: ServerSettings,
        monitor: RequestMonitor | None,
    ):
        self._versions = versions
        self._monitor = monitor
        self._metrics = metrics
        self._settings = settings
        self._batcher = Batcher(settings.batches, metrics)
        self._held = HeldBytes(_MAX_HELD_BODIES * settings.max_body_bytes, LARGE_BYTES)
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="loader")

    async def start_grpc(self) -> Any:
        """Returns a gRPC server that has been started; None without an address for it."""
        settings = self._settings
        if settings.grpc_address is None:
            return None
        from pipelines.serving.server.prediction_service import CallCheck, PredictionService, start_grpc

        service = PredictionService(self._versions, self._batcher, self._metrics, self._held, settings)
        return await start_grpc(service, CallCheck(settings, self._metrics), settings)

    async def watch_versions(self) -> None:
        """Looks for versions that were pushed or withdrawn, until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._settings.poll_secs)
            try:
                await loop.run_in_executor(self._loader, self._versions.refresh)
            except Exception:  # of any kind: the loaded versions keep serving
                _LOGGER.exception("the versions cannot be listed")

    async def watch_requests(self) -> None:
        """Writes and compares the sampled requests, until it is cancelled."""
        while True:
            await asyncio.sleep(self._settings.monitor_secs)
            await self.update_monitor()

    async def update_monitor(self) -> None:
        """Writes and compares the sampled requests, if they are sampled."""
        if self._monitor is not None:
            try:
                model = self._versions.find(self._versions.name).model
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._loader, self._monitor.update, model)
            except Exception:  # of any kind: the server keeps running
                _LOGGER.exception("the requests cannot be compared with the training data")

    def answered(
        self, handle: Callable[[Request], Awaitable[Any]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Returns an endpoint that answers errors, too, and counts requests by their kind."""

        async def endpoint(request: Request) -> Response:
            start = time.perf_counter()
            request.state.kind = "other"
            try:
                self._check_token(request)
                answer = await handle(request)
                response = answer if isinstance(answer, Response) else _json(answer)
            except RequestError as error:
                response = _json({"error": error.message}, error.status, error.headers)
            except RecursionError:
                response = _json({"error": "The body is nested too deeply."}, 400)
            except Exception:
                _LOGGER.exception("%s %s failed", request.method, request.url.path)
                response = _json({"error": "The server has failed; see its log."}, 500)
            self._metrics.add_request(request.state.kind, response.status_code, time.perf_counter() - start)
            return response

        return endpoint

    async def v1(self, request: Request) -> Any:
        """Answers TensorFlow Serving's REST API."""
        path = request.scope["path"]
        if path.rstrip("/") == "/v1/models":
            return self._models(request)
        match = _V1.fullmatch(path)
        if match is None:
            raise RequestError(400, f"Malformed request: {request.method} {path}")
        name, version, label, verb = match["name"], match["version"], match["label"], match["verb"]
        request.state.kind = verb[1:] if verb else "status"
        self._check_method(request, "POST" if verb in _VERBS else "GET")
        if verb is None:
            return tf_serving.status(self._versions, name, version, label)
        if verb == "/metadata":
            return tf_serving.metadata(self._versions, name, version, label)
        return await self._predicted(request, _VERBS[verb], name, version, label)

    async def v2(self, request: Request) -> Any:
        """Answers the Open Inference Protocol."""
        path = request.scope["path"].rstrip("/")
        if path == "/v2/health/live":
            request.state.kind = "health"
            self._check_method(request, "GET")
            return {"live": True}
        if path == "/v2/health/ready":
            request.state.kind = "health"
            self._check_method(request, "GET")
            if not self._versions.versions():
                raise RequestError(503, "No version is loaded.")
            return {"ready": True}
        if path == "/v2":
            request.state.kind = "metadata"
            self._check_method(request, "GET")
            return open_inference.server_metadata()
        if path == "/v2/models":
            return self._models(request)
        if path == "/v2/repository/index":
            request.state.kind = "metadata"
            self._check_method(request, "POST")
            return open_inference.repository_index(self._versions)
        match = _V2.fullmatch(path)
        if match is None:
            raise RequestError(404, f"There is no such page: {path}")
        name, version, verb = match["name"], match["version"], match["verb"]
        request.state.kind = {"/infer": "infer", "/ready": "health"}.get(verb, "metadata")
        self._check_method(request, "POST" if verb == "/infer" else "GET")
        if verb == "/infer":
            prepare = functools.partial(open_inference.infer, name=name)
            return await self._predicted(request, prepare, name, version)
        if verb == "/ready":
            self._versions.find(name, version)
            return {"name": name, "ready": True}
        return open_inference.model_metadata(self._versions, name, version)

    def _models(self, request: Request) -> Any:
        """Returns the names of the models, as KServe's servers do; TensorFlow Serving has no such list."""
        request.state.kind = "metadata"
        self._check_method(request, "GET")
        return {"models": [self._versions.name]}

    async def _predicted(
        self,
        request: Request,
        prepare: Callable[[Model, Any], PreparedRequest],
        name: str,
        version: str | None,
        label: str | None = None,
    ) -> Response:
        timeout_secs = self._settings.batches.timeout_secs
        has_arrived = False
        try:
            async with asyncio.timeout(timeout_secs):
                with self._held.request() as hold:
                    body = await self._body(request, hold)
                    has_arrived = True
                    model = self._versions.find(name, version, label).model
                    return await self._answer(model, body, prepare)
        except TimeoutError as error:
            if not has_arrived:
                raise RequestError(408, "The body did not arrive in time.") from error
            raise RequestError(504, f"There is no prediction after {timeout_secs:g} s.") from error

    async def _answer(
        self, model: Model, body: bytes, prepare: Callable[[Model, Any], PreparedRequest]
    ) -> Response:
        settings = self._settings

        def prepared() -> PreparedRequest:
            if not body.strip():
                raise RequestError(400, "The body is empty. Send a JSON object.")
            try:
                content = json.loads(body)
            except (ValueError, UnicodeError) as error:
                raise RequestError(400, f"The body is not JSON: {error}") from error
            check_json(content, settings.batches.max_rows, settings.max_body_bytes)
            return prepare(model, content)

        # A large body in a thread: it would keep all others waiting.
        call = _in_thread if len(body) > LARGE_BYTES else _at_once
        request = await call(prepared)
        inputs = request.inputs
        outputs = await self._batcher.run(model, request.signature, inputs.tensors, inputs.num_rows)

        def answer() -> Response:
            if self._monitor is not None and inputs.cells is not None:
                self._monitor.add(model, inputs.cells, inputs.num_rows)
            return _json(request.answer(outputs))

        return await call(answer)

    async def metrics_page(self, request: Request) -> Response:
        request.state.kind = "metrics"
        return Response(self._metrics.text(), media_type=CONTENT_TYPE)

    async def openapi(self, request: Request) -> Any:
        request.state.kind = "openapi"
        model = self._versions.find(self._versions.name).model
        has_token = self._settings.token is not None
        return openapi_document(self._versions.name, model, has_token)

    def _check_token(self, request: Request) -> None:
        token = self._settings.token
        if token is None or request.scope["path"] in _WITHOUT_TOKEN:
            return
        authorization = request.headers.get("authorization", "")
        if not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise RequestError(
                401,
                "The request needs the server's token, in the header Authorization: Bearer TOKEN.",
                {"WWW-Authenticate": "Bearer"},
            )

    @staticmethod
    def _check_method(request: Request, method: str) -> None:
        if request.method != method and (request.method, method) != ("HEAD", "GET"):
            raise RequestError(405, f"{request.url.path} is for {method} requests.", {"Allow": method})

    async def _body(self, request: Request, hold: Callable[[int], None]) -> bytes:
        """Returns the body of a request, within the limits of its size."""
        encoding = request.headers.get("content-encoding", "identity").lower()
        if encoding not in ("identity", "gzip"):
            raise RequestError(415, f"Content-Encoding: {encoding} is not supported; gzip is.")
        if "inference-header-content-length" in request.headers:
            raise RequestError(415, "Send the tensors as JSON: binary data is not supported.")
        limit = self._settings.max_body_bytes
        too_large = RequestError(413, f"The body has more than {limit} bytes.")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large
        chunks = []
        size = 0
        try:
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise too_large
                hold(len(chunk))
                chunks.append(chunk)
        except ClientDisconnect as error:
            # Nobody reads the answer, and it is not a failure of the server.
            raise RequestError(400, "The client disconnected before the body was complete.") from error
        body = b"".join(chunks)
        if encoding == "gzip":
            body = await _in_thread(lambda: _unzipped(body, limit))
            hold(len(body))
        return body


_Value = TypeVar("_Value")


async def _at_once(function: Callable[[], _Value]) -> _Value:
    return function()


async def _in_thread(function: Callable[[], _Value]) -> _Value:
    return await asyncio.to_thread(function)


def _unzipped(body: bytes, limit: int) -> bytes:
    """Returns the content of a gzipped body, of which no more than the limit is unpacked."""
    try:
        with gzip.open(io.BytesIO(body)) as stream:  # of one part or several
            content = stream.read(limit + 1)
    except EOFError as error:
        raise RequestError(400, "The gzip data are truncated.") from error
    except (OSError, zlib.error) as error:
        raise RequestError(400, f"The body is not valid gzip: {error}") from error
    if len(content) > limit:
        raise RequestError(413, f"The body has more than {limit} bytes.")
    return content


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(value), status, headers, "application/json")
