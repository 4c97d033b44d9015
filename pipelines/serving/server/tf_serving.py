"""TensorFlow Serving's REST API: status, metadata, classify, regress and predict.

Source: TensorFlow Serving's documentation of its RESTful API. Beyond it, rows with the columns of the CSV are
taken wherever an input is serialized tf.Examples: `"instances": [{"fare": 12, "company": null}]`. Whole
numbers are taken for floats, and `null` is a missing value.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from google.protobuf import json_format

from pipelines.errors import BadInputError
from pipelines.serving.model import Model
from pipelines.serving.saved_model import Signature
from pipelines.serving.server.json_tensors import (
    as_json,
    is_base64,
    json_object,
    to_json,
    to_tensor,
    with_bytes,
)
from pipelines.serving.server.request import Inputs, PreparedRequest, RequestError, Tensors, inputs_of_rows
from pipelines.serving.server.versions import ServedVersions

DEFAULT_SIGNATURE = "serving_default"
"""Signature of a request that names none, if the model has several."""


def status(versions: ServedVersions, name: str, version: str | None, label: str | None) -> Any:
    """Returns the states of a model's versions, or of one."""
    loaded = versions.find(name, version, label)
    is_one_version = version is not None or label is not None
    failures = versions.failures()
    numbers = [loaded.model.version] if is_one_version else versions.versions()
    # A loaded version has an error if its files have changed since, and cannot be loaded now.
    states = [_state(number, "AVAILABLE", "OK", failures.pop(number, "")) for number in numbers]
    if not is_one_version:
        states += [_state(number, "END", "UNKNOWN", error) for number, error in failures.items()]
    return {"model_version_status": states}


