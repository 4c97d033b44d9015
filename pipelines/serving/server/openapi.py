"""The OpenAPI document of a server, with the columns of its model."""

from typing import Any

from pipelines.serving.model import Model
from pipelines.serving.server.open_inference import server_metadata

_TYPES = {"INT": "integer", "FLOAT": "number", "BYTES": "string"}


def openapi_document(name: str, model: Model, has_token: bool) -> dict[str, Any]:
    """Returns the description of all paths of a server."""
    v1, v2 = f"/v1/models/{name}", f"/v2/models/{name}"
    row = {"$ref": "#/components/schemas/Row"}
    signature = {"type": "string", "enum": list(model.signatures)}
    examples = _object(
        ["examples"], examples=_list(row), signature_name=signature, context={"type": "object"}
    )
    predict = {
        "oneOf": [
            _object(["instances"], instances=_list(row), signature_name=signature),
            _object(["inputs"], inputs={}, signature_name=signature),
        ]
    }
    infer = _object(
        ["inputs"],
        id={"type": "string"},
        inputs=_list({"$ref": "#/components/schemas/Tensor"}),
        outputs={"type": "array", "items": _object(["name"], name={"type": "string"})},
    )
    paths: dict[str, Any] = {
        v1: {"get": _operation("States of the versions")},
        f"{v1}/metadata": {"get": _operation("Signatures of the model")},
        f"{v1}:predict": {"post": _operation("Outputs of a signature", predict)},
        "/v2": {"get": _operation("Name and version of the server")},
        "/v2/health/live": {"get": _operation("The server runs", is_open=True)},
        "/v2/health/ready": {"get": _operation("A model is loaded", is_open=True)},
        v2: {"get": _operation("Inputs and outputs of the model")},
        f"{v2}/ready": {"get": _operation("The model is loaded")},
        f"{v2}/infer": {"post": _operation("Predictions, column by column", infer)},
        "/metrics": {"get": _operation("Figures for Prometheus", content={"text/plain": {}})},
        "/openapi.json": {"get": _operation("This document")},
    }
    methods = {one.method for one in model.signatures.values() if one.takes_examples}
    for method, text in (("classify", "Classes and scores"), ("regress", "Values")):
        if method in methods:
            paths[f"{v1}:{method}"] = {"post": _operation(f"{text} of rows", examples)}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": f"Predictions of {name}",
            "version": str(model.version),
            "description": "TensorFlow Serving's REST API and the Open Inference Protocol, version 2. "
            f"Paths such as {v1}/versions/{model.version} name a version.",
        },
        "paths": paths,
        "components": {
            "schemas": {
                "Row": {
                    "type": "object",
                    "description": "Columns of the CSV; null is a missing value.",
                    "properties": {
                        column.name: {"type": [_TYPES[column.type], "null"]}
                        for column in model.columns.values()
                    },
                    "required": [one.name for one in model.columns.values() if one.is_required],
                },
                "Tensor": _object(
                    ["name", "shape", "datatype", "data"],
                    name={"type": "string", "enum": list(model.columns)},
                    shape={"type": "array", "items": {"type": "integer", "minimum": 0}},
                    datatype={"type": "string"},
                    data={"type": "array", "items": {}},
                ),
                "Error": _object(["error"], error={"type": "string"}),
            }
        },
    }
    document["info"]["x-server"] = server_metadata()["version"]
    if has_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def _operation(
    summary: str,
    body: Any = None,
    content: dict[str, Any] | None = None,
    is_open: bool = False,
) -> dict[str, Any]:
    error = {
        "description": "Error",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {
            "200": {
                "description": summary,
                "content": content or {"application/json": {"schema": {"type": "object"}}},
            },
            "4XX": error,
            "5XX": error,
        },
    }
    if body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": body}},
        }
    if is_open:
        operation["security"] = []
    return operation
