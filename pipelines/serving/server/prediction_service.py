"""TensorFlow Serving's `PredictionService` over gRPC: Predict, Classify, Regress and GetModelMetadata.

Source: TensorFlow Serving's protos. Tensors have the types of the signature; rows with the columns of the CSV
are for the REST interfaces.
"""

import asyncio
import hmac
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from pipelines.errors import BadInputError
from pipelines.serving.saved_model import Signature
from pipelines.serving.server.batching import Batcher
from pipelines.serving.server.metrics import ServerMetrics
from pipelines.serving.server.request import (
    LARGE_BYTES,
    HeldBytes,
    RequestError,
    Tensors,
    check_context,
    check_rows,
)
from pipelines.serving.server.server_settings import ServerSettings
from pipelines.serving.server.tf_serving import default_signature, labels_and_scores
from pipelines.serving.server.versions import LoadedVersion, ServedVersions

_LOGGER = logging.getLogger(__name__)
_SIGNATURES = "signature_def"  # the only metadata that TensorFlow Serving has
_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
_MAX_CALLS = 256  # each may be receiving a message of --max-body bytes, which gRPC keeps until it is complete
_MAX_CONNECTION_SECS = 600.0  # then a client reconnects; ends calls whose answers are not read


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers requests with the versions and the batches of a server."""

    def __init__(
        self,
        versions: ServedVersions,
        batcher: Batcher,
        metrics: ServerMetrics,
        held: HeldBytes,
        settings: ServerSettings,
    ):
        self._versions = versions
        self._batcher = batcher
        self._metrics = metrics
        self._held = held
        self._max_bytes = settings.max_body_bytes
        self._max_rows = settings.batches.max_rows
        self._timeout_secs = settings.batches.timeout_secs

    async def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._answered("grpc_predict", self._predict, request, context)

    async def Classify(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._answered("grpc_classify", self._classify, request, context)

    async def Regress(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._answered("grpc_regress", self._regress, request, context)

    async def GetModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._answered("grpc_metadata", self._metadata, request, context)

    async def MultiInference(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._answered("grpc_other", self._no_multi_inference, request, context)

    async def _answered(
        self, kind: str, handle: Callable[[Any], Awaitable[Any]], request: Any, context: Any
    ) -> Any:
        """Returns an answer, or ends the call with the code of its error; counts either."""
        start = time.perf_counter()
        status, error = 200, ""
        answer = None
        try:
            async with asyncio.timeout(self._timeout_secs):
                with self._held.request() as hold:
                    hold(request.ByteSize())
                    answer = await handle(request)
        except RequestError as failure:
            status, error = failure.status, failure.message
        except TimeoutError:
            status, error = 504, f"There is no prediction after {self._timeout_secs:g} s."
        except Exception:
            _LOGGER.exception("%s failed", kind)
            status, error = 500, "The server has failed; see its log."
        self._metrics.add_request(kind, status, time.perf_counter() - start)
        if status != 200:
            await context.abort(_CODES.get(status, grpc.StatusCode.INTERNAL), error)
        return answer

    async def _predict(self, request: Any) -> Any:
        loaded, signature = self._find(request.model_spec)
        if request.inputs.keys() != signature.inputs.keys():
            raise RequestError(
                400,
                f"The inputs of {signature.name!r} are {', '.join(signature.inputs)}. Received: "
                f"{', '.join(request.inputs) or 'none'}",
            )
        wanted = list(dict.fromkeys(request.output_filter)) or list(signature.outputs)
        if unknown := [name for name in wanted if name not in signature.outputs]:
            existing = ", ".join(signature.outputs)
            raise RequestError(400, f"There is no output {unknown[0]!r}. There are: {existing}.")
        tensors = await _by_size(
            request, lambda: _arrays(request.inputs, signature, self._max_bytes, self._max_rows)
        )
        outputs = await self._run(loaded, signature, tensors)

        def answer() -> Any:
            response = predict_pb2.PredictResponse()
            _set_spec(response.model_spec, request.model_spec, loaded, signature)
            for name in wanted:
                dtype = signature.outputs[name].dtype
                response.outputs[name].CopyFrom(tf.make_tensor_proto(outputs[name], dtype))
            return response

        return await _by_size(request, answer)

    async def _classify(self, request: Any) -> Any:
        loaded, signature, outputs = await self._run_examples(request, "classify")
        labels_by_row, scores_by_row = labels_and_scores(outputs)

        def answer() -> Any:
            response = classification_pb2.ClassificationResponse()
            _set_spec(response.model_spec, request.model_spec, loaded, signature)
            for labels, scores in zip(labels_by_row, scores_by_row, strict=True):
                classes = response.result.classifications.add().classes
                for label, score in zip(labels, scores, strict=True):
                    classes.add(label=label, score=score)
            return response

        return await _by_size(request, answer)

    async def _regress(self, request: Any) -> Any:
        loaded, signature, outputs = await self._run_examples(request, "regress")

        def answer() -> Any:
            response = regression_pb2.RegressionResponse()
            _set_spec(response.model_spec, request.model_spec, loaded, signature)
            for value in outputs["outputs"].reshape(-1):
                response.result.regressions.add(value=value)
            return response

        return await _by_size(request, answer)

    async def _metadata(self, request: Any) -> Any:
        if list(request.metadata_field) != [_SIGNATURES]:
            received = ", ".join(request.metadata_field) or "none"
            raise RequestError(400, f"The metadata field is {_SIGNATURES!r}. Received: {received}")
        loaded, _ = self._find(request.model_spec)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in loaded.model.signatures.items():
            signatures.signature_def[name].CopyFrom(signature.proto)
        answer = get_model_metadata_pb2.GetModelMetadataResponse()
        _set_spec(answer.model_spec, request.model_spec, loaded)
        answer.metadata[_SIGNATURES].Pack(signatures)
        return answer

    async def _no_multi_inference(self, request: Any) -> Any:
        raise RequestError(501, "There is no MultiInference. There are Classify and Regress.")

    async def _run_examples(
        self, request: Any, method: str
    ) -> tuple[LoadedVersion, Signature, dict[str, Any]]:
        loaded, signature = self._find(request.model_spec)
        if signature.method != method or not signature.takes_examples:
            raise RequestError(400, f"The signature {signature.name!r} is not for {method!r}.")
        kind = request.input.WhichOneof("kind")
        examples_of_input = getattr(request.input, kind) if kind else None
        if examples_of_input is None or not examples_of_input.examples:
            raise RequestError(400, "There is no example. Give one or more.")
        check_rows(len(examples_of_input.examples), self._max_rows)
        has_context = kind == "example_list_with_context"
        if has_context:
            size = examples_of_input.context.ByteSize()
            check_context(size, len(examples_of_input.examples), self._max_bytes)

        def examples() -> Any:
            if has_context:
                for example in examples_of_input.examples:
                    features = example.features.feature
                    for name, feature in examples_of_input.context.features.feature.items():
                        if name not in features:
                            features[name].CopyFrom(feature)
            return np.array([example.SerializeToString() for example in examples_of_input.examples], object)

        (name,) = signature.inputs
        tensors = {name: await _by_size(request, examples)}
        return loaded, signature, await self._run(loaded, signature, tensors)

    async def _run(self, loaded: LoadedVersion, signature: Signature, tensors: Tensors) -> dict[str, Any]:
        first = next(iter(tensors.values()))
        num_rows = len(first) if first.ndim else 1
        return await self._batcher.run(loaded.model, signature, tensors, num_rows)

    def _find(self, spec: Any) -> tuple[LoadedVersion, Signature]:
        version = str(spec.version.value) if spec.HasField("version") else None
        label = spec.version_label or None
        loaded = self._versions.find(spec.name, version, label)
        try:
            return loaded, loaded.model.signature(spec.signature_name or default_signature(loaded.model))
        except BadInputError as error:
            raise RequestError(400, str(error)) from error


class CallCheck(grpc.aio.ServerInterceptor):
    """Refuses calls without the token, before their messages are read, and those with too slow messages.

    `settings`: settings of the server. A token must come with each call, as `authorization: Bearer TOKEN`.
    """

    def __init__(self, settings: ServerSettings, metrics: ServerMetrics):
        self._wanted = None if settings.token is None else f"Bearer {settings.token}".encode()
        self._timeout_secs = settings.batches.timeout_secs
        self._metrics = metrics

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Returns the handler of a call, or one that refuses it."""
        metadata = dict(handler_call_details.invocation_metadata or ())
        authorization = str(metadata.get("authorization", "")).encode()
        if self._wanted is not None and not hmac.compare_digest(authorization, self._wanted):
            return grpc.stream_unary_rpc_method_handler(self._refuse)
        handler = await continuation(handler_call_details)
        if handler is None:  # there is no such method
            return None

        # Only the handler of a stream gets its message itself. For others, gRPC waits without a limit.
        async def answer(messages: AsyncIterator[Any], context: Any) -> Any:
            try:
                async with asyncio.timeout(self._timeout_secs):
                    message = await anext(messages)
            except TimeoutError:
                await self._abort(context, 408, "The message did not arrive in time.")
            except StopAsyncIteration:
                await self._abort(context, 400, "The call has no message.")
            return await handler.unary_unary(message, context)

        return grpc.stream_unary_rpc_method_handler(
            answer, handler.request_deserializer, handler.response_serializer
        )

    async def _refuse(self, messages: AsyncIterator[bytes], context: Any) -> None:
        await self._abort(context, 401, "The call needs metadata: authorization: Bearer TOKEN.")

    async def _abort(self, context: Any, status: int, message: str) -> None:
        self._metrics.add_request("grpc_other", status, 0.0)
        await context.abort(_CODES[status], message)


