"""JSON values as tensors, and tensors as JSON values."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pipelines.errors import shown
from pipelines.serving.saved_model import Tensor
from pipelines.serving.server.request import RequestError

BASE64 = "b64"


def is_base64(value: Any) -> bool:
    """Returns whether a JSON value stands for bytes: `{"b64": "..."}`."""
    return isinstance(value, dict) and list(value) == [BASE64]


def with_bytes(value: Any) -> Any:
    """Returns a JSON value with bytes in place of `{"b64": "..."}`, also in lists."""
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    if not is_base64(value):
        return value
    try:
        return base64.b64decode(value[BASE64], validate=True)
    except (binascii.Error, ValueError, TypeError) as error:
        raise RequestError(
            400, f'"b64" needs a text in base64. Received: {as_json(value[BASE64])}'
        ) from error


def as_json(value: Any) -> str:
    """Returns a JSON value as it stands in a request, shortened for a message."""
    return shown(json.dumps(value, ensure_ascii=False, default=repr))


def to_tensor(value: Any, tensor: Tensor) -> Any:
    """Returns a JSON value as a NumPy array for an input."""
    dtype = tensor.dtype
    try:
        array = _strings(with_bytes(value)) if dtype.name == "string" else np.array(value)
    except (ValueError, OverflowError) as error:
        raise _unfit(value, tensor, str(error)) from error
    kinds = {"string": "O", "bool": "b"}.get(dtype.name, "iuf" if dtype.is_floating else "iu")
    if array.size and array.dtype.kind not in kinds:
        raise _unfit(value, tensor)
    if dtype.name != "string":
        limits = np.iinfo(dtype.as_numpy_dtype) if dtype.is_integer else None
        if limits and array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            raise _unfit(value, tensor, "a number is too large")
        with np.errstate(over="ignore"):
            array = array.astype(dtype.as_numpy_dtype)
    if not tensor.takes(array.shape):
        raise _unfit(value, tensor, f"its shape is {list(array.shape)}")
    return array


def to_json(values: Any, name: str) -> Any:
    """Returns a tensor as nested lists.

    Bytes of an output whose name ends with `_bytes`, or that are not UTF-8, are `{"b64": "..."}`.
    """
    if values.dtype == object:
        is_bytes = name.endswith("_bytes")
        flat = [_text(value, is_bytes) for value in values.ravel()]
        return _nested(flat, values.shape)
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        # With as many digits as the type has, not with those of its double.
        return values.astype(str).astype(np.float64).tolist()
    return values.tolist()


def _strings(value: Any) -> Any:
    """Returns nested lists of text as an array of bytes; an element of another type stays as it is."""
    shape = []
    level = value  # its first items give the shape, and _flatten checks all others
    while isinstance(level, list):
        shape.append(len(level))
        if not level:
            break
        level = level[0]
    flat: list[Any] = []
    _flatten(value, shape, flat)
    array: Any = np.empty(len(flat), object)
    for index, item in enumerate(flat):
        if not isinstance(item, str | bytes):
            raise ValueError(f"{as_json(item)} is not text")
        array[index] = item.encode() if isinstance(item, str) else item
    return array.reshape(shape)


def _flatten(value: Any, shape: list[int], flat: list[Any]) -> None:
    if not shape:
        if isinstance(value, list):
            raise ValueError("the lists differ in their depth")
        flat.append(value)
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        raise ValueError("the lists differ in their length or depth")
    for item in value:
        _flatten(item, shape[1:], flat)


def _text(value: Any, is_bytes: bool) -> Any:
    data = value.encode() if isinstance(value, str) else bytes(value)
    if not is_bytes:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return {BASE64: base64.b64encode(data).decode()}


def _nested(flat: list[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [_nested(flat[index * step : (index + 1) * step], shape[1:]) for index in range(shape[0])]


def _unfit(value: Any, tensor: Tensor, reason: str = "") -> RequestError:
    sizes = ["any" if size is None else size for size in tensor.shape or ()]
    shape = "any shape" if tensor.shape is None else f"shape {sizes}"
    return RequestError(
        400,
        f"The input {tensor.name!r} takes {tensor.dtype.name} of {shape}. Received: {as_json(value)}"
        + (f" ({reason})" if reason else ""),
    )


def json_object(body: Any) -> Mapping[str, Any]:
    """Returns the body of a request, which is a JSON object."""
    if not isinstance(body, dict):
        raise RequestError(400, f"The body is not a JSON object. Received: {as_json(body)}")
    return body
