"""The Open Inference Protocol, version 2, over REST.

Source: the protocol's specification. The inputs are the columns of the CSV, the outputs are plain columns:
class and probability, or value. An absent column and a `null` are missing values.
"""

from importlib import metadata as packages
from typing import Any

import numpy as np

from pipelines.errors import BadInputError, counted, shown
from pipelines.serving.model import Model, plain_columns
from pipelines.serving.server.json_tensors import as_json, json_object, to_json, with_bytes
from pipelines.serving.server.request import PreparedRequest, RequestError, Tensors, inputs_of_rows
from pipelines.serving.server.versions import ServedVersions

_OF_COLUMNS = {"INT": "INT64", "FLOAT": "FP32", "BYTES": "BYTES"}
_DATATYPES = {
    "BOOL", "BYTES", "FP16", "FP32", "FP64", "INT8", "INT16", "INT32", "INT64",
    "UINT8", "UINT16", "UINT32", "UINT64",
}  # fmt: skip
_PACKAGE = "estimator-pipelines"


def server_metadata() -> Any:
    try:
        version = packages.version(_PACKAGE)
    except packages.PackageNotFoundError:  # a checkout that was not installed
        version = "unknown"
    return {"name": _PACKAGE, "version": version, "extensions": []}


def model_metadata(versions: ServedVersions, name: str, version: str | None) -> Any:
    """Returns the inputs and outputs of a model."""
    loaded = versions.find(name, version)
    return {
        "name": name,
        "versions": [str(number) for number in versions.versions()],
        "platform": "tensorflow_savedmodel",
        "inputs": [
            {"name": column.name, "datatype": _OF_COLUMNS[column.type], "shape": [-1]}
            for column in loaded.model.columns.values()
        ],
        "outputs": [
            {"name": column, "datatype": _datatype(dtype), "shape": [-1]}
            for column, dtype in loaded.predictions.items()
        ],
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
    columns: dict[str, Any] = {}
    for tensor in inputs:
        column, values = _column(tensor)
        if column in columns:
            raise RequestError(400, f"The input {shown(repr(column))} is given twice.")
        columns[column] = values
    try:
        signature = model.signature_for_rows()
    except BadInputError as error:
        raise RequestError(400, str(error)) from error
    rows = inputs_of_rows(columns, signature)

    def answer(outputs: Tensors) -> Any:
        predictions = plain_columns(outputs, signature.method)
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


def _column(tensor: Any) -> tuple[str, list[Any]]:
    """Returns the name and the values of a tensor of shape [rows] or [rows, 1]."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
        raise RequestError(400, f"An input must be an object with a name. Received: {as_json(tensor)}")
    name, shape = tensor["name"], tensor.get("shape")
    if not isinstance(tensor.get("datatype"), str) or tensor["datatype"] not in _DATATYPES:
        raise RequestError(
            400,
            f"The input {name!r} needs a datatype: {', '.join(sorted(_DATATYPES))}. Received: "
            f"{as_json(tensor.get('datatype'))}",
        )
    if not isinstance(shape, list) or not _is_column(shape):
        raise RequestError(
            400,
            f"The input {name!r} must have the shape [rows] or [rows, 1]. Received: {as_json(shape)}",
        )
    data = tensor.get("data")
    if not isinstance(data, list):
        raise RequestError(400, f'The input {name!r} needs its values in "data". Received: {as_json(data)}')
    values = data
    if len(shape) == 2:
        values = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in data]
    if len(values) != shape[0]:
        raise RequestError(
            400, f"The input {name!r} has the shape {shape}, but {counted(len(values), 'value')}."
        )
    return name, with_bytes(values)


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
    kind = {"f": "FP", "i": "INT", "u": "UINT", "b": "BOOL"}[dtype.kind]
    return kind if kind == "BOOL" else f"{kind}{np.dtype(dtype).itemsize * 8}"
