"""Asks the model that would be pushed, in a clean process, and blesses it if the answers are those judged."""

import base64
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils

from components.pusher.held import may_be_pushed
from components.pusher.versions import WARMUP_FILE
from components.serving_check import model_process
from components.serving_check.clean_process import ask_signature
from components.serving_check.comparison import Compared, Outputs, compare
from components.serving_check.rows import Rows, read_rows
from components.serving_check.settings import ServingCheckSettings
from components.tfx.model_paths import eval_model_path, serving_model_path

_LOGGER = logging.getLogger(__name__)

_RESULT_FILE = "serving_check.json"
_NUM_CALLS = 100
_NUM_BACKGROUND = 32

DEFAULT = "serving_default"
"""Signature that the Evaluator asks, and a server by default."""

Judged = tuple[npt.NDArray[Any], Outputs]
"""Rows, and the predictions for them by name."""

_PREDICTION = "predictions/"


class LimitExceededError(RuntimeError):
    """A measurement is above a limit; it may be lower the next time, so the model is not to blame."""


@dataclass
class ServingCheckResult:
    """Result of a ServingCheck.

    Attributes:
        rows: Number of rows that were sent; 0 if the model was not asked.
        load_seconds: Time to load the SavedModel in a new process.
        memory_mb: Memory that the model adds to a process, at the peak.
        signatures: Results by signature: `rows`, `latency_ms` (`p50` and `p99` of calls with one row),
            `compared` (fields of `Compared`) and `not_compared`, names of outputs.
        failures: Reasons why the model is not blessed.
        not_checked: Signatures that could not be compared, each with the reason.
        background: Rows that predictions can be compared with, as serialized tf.Examples in base64.
    """

    rows: int = 0
    load_seconds: float | None = None
    memory_mb: float | None = None
    signatures: dict[str, dict[str, Any]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    background: list[str] = field(default_factory=list)


def load_serving_check(uri: str) -> ServingCheckResult:
    """Returns the result of a ServingCheck.

    Args:
        uri: URI of its `InfraBlessing`.
    """
    return ServingCheckResult(**json.loads(io_utils.read_string_file(os.path.join(uri, _RESULT_FILE))))


class Executor(base_executor.BaseExecutor):
    def Do(
        self,
        input_dict: dict[str, list[Artifact]],
        output_dict: dict[str, list[Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        settings = ServingCheckSettings.from_json(exec_properties.get("settings"))
        blessing = artifact_utils.get_single_instance(output_dict["blessing"])
        if not settings.enabled:
            result = ServingCheckResult(not_checked=["the exported model: the check is switched off"])
        elif not may_be_pushed(input_dict.get("model_blessing") or []):
            result = ServingCheckResult(failures=["not run: the Evaluator did not bless the model"])
        else:
            splits = json.loads(exec_properties.get("example_splits") or '["eval"]')
            rows = read_rows(input_dict["examples"], splits, settings.rows, exec_properties.get("label"))
            model = artifact_utils.get_single_instance(input_dict["model"])
            result, requests = check(model, rows, settings)
            chosen = rows.examples[:: max(1, len(rows.examples) // _NUM_BACKGROUND)][:_NUM_BACKGROUND]
            result.background = [base64.b64encode(example).decode() for example in chosen]
            if settings.warmup and requests and not result.failures:
                write_warmup(os.path.join(blessing.uri, WARMUP_FILE), requests)
        write_result(blessing, result)


def check(
    model: Artifact, rows: Rows, settings: ServingCheckSettings
) -> tuple[ServingCheckResult, dict[str, list[dict[str, Any]]]]:
    """Asks the serving model of a `Model` artifact, and compares; without rows, only loads it."""
    path = serving_model_path(model)
    request = {
        "rows": {"examples": rows.examples, "columns": rows.columns},
        "rows_with_label": rows.with_label,
        "num_calls": _NUM_CALLS,
    }
    try:
        process = model_process.take(path, loads_now=settings.max_load_seconds is not None)
        answered, judged = process.ask(
            request,
            lambda: (
                judged_predictions(eval_model_path(model.uri), path, rows)
                if rows.examples
                else (np.arange(0), {})
            ),
        )
    except TimeoutError as error:
        raise LimitExceededError(str(error)) from error
    if "error" in answered:
        failure = (
            "the model can't be loaded in a process that has only TensorFlow and NumPy, like a model server: "
            f"{answered['error']}"
        )
        return ServingCheckResult(rows=len(rows.examples), failures=[failure]), {}
    result = _compare_all(answered, judged, rows, settings.tolerance)
    _check_limits(result, settings)
    answers = answered["signatures"].items()
    return result, {name: answer["requests"] for name, answer in answers if "requests" in answer}


def judged_predictions(eval_path: str | None, serving_path: str, rows: Rows) -> Judged:
    """Returns the predictions of the evaluation model, or else of the serving model in this process."""
    if eval_path is None:
        signatures = tf.saved_model.load(serving_path, tags=["serve"]).signatures
        name = DEFAULT if DEFAULT in signatures else next(iter(signatures), "")
        request = {"examples": rows.with_label, "columns": rows.columns}
        answer = ask_signature(name, signatures[name], request) if name else {}
        return answer.get("index", np.arange(0)), answer.get("outputs", {})
    model = tf.saved_model.load(eval_path, tags=["eval"])
    signature = model.signatures["eval"]
    fetches = {
        name.removeprefix(_PREDICTION): tensor.name
        for name, tensor in signature.structured_outputs.items()
        if name.startswith(_PREDICTION)
    }
    # Without its input_signature, TensorFlow formats all rows for the message of an error that it catches.
    specs = tuple(signature.structured_input_signature[1].values())
    function = model.prune([signature.inputs[0].name], fetches, input_signature=(specs, {}))
    outputs = function(tf.constant(rows.with_label))
    return np.arange(len(rows.examples)), {name: values.numpy() for name, values in outputs.items()}


def _compare_all(
    answered: dict[str, Any], judged: Judged, rows: Rows, tolerance: float
) -> ServingCheckResult:
    result = ServingCheckResult(
        len(rows.examples), round(answered["load_seconds"], 3), round(answered["memory_mb"], 1)
    )
    answers = answered["signatures"]
    main = DEFAULT if DEFAULT in answers else next(iter(answers), "")
    if not answers and rows.examples:
        result.failures.append("the model has no signature that a server could call")
    different: list[tuple[str, Compared]] = []
    for name in sorted(answers, key=lambda one: (one != main, one)):
        answer = answers[name]
        if "error" in answer:
            needs = answer["needs_label"]
            why = "it needs the label, which no client has" if needs else f"it fails: {answer['error']}"
            # A signature for other uses may take the label, as TFX's `transform_features` does.
            reasons = result.not_checked if needs and name != main else result.failures
            reasons.append(f"the signature {name!r}: {why}")
            continue
        if "not_asked" in answer:
            result.not_checked.append(f"the signature {name!r}: {answer['not_asked']}")
            continue
        batch = answer["index"], answer["outputs"]
        compared, without = compare(name, batch, judged, tolerance)
        if not compared and name == main:
            result.failures.append(
                f"the signature {name!r}: none of its outputs ({', '.join(without)}) has the name or the "
                f"values of a prediction that was evaluated ({', '.join(judged[1])}). Export the predictions "
                "under their names, or switch the check off"
            )
        single = answer["calls"], answer["outputs_of_calls"]
        compared += compare(name, single, batch, tolerance, one_by_one=True)[0]
        result.signatures[name] = {
            "rows": len(answer["index"]),
            "latency_ms": _percentiles(answer["latency_ms"]),
            "compared": [asdict(one) for one in compared],
            "not_compared": without,
        }
        different += [(name, one) for one in compared if one.num_different]
    if different:
        result.failures.append(_describe(different, rows))
    return result


def _describe(different: Sequence[tuple[str, Compared]], rows: Rows) -> str:
    """Describes the output in which most rows differ, its worst rows, and the other outputs."""
    signature, worst = max(different, key=lambda one: one[1].num_different)
    examples = "; ".join(
        f"{_values(one['served'])} instead of {_values(one['judged'])} for {rows.describe(one['row'])}"
        for one in worst.worst
    )
    against = "for single rows than for a batch" if worst.one_by_one else "than in the evaluation"
    others = sorted({f"{name}: {one.output}" for name, one in different} - {f"{signature}: {worst.output}"})
    return (
        f"the exported model gives other predictions {against}: signature {signature!r}, output "
        f"{worst.output!r} differs in {worst.num_different} of {worst.num_rows} rows; most: {examples}"
        + (f". Also different: {', '.join(others)}" if others else "")
    )


def _values(values: list[Any]) -> str:
    return str(values[0]) if len(values) == 1 else str(values)


def _percentiles(latency_ms: list[float]) -> dict[str, float] | None:
    if not latency_ms:
        return None
    return {
        name: round(float(np.percentile(latency_ms, rank)), 3) for name, rank in (("p50", 50), ("p99", 99))
    }


def _check_limits(result: ServingCheckResult, settings: ServingCheckSettings) -> None:
    measured = [
        ("max_load_seconds", result.load_seconds, "loading it takes {} s"),
        ("max_memory_mb", result.memory_mb, "it needs {} MB of memory"),
    ]
    for name, signature in result.signatures.items():
        latency = signature["latency_ms"] or {}
        message = f"99 % of the calls of {name!r} with one row take up to {{}} ms"
        measured.append(("max_latency_ms", latency.get("p99"), message))
    for limit, value, message in measured:
        bound = getattr(settings, limit)
        if bound is not None and value is not None and value > bound:
            raise LimitExceededError(
                f"The exported model exceeds a limit: {message.format(value)}, but {limit} is {bound:g}. "
                "Make the model smaller, or raise the limit; another run measures again."
            )


def write_result(blessing: Artifact, result: ServingCheckResult) -> None:
    """Writes the blessing as TFX's InfraValidator does, with the reason and the result."""
    is_blessed = not result.failures
    name = "INFRA_BLESSED" if is_blessed else "INFRA_NOT_BLESSED"
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    io_utils.write_string_file(os.path.join(blessing.uri, _RESULT_FILE), json.dumps(asdict(result)))
    blessing.set_int_custom_property("blessed", int(is_blessed))
    blessing.set_string_custom_property("blessing_message", "; ".join(result.failures))
    for failure in result.failures:
        _LOGGER.warning("Not blessed: %s", failure)
    for reason in result.not_checked:
        _LOGGER.warning("Not checked: %s", reason)


def write_warmup(path: str, requests: dict[str, list[dict[str, Any]]]) -> None:
    """Writes requests that TensorFlow Serving sends to a version before it serves it."""
    from tensorflow_serving.apis import prediction_log_pb2

    fileio.makedirs(os.path.dirname(path))
    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs_of_calls in requests.items():
            for inputs in inputs_of_calls:
                log = prediction_log_pb2.PredictionLog()
                request = log.predict_log.request
                request.model_spec.signature_name = signature
                for name, value in inputs.items():
                    request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
                writer.write(log.SerializeToString())
