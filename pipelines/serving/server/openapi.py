"""The OpenAPI document of a server: `openapi.yaml`, with the name and the columns of its model."""

import functools
import json
from pathlib import Path
from typing import Any

import yaml

from pipelines.serving.model import Model
from pipelines.serving.server.open_inference import server_metadata

_TYPES = {"INT": "integer", "FLOAT": "number", "BYTES": "string"}


def openapi_document(name: str, model: Model, has_token: bool) -> dict[str, Any]:
    text = _template().replace("{NAME}", json.dumps(name)[1:-1])
    document: dict[str, Any] = json.loads(text.replace("{VERSION}", str(model.version)))
    document["info"]["x-server"] = server_metadata()["version"]
    schemas, paths = document["components"]["schemas"], document["paths"]
    signature = model.main_signature
    columns = signature.columns.values()
    schemas["Row"]["properties"] = {
        column.name: {"type": [_TYPES[column.type], "null"]} for column in columns
    }
    schemas["Row"]["required"] = [column.name for column in columns if column.is_required]
    schemas["Tensor"]["properties"]["name"]["enum"] = list(signature.columns or signature.inputs)
    schemas["Signature"]["enum"] = list(model.signatures)
    methods = {signature.method for signature in model.signatures.values() if signature.takes_examples}
    for method in {"classify", "regress"} - methods:
        del paths[f"/v1/models/{name}:{method}"]
    if has_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


@functools.cache
def _template() -> str:
    """Returns the file as JSON: parsing YAML would keep the requests of a server waiting each time."""
    file = Path(__file__).with_suffix(".yaml")
    return json.dumps(yaml.safe_load(file.read_text(encoding="utf-8")))
