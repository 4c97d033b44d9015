"""Section of serving: the inputs and outputs of the model, and requests to copy."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.data.formats.cell_format import CellFormat, format_of_column
from pipelines.data.missing import is_missing
from pipelines.report import words
from pipelines.report.context import Context
from pipelines.root import Root

_METHODS = {"classify": "classify", "regress": "regress"}


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the signatures and the requests; None if no model was made."""
    details = context.details.get("signatures")
    record = context.record
    if details is None:
        if "Trainer" not in {component.name for component in record.components}:
            return None
        return {"signatures": [], "requests": [], "missing": context.missing("Trainer")}
    signatures = details["signatures"]
    example = example_row(context)
    return {
        "signatures": [
            {
                "name": signature["name"],
                "method": signature["method"] or words.NOTHING,
                "inputs": [_tensor(tensor) for tensor in signature["inputs"]],
                "outputs": [_tensor(tensor) for tensor in signature["outputs"]],
            }
            for signature in signatures
        ],
        "requests": requests(record.name, signatures, example),
        "size": words.size(details["bytes"]),
        "check": _check(context.details.get("serving_check")),
        "serve": serve_commands(record.name, context.root)
        if record.version or record.status == "unchanged"
        else None,
        "missing": None if signatures else "The model has no signatures.",
    }


def example_row(context: Context) -> dict[str, Any]:
    """Returns typical values of the columns that the model learns from: medians and frequent values."""
    record = context.record
    label = record.section("data").get("label")
    unused = {column["name"] for column in record.columns if str(column["use"]).startswith("not used")}
    statistics = context.details.get("statistics") or {"columns": []}
    formats = {column["name"]: format_of_column(column) for column in record.columns}
    row: dict[str, Any] = {}
    for column in statistics["columns"]:
        name = column["name"]
        if name == label or name in unused:
            continue
        splits: dict[str, dict[str, Any]] = column["splits"]
        values = splits.get("train") or next(iter(splits.values()), {})
        cell_format = formats.get(name)
        if values.get("median") is not None:
            is_whole = column["type"] == "whole numbers"
            row[name] = round(values["median"]) if is_whole else values["median"]
            continue
        cells = [
            cell
            for cell, _ in values.get("top", ())
            if not is_missing(cell.strip()) and (cell_format is None or cell_format.reads(cell))
        ]
        if cells:
            row[name] = _typical(cells, cell_format, values.get("parsed", {}))
    return row


def _typical(cells: Sequence[str], cell_format: CellFormat | None, parsed: Mapping[str, Any]) -> str:
    """Returns the cell whose value is nearest to the median; the first one of a column without numbers."""
    if cell_format is None or parsed.get("median") is None:
        return cells[0]
    import numpy as np
    import pyarrow as pa

    values = cell_format.parse(pa.array(cells))[parsed["quantity"]]
    distances = np.abs(values - parsed["median"])
    return cells[int(np.nanargmin(distances))] if not np.isnan(distances).all() else cells[0]