async def start_grpc(service: PredictionService, check: CallCheck, settings: ServerSettings) -> Any:
    limits = settings.connections
    header_ms, idle_ms = round(limits.header_secs * 1_000), round(limits.idle_secs * 1_000)
    options = [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", settings.max_body_bytes),
        ("grpc.max_metadata_size", limits.max_header_bytes),
        ("grpc.absolute_max_metadata_size", limits.max_header_bytes),
        ("grpc.max_allowed_incoming_connections", limits.max_connections),
        ("grpc.max_concurrent_streams", _MAX_CALLS),
        ("grpc.server_handshake_timeout_ms", header_ms),
        ("grpc.max_connection_idle_ms", idle_ms),
        ("grpc.max_connection_age_ms", round(_MAX_CONNECTION_SECS * 1_000)),
        ("grpc.max_connection_age_grace_ms", round(settings.batches.timeout_secs * 1_000)),
        ("grpc.keepalive_time_ms", idle_ms),  # asks whether the client is still there
        ("grpc.keepalive_timeout_ms", header_ms),
    ]
    server = grpc.aio.server(options=options, interceptors=[check], maximum_concurrent_rpcs=_MAX_CALLS)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(service, server)
    server.add_insecure_port(settings.grpc_address)
    await server.start()
    return server


