"""The Open Inference Protocol, version 2, over REST.

Source: the protocol's specification, and Triton's extension for the index of the models. The inputs are the
columns of the CSV, the outputs are plain columns: class and probability, or value. An absent column and a
`null` are missing values. Inputs and outputs of a model that takes no rows are the tensors of its signature.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata as packages
from typing import Any

import numpy as np

from pipelines.errors import counted, shown
from pipelines.serving.model import Model, plain_columns
from pipelines.serving.saved_model import Signature, Tensor
from pipelines.serving.server.json_tensors import as_json, json_object, to_json, to_tensor, with_bytes
from pipelines.serving.server.request import Inputs, PreparedRequest, RequestError, Tensors, inputs_of_rows
from pipelines.serving.server.versions import ServedVersions

_OF_COLUMNS = {"INT": "INT64", "FLOAT": "FP32", "BYTES": "BYTES"}
_DATATYPES = {
    "BF16", "BOOL", "BYTES", "FP16", "FP32", "FP64", "INT8", "INT16", "INT32", "INT64",
    "UINT8", "UINT16", "UINT32", "UINT64",
}  # fmt: skip
_PACKAGE = "estimator-pipelines"


def server_metadata() -> Any:
    try:
        version = packages.version(_PACKAGE)
    except packages.PackageNotFoundError:  # a checkout that was not installed
        version = "unknown"
    return {"name": _PACKAGE, "version": version, "extensions": []}


def repository_index(versions: ServedVersions) -> Any:
    """Returns the versions that can be asked."""
    return [
        {"name": versions.name, "version": str(number), "state": "READY", "reason": ""}
        for number in versions.versions()
    ]


def model_metadata(versions: ServedVersions, name: str, version: str | None) -> Any:
    """Returns the inputs and outputs of a model."""
    loaded = versions.find(name, version)
    signature = loaded.model.main_signature
    if signature.columns:
        inputs = [_described(column.name, _OF_COLUMNS[column.type]) for column in signature.columns.values()]
        outputs = [_described(column, _datatype(dtype)) for column, dtype in loaded.predictions.items()]
    else:
        inputs, outputs = (
            [
                _described(tensor.name, _datatype(np.dtype(tensor.dtype.as_numpy_dtype)), tensor.shape)
                for tensor in side
            ]
            for side in (signature.inputs.values(), signature.outputs.values())
        )
    return {
        "name": name,
        "versions": [str(number) for number in versions.versions()],
        "platform": "tensorflow_savedmodel",
        "inputs": inputs,
        "outputs": outputs,
    }


def _described(name: str, datatype: str, shape: Sequence[int | None] | None = (None,)) -> dict[str, Any]:
    return {
        "name": name,
        "datatype": datatype,
        "shape": [-1 if size is None else size for size in shape or ()],
    }


def infer(model: Model, body: Any, name: str) -> PreparedRequest:
    """Returns a request for the predictions of rows that are given column by column."""
    fields = json_object(body)
    inputs, wanted = fields.get("inputs"), fields.get("outputs")
    if "inputs" not in fields:
        raise RequestError(400, 'The body needs "inputs", a list of tensors.')
    if not isinstance(inputs, list) or not inputs:
        raise RequestError(400, f'"inputs" must be a list of tensors. Received: {as_json(inputs)}')
    if "id" in fields and not isinstance(fields["id"], str):
        raise RequestError(400, f'"id" must be a string. Received: {as_json(fields["id"])}')
    tensors: dict[str, _Tensor] = {}
    for part in inputs:
        tensor = _tensor(part)
        if tensor.name in tensors:
            raise RequestError(400, f"The input {shown(repr(tensor.name))} is given twice.")
        tensors[tensor.name] = tensor
    signature = model.main_signature
    if signature.columns:
        rows = inputs_of_rows({key: tensor.column() for key, tensor in tensors.items()}, signature)
    else:
        rows = _inputs(tensors, signature)

    def answer(outputs: Tensors) -> Any:
        predictions = plain_columns(outputs, signature.method) if signature.columns else outputs
        names = _wanted(wanted, list(predictions)) if wanted else list(predictions)
        response: dict[str, Any] = {"model_name": name, "model_version": str(model.version)}
        if "id" in fields:
            response["id"] = fields["id"]
        response["outputs"] = [
            {
                "name": column,
                "datatype": _datatype(predictions[column].dtype),
                "shape": list(predictions[column].shape),
                "data": to_json(predictions[column], column),
            }
            for column in names
        ]
        return response

    return PreparedRequest(signature, rows, answer)


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: Any
    data: list[Any]

    def column(self) -> list[Any]:
        """Returns the values of a tensor of shape [rows] or [rows, 1]."""
        if not isinstance(self.shape, list) or not _is_column(self.shape):
            raise RequestError(
                400,
                f"The input {self.name!r} must have the shape [rows] or [rows, 1]. Received: "
                f"{as_json(self.shape)}",
            )
        values = self.data
        if len(self.shape) == 2:
            values = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in values]
        if len(values) != self.shape[0]:
            raise RequestError(
                400,
                f"The input {self.name!r} has the shape {self.shape}, but {counted(len(values), 'value')}.",
            )
        return with_bytes(values)

    def array(self, wanted: Tensor) -> Any:
        """Returns the values in the shape of the tensor, of which they may be a flat list, for an input."""
        values: Any = self.data
        if self.shape and not any(isinstance(value, list) for value in values):
            sizes = self.shape if isinstance(self.shape, list) else [self.shape]
            if not all(type(size) is int and size > 0 for size in sizes) or math.prod(sizes) != len(values):
                raise RequestError(
                    400,
                    f"The input {self.name!r} has the shape {as_json(self.shape)}, but "
                    f"{counted(len(values), 'value')}.",
                )
            flat: Any = np.empty(len(values), object)
            flat[:] = values
            values = flat.reshape(sizes).tolist()
        elif self.shape == [] and len(values) == 1:
            (values,) = values
        return to_tensor(values, wanted)


def _tensor(tensor: Any) -> _Tensor:
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise RequestError(400, f"An input must be an object with a name. Received: {as_json(tensor)}")
    name, data = tensor["name"], tensor.get("data")
    if not isinstance(tensor.get("datatype"), str) or tensor["datatype"] not in _DATATYPES:
        raise RequestError(
            400,
            f"The input {name!r} needs a datatype: {', '.join(sorted(_DATATYPES))}. Received: "
            f"{as_json(tensor.get('datatype'))}",
        )
    if not isinstance(data, list):
        raise RequestError(400, f'The input {name!r} needs its values in "data". Received: {as_json(data)}')
    return _Tensor(name, tensor.get("shape"), data)


def _inputs(tensors: Mapping[str, _Tensor], signature: Signature) -> Inputs:
    """Returns the inputs of a signature that takes tensors, not rows."""
    if tensors.keys() != signature.inputs.keys():
        raise RequestError(
            400, f"The model takes the inputs {', '.join(signature.inputs)}. Received: {', '.join(tensors)}."
        )
    arrays = {name: tensor.array(signature.inputs[name]) for name, tensor in tensors.items()}
    first = next(iter(arrays.values()))
    return Inputs(arrays, len(first) if first.ndim else 1)


def _is_column(shape: list[Any]) -> bool:
    is_one = len(shape) == 1 or (len(shape) == 2 and type(shape[1]) is int and shape[1] == 1)
    return is_one and type(shape[0]) is int and shape[0] >= 0


def _wanted(outputs: Any, existing: list[str]) -> list[str]:
    if not isinstance(outputs, list):
        raise RequestError(400, f'"outputs" must be a list of named objects. Received: {as_json(outputs)}')
    names = []
    for output in outputs:
        name = output.get("name") if isinstance(output, dict) else None
        if name not in existing:
            raise RequestError(
                400, f"There is no output {shown(repr(name))}. There are: {', '.join(existing)}."
            )
        if name in names:
            raise RequestError(400, f"The output {name!r} is requested twice. Leave one out.")
        names.append(str(name))
    return names


def _datatype(dtype: Any) -> str:
    if dtype.kind == "O":
        return "BYTES"
    kind = {"f": "FP", "i": "INT", "u": "UINT", "b": "BOOL", "V": "BF"}[dtype.kind]
    return kind if kind == "BOOL" else f"{kind}{np.dtype(dtype).itemsize * 8}"