def _check(check: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the comparisons and measurements of the ServingCheck; None if it did not ask the model."""
    if not check or not check["rows"]:
        return None
    rows = []
    for name, signature in check["signatures"].items():
        latency = signature["latency_ms"] or {}
        compared = signature["compared"]
        different = [output for output in compared if output["num_different"]]
        rows.append(
            {
                "name": name,
                "rows": words.number(signature["rows"]),
                "p50": words.number(latency.get("p50"), 3),
                "p99": words.number(latency.get("p99"), 3),
                "compared": ", ".join(dict.fromkeys(output["output"] for output in compared))
                or words.NOTHING,
                "not_compared": ", ".join(signature["not_compared"]) or words.NOTHING,
                "different": "; ".join(_difference(output) for output in different) or "none",
            }
        )
    return {
        "load": words.seconds(check["load_seconds"]),
        "memory": words.size(1e6 * check["memory_mb"]) if check["memory_mb"] else words.NOTHING,
        "signatures": rows,
        "failures": check["failures"],
        "not_checked": check["not_checked"],
    }


def _difference(compared: Mapping[str, Any]) -> str:
    (worst, *_) = compared["worst"]
    return (
        f"{compared['output']} in {compared['num_different']} of {compared['num_rows']} rows"
        f"{' asked alone' if compared['one_by_one'] else ''}, such as {worst['served']} "
        f"instead of {worst['judged']}"
    )


def serve_commands(name: str, root: Root) -> str:
    """Returns the commands that serve the model: this project's, and that of TensorFlow Serving's image."""
    model = _model_name(name)
    return (
        f"estimator-pipelines serve --root {shlex.quote(str(root))}\n\n"
        "docker run --rm -p 8501:8501 \\\n"
        f"  -v {shlex.quote(str(root.serving))}:/models/{model} -e MODEL_NAME={model} tensorflow/serving"
    )


def requests(
    name: str, signatures: Sequence[Mapping[str, Any]], example: Mapping[str, Any]
) -> list[dict[str, str]]:
    """Returns requests to TensorFlow Serving's REST API, each with a `title` and a `text`."""
    requests_to_show: list[dict[str, str]] = []
    for signature in signatures:
        method = signature["method"]
        if method in _METHODS and not any(
            request["title"].startswith(method) for request in requests_to_show
        ):
            # A plain row: TensorFlow Serving converts it to a tf.Example.
            body: dict[str, Any] = {"examples": [dict(example)]}
            if signature["name"] != "serving_default":
                body = {"signature_name": signature["name"], **body}
            text = _curl(name, _METHODS[method], body)
            requests_to_show.append({"title": f"{method}: a row by its columns", "text": text})
    # A signature with a tensor for each column needs no program to ask it.
    for signature in sorted(signatures, key=lambda candidate: candidate["name"] != "serving_rows"):
        if signature["method"] == "predict":
            request = _predict_request(name, signature, example)
            if request is not None:
                requests_to_show.append(request)
                break
    return requests_to_show


def _predict_request(
    name: str, signature: Mapping[str, Any], example: Mapping[str, Any]
) -> dict[str, str] | None:
    inputs = signature["inputs"]
    label = f"predict ({signature['name']})"
    if len(inputs) == 1 and inputs[0]["type"] == "string" and len(inputs[0]["shape"] or [0]) == 1:
        values = "".join(f"    {key!r}: {value!r},\n" for key, value in example.items())
        python = (
            "import base64, json, tensorflow as tf\n\n"
            f"row = {{\n{values}}}\n"
            "feature = {}\n"
            "for name, value in row.items():\n"
            "    if isinstance(value, str):\n"
            "        feature[name] = tf.train.Feature(\n"
            "            bytes_list=tf.train.BytesList(value=[value.encode()]))\n"
            "    elif isinstance(value, int):\n"
            "        feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))\n"
            "    else:\n"
            "        feature[name] = tf.train.Feature(float_list=tf.train.FloatList(value=[value]))\n"
            "example = tf.train.Example(features=tf.train.Features(feature=feature))\n"
            "text = base64.b64encode(example.SerializeToString()).decode()\n"
            f"print(json.dumps({{'signature_name': {signature['name']!r}, "
            "'instances': [{'b64': text}]}))\n"
        )
        pipe = (
            f"python request.py | curl -s -d @- http://localhost:8501/v1/models/{_model_name(name)}:predict"
        )
        return {
            "title": f"{label}: a serialized tf.Example",
            "text": f"cat > request.py <<'END'\n{python}END\n{pipe}",
        }
    names = {tensor["name"]: tensor for tensor in inputs}
    row = {key: example.get(key, "" if tensor["type"] == "string" else 0) for key, tensor in names.items()}
    shaped = {key: [value] if len(names[key]["shape"] or []) == 2 else value for key, value in row.items()}
    body = {"signature_name": signature["name"], "instances": [shaped]}
    return {"title": f"{label}: a row by its inputs", "text": _curl(name, "predict", body)}


def _curl(name: str, method: str, body: Mapping[str, Any]) -> str:
    text = json.dumps(body, ensure_ascii=False, indent=1)
    return (
        f"curl -s http://localhost:8501/v1/models/{_model_name(name)}:{method} \\\n  -d {shlex.quote(text)}"
    )


def _model_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in name)


def _tensor(tensor: Mapping[str, Any]) -> dict[str, str]:
    shape = tensor["shape"]
    if shape is None:
        text = "any shape"
    else:
        text = "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"
    return {"name": tensor["name"], "type": tensor["type"], "shape": text}