_Value = TypeVar("_Value")


async def _by_size(request: Any, function: Callable[[], _Value]) -> _Value:
    """Returns a function's value, for a large request from a thread: it would keep all others waiting."""
    return await asyncio.to_thread(function) if request.ByteSize() > LARGE_BYTES else function()


def _arrays(protos: Mapping[str, Any], signature: Signature, max_bytes: int, max_rows: int) -> dict[str, Any]:
    """Returns tensors as NumPy arrays, once all of them are known to fit the signature and the limits."""
    total = 0
    for name, proto in protos.items():
        size = _checked_size(name, proto, signature)
        if size > max_bytes:
            shape = [dim.size for dim in proto.tensor_shape.dim]
            raise RequestError(
                413, f"The input {name!r} of shape {shape} has {size} bytes; {max_bytes} are allowed."
            )
        total += size
    if total > max_bytes:
        raise RequestError(413, f"The inputs have {total} bytes; {max_bytes} are allowed.")
    arrays = {}
    for name, proto in protos.items():
        if (signature.inputs[name].shape or (0,))[0] is None:
            check_rows(proto.tensor_shape.dim[0].size, max_rows)
        try:
            arrays[name] = tf.make_ndarray(proto)
        except (TypeError, ValueError) as error:
            raise RequestError(400, f"The input {name!r} is not a valid tensor: {error}") from error
    return arrays


def _checked_size(name: str, proto: Any, signature: Signature) -> int:
    """Returns the bytes of the tensor that a proto stands for, which fits the signature."""
    tensor = signature.inputs[name]
    actual = [dim.size for dim in proto.tensor_shape.dim]
    fits = (
        proto.dtype == tensor.dtype.as_datatype_enum
        and not proto.tensor_shape.unknown_rank
        and min(actual, default=0) >= 0
        and tensor.takes(actual)
    )
    if not fits:
        sizes = ["any" if size is None else size for size in tensor.shape or ()]
        raise RequestError(
            400,
            f"The input {name!r} takes {tensor.dtype.name} of shape {sizes}. Received: "
            f"{_type_name(proto.dtype)} of shape {actual}",
        )
    # A few bytes can stand for a tensor of any size: the last value is that of all elements that follow.
    count = math.prod(actual)
    texts = proto.string_val
    following = max(count - len(texts), 0) * len(texts[-1]) if texts else 0
    return count * np.dtype(tensor.dtype.as_numpy_dtype).itemsize + sum(map(len, texts)) + following


def _type_name(number: int) -> str:
    try:
        return str(tf.as_dtype(number).name)
    except TypeError:
        return f"type {number}"


def _set_spec(spec: Any, requested: Any, loaded: LoadedVersion, signature: Signature | None = None) -> None:
    spec.name = requested.name
    spec.version.value = loaded.model.version
    if signature is not None:
        spec.signature_name = signature.name