def metadata(versions: ServedVersions, name: str, version: str | None, label: str | None) -> Any:
    model = versions.find(name, version, label).model
    signatures = {
        key: json_format.MessageToDict(
            signature.proto, always_print_fields_with_no_presence=True, preserving_proto_field_name=True
        )
        for key, signature in model.signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(model.version)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def classify(model: Model, body: Any) -> PreparedRequest:
    """Returns a request for the classes of examples with their scores."""
    return _examples_request(model, body, "classify")


def regress(model: Model, body: Any) -> PreparedRequest:
    """Returns a request for the values of examples."""
    return _examples_request(model, body, "regress")


def predict(model: Model, body: Any) -> PreparedRequest:
    """Returns a request for the outputs of a signature, row by row for `instances`, or by output."""
    fields = json_object(body)
    signature = _signature(model, fields)
    if ("instances" in fields) == ("inputs" in fields):
        raise RequestError(400, 'The body needs one of "instances" and "inputs".')
    if "inputs" in fields:
        return PreparedRequest(signature, _from_inputs(fields["inputs"], signature), _by_output)
    inputs = _from_instances(fields["instances"], signature)
    return PreparedRequest(signature, inputs, lambda outputs: _by_row(outputs, inputs.num_rows))


def labels_and_scores(outputs: Tensors) -> tuple[Any, Any]:
    """Returns the outputs of a classifier, either of which may be missing, as `[rows, classes]` each."""
    labels, scores = outputs.get("classes"), outputs.get("scores")
    if labels is None:
        labels = np.full(np.shape(scores), b"", object)
    return labels, np.zeros(labels.shape, np.float32) if scores is None else scores


def _results_of_classes(outputs: Tensors) -> Any:
    labels, scores = labels_and_scores(outputs)
    rows = zip(to_json(labels, "classes"), to_json(scores, "scores"), strict=True)
    return {"results": [list(map(list, zip(*row, strict=True))) for row in rows]}


def _results_of_values(outputs: Tensors) -> Any:
    return {"results": to_json(outputs["outputs"].reshape(-1), "outputs")}


def _by_output(outputs: Tensors) -> Any:
    columns = {name: to_json(values, name) for name, values in outputs.items()}
    return {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}


def _by_row(outputs: Tensors, num_rows: int) -> Any:
    for name, values in outputs.items():
        if values.shape[:1] != (num_rows,):
            raise RequestError(400, f'The output {name!r} has no row for each instance. Use "inputs".')
    lists = {name: to_json(values, name) for name, values in outputs.items()}
    if len(lists) == 1:
        return {"predictions": next(iter(lists.values()))}
    rows = zip(*lists.values(), strict=True)
    return {"predictions": [dict(zip(lists, row, strict=True)) for row in rows]}


def _state(version: int, state: str, code: str, message: str) -> dict[str, Any]:
    return {"version": str(version), "state": state, "status": {"error_code": code, "error_message": message}}


def default_signature(model: Model) -> str:
    """Returns the signature of a request that names none: `serving_default`, or the only one."""
    return next(iter(model.signatures)) if len(model.signatures) == 1 else DEFAULT_SIGNATURE


def _signature(model: Model, fields: Mapping[str, Any]) -> Signature:
    name = fields.get("signature_name")
    try:
        return model.signature(str(name or default_signature(model)))
    except BadInputError as error:
        advice = "" if name else ' Name one with "signature_name" in the body.'
        raise RequestError(400, f"{error}{advice}") from error


def _examples_request(model: Model, body: Any, method: str) -> PreparedRequest:
    fields = json_object(body)
    signature = _signature(model, fields)
    if signature.method != method or not signature.takes_examples:
        raise RequestError(400, _other_method(model, signature, method))
    if "examples" not in fields:
        raise RequestError(400, 'The body needs "examples", a list of objects with the columns of the CSV.')
    examples, context = fields["examples"], fields.get("context", {})
    if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
        raise RequestError(400, f'"examples" must be a list of objects. Received: {as_json(examples)}')
    if not isinstance(context, dict):
        raise RequestError(400, f'"context" must be an object. Received: {as_json(context)}')
    for example in examples:
        if both := sorted(context.keys() & example.keys()):
            raise RequestError(400, f"{both[0]!r} is in the context and in an example.")
    rows = [_decoded({**context, **example}) for example in examples]
    inputs = inputs_of_rows(rows, signature)
    answer = _results_of_classes if method == "classify" else _results_of_values
    return PreparedRequest(signature, inputs, answer)


def _other_method(model: Model, signature: Signature, method: str) -> str:
    """Returns the message for a method that a signature does not have, with what to ask instead."""
    if signature.method == method:
        return (
            f"The signature {signature.name!r} takes tensors, not tf.Examples: ask :predict with "
            f'"signature_name": "{signature.name}" in the body.'
        )
    message = f"The signature {signature.name!r} is for {signature.method!r}, not for {method!r}."
    fitting = [
        candidate.name
        for candidate in model.signatures.values()
        if candidate.method == method and candidate.takes_examples
    ]
    if fitting:
        return f'{message} Put "signature_name": "{fitting[0]}" into the body, or ask :{signature.method}.'
    return f"{message} The model has no signature for {method!r}: ask :{signature.method}."


def _from_instances(instances: Any, signature: Signature) -> Inputs:
    if not isinstance(instances, list) or not instances:
        raise RequestError(
            400, f'"instances" must be a list with at least one row. Received: {as_json(instances)}'
        )
    names = list(signature.inputs)
    if len(names) == 1:
        (name,) = names
        are_named = all(isinstance(instance, dict) and list(instance) == [name] for instance in instances)
        values = [instance[name] for instance in instances] if are_named else instances
        if signature.takes_examples and not are_named:
            for index, instance in enumerate(instances):
                if not isinstance(instance, dict | str):
                    raise RequestError(
                        400,
                        f"The instance {index} is {as_json(instance)}. Give an object with the columns of "
                        'the CSV, {"COLUMN": VALUE, ...}, or a serialized tf.Example, {"b64": "..."}.',
                    )
        are_rows = bool(signature.columns) and any(  # with the columns of the CSV
            isinstance(value, dict) and not is_base64(value) for value in values
        )
        if not are_rows or (are_named and not signature.takes_examples):
            return Inputs({name: to_tensor(values, signature.inputs[name])}, len(values))
        if "b64" not in signature.columns:
            for index, value in enumerate(values):
                if is_base64(value):
                    raise RequestError(
                        400,
                        f"The instance {index} is a serialized tf.Example, and others are rows with the "
                        "CSV's columns. Send each kind in a separate request.",
                    )
    if not all(isinstance(instance, dict) for instance in instances):
        raise RequestError(
            400, f"An instance is an object with the inputs {', '.join(names)}, or with columns."
        )
    if signature.columns:
        return inputs_of_rows([_decoded(instance) for instance in instances], signature)
    for index, instance in enumerate(instances):
        if instance.keys() != set(names):
            raise RequestError(
                400,
                f"Each instance has the inputs {', '.join(names)}. Received in instance {index}: "
                f"{', '.join(instance) or 'none'}",
            )
    inputs = {
        name: to_tensor([instance[name] for instance in instances], tensor)
        for name, tensor in signature.inputs.items()
    }
    return Inputs(inputs, len(instances))


def _from_inputs(content: Any, signature: Signature) -> Inputs:
    names = list(signature.inputs)
    if len(names) == 1:
        (name,) = names
        is_named = isinstance(content, dict) and list(content) == [name] and not is_base64(content)
        value = content[name] if is_named else content
        if not isinstance(value, dict) or is_base64(value):
            array = to_tensor(value, signature.inputs[name])
            return Inputs({name: array}, len(array) if array.ndim else 1)
    if not isinstance(content, dict):
        raise RequestError(400, f'"inputs" is an object with {", ".join(names)}, or with columns.')
    if signature.columns:
        return inputs_of_rows({name: with_bytes(values) for name, values in content.items()}, signature)
    if content.keys() != set(names):
        raise RequestError(400, f'"inputs" has {", ".join(names)}. Received: {", ".join(content) or "none"}')
    inputs = {name: to_tensor(content[name], tensor) for name, tensor in signature.inputs.items()}
    first = next(iter(inputs.values()))
    return Inputs(inputs, len(first) if first.ndim else 1)


def _decoded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: with_bytes(value) for name, value in row.items()}
