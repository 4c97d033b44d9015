"""Asks a SavedModel for predictions, in a process that imports TensorFlow and NumPy alone.

    python -I clean_process.py

It reads three lines from stdin: the directory of the SavedModel, which it loads immediately; the path of a
file with the pickled arguments of `ask_model`; and the path of the file that gets its result. If stdin ends
before that, nothing is to be asked. The ServingCheck calls `ask_signature` in its own process as well, for
models without an evaluation model.
"""

import dataclasses
import pickle
import sys
import time
from typing import Any

if __name__ == "__main__":
    # TensorFlow and Keras import these where they are installed: half of the time that their import takes.
    for optional in ("IPython", "h5py", "jax", "matplotlib", "pandas", "scipy", "sklearn"):
        sys.modules[optional] = None  # type: ignore[assignment]

import numpy as np
import tensorflow as tf

MAX_CALL_SECONDS = 2.0
"""Time after which no further single rows of a signature are timed."""

MANY_INPUTS = 1_000
"""Largest number of inputs of a signature with which TensorFlow optimizes the graphs.

Optimization takes 11 s for each signature with 6,829 inputs; a call without it takes 0.9 s.
"""

_AROUND_A_REASON = (*("Graph execution error", "Detected at", "File ", "<stack", "Traceback", "Node:", "["),)

SERVING_ROWS = "serving_rows"
"""Signature on columns in which a missing value has a mark; see `build_rows_serving_input_receiver_fn`."""

_MARKS: dict[Any, Any] = {tf.float32: np.nan, tf.int64: np.iinfo(np.int64).min, tf.string: b""}


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    signatures: dict[str, Any]
    load_seconds: float  # Time that loading took
    memory_mb_before: float


def load(path: str) -> LoadedModel:
    memory_mb, start = _memory_mb("VmRSS"), time.perf_counter()
    model = tf.saved_model.load(path, tags=["serve"])
    return LoadedModel(model.signatures, time.perf_counter() - start, memory_mb)


def ask_model(
    model: LoadedModel, rows: dict[str, Any], rows_with_label: list[bytes], num_calls: int
) -> dict[str, Any]:
    """Returns the answers of every signature of a model, and the cost of loading it.

    `memory_mb` is what the model adds to the peak of the process. Without examples, the model is only loaded.
    """
    if any(len(x.structured_input_signature[1]) > MANY_INPUTS for x in model.signatures.values()):
        # It would rewrite the graph of each signature, in a time that grows with the square of the inputs.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    signatures = {}
    for name, signature in model.signatures.items() if rows["examples"] else ():
        try:
            signatures[name] = ask_signature(name, signature, rows, num_calls)
        except Exception as error:  # any error of the model is its answer
            signatures[name] = {
                "error": _first_line(error),
                "needs_label": _can_answer(name, signature, {**rows, "examples": rows_with_label}),
            }
    return {
        "load_seconds": model.load_seconds,
        "memory_mb": _memory_mb("VmHWM") - model.memory_mb_before,  # the peak of the process
        "signatures": signatures,
    }


def ask_signature(name: str, signature: Any, rows: dict[str, Any], num_calls: int = 0) -> dict[str, Any]:
    """Returns the answer of a signature to raw rows.

    Returns `index`, the rows that fit its inputs, `[n]`; `outputs` by name, `[n, ...]`; for single
    rows: `calls`, their indices, `outputs_of_calls`, `latency_ms`, and `requests`, some inputs. Or
    `not_asked`: the reason why raw rows do not fit its inputs.
    """
    inputs = signature.structured_input_signature[1]
    index, tensors = _tensors(inputs, rows, marks=_MARKS if name == SERVING_ROWS else {})
    if isinstance(tensors, str):
        return {"not_asked": tensors}
    outputs = _call(signature, tensors)
    chosen = np.unique(np.linspace(0, len(index) - 1, num_calls).astype(int)) if num_calls else []
    calls: list[dict[str, Any]] = []
    latency_ms: list[float] = []
    requests = [{key: value[i : i + 1] for key, value in tensors.items()} for i in chosen]
    if requests:
        _call(signature, requests[0])  # the first call of a shape prepares it
    for request in requests:
        start = time.perf_counter()
        calls.append(_call(signature, request))
        latency_ms.append(1000 * (time.perf_counter() - start))
        if sum(latency_ms) > 1000 * MAX_CALL_SECONDS:
            break
    return {
        "index": index,
        "outputs": outputs,
        "calls": index[chosen[: len(calls)]] if calls else index[:0],
        "outputs_of_calls": {
            name: np.concatenate([call[name] for call in calls])
            for name in (outputs if calls else ())
            if all(call[name].shape[:1] == (1,) for call in calls)
            and len({call[name].shape for call in calls}) == 1
        },
        "latency_ms": latency_ms,
        "requests": requests[:5],
    }


def _tensors(inputs: dict[str, Any], rows: dict[str, Any], marks: dict[Any, Any]) -> tuple[Any, Any]:
    """Returns the indices of rows and their values by input, or the reason why they do not fit."""
    examples = rows["examples"]
    columns = _marked(inputs, rows, marks)
    if len(inputs) == 1:
        ((name, spec),) = inputs.items()
        if name not in columns and spec.dtype == tf.string:
            return np.arange(len(examples)), {name: np.array(examples, object)}
    for name, spec in inputs.items():
        if name not in columns:
            return (None, f"its input {name!r} is not a column of the data, which come without the label")
        if not isinstance(spec, tf.TensorSpec):
            return None, f"its input {name!r} is a {type(spec).__name__}"
    sizes = {  # numbers of values in a row
        name: int(spec.shape[1] or 1) if spec.shape.rank == 2 else 1 for name, spec in inputs.items()
    }
    index = [
        i
        for i in range(len(examples))
        if all(columns[name][i] and len(columns[name][i]) == size for name, size in sizes.items())
    ]
    if not index:
        return None, f"no row has a value for each of its {len(inputs)} inputs"
    tensors = {}
    for name, spec in inputs.items():
        values = [columns[name][i] for i in index]
        is_text = isinstance(values[0][0], bytes)
        if is_text != (spec.dtype == tf.string):
            kind = "text" if is_text else "numbers"
            raise TypeError(f"its input {name!r} is {spec.dtype.name}, and the column holds {kind}")
        tensor = np.array(values, object if is_text else spec.dtype.as_numpy_dtype)
        tensors[name] = tensor[:, 0] if spec.shape.rank in (None, 0, 1) else tensor
    return np.array(index), tensors


def _marked(
    inputs: dict[str, Any], rows: dict[str, Any], marks: dict[Any, Any]
) -> dict[str, list[list[Any]]]:
    """Returns the columns, with the marks of missing values filled in."""
    columns: dict[str, list[list[Any]]] = rows["columns"]
    nothing: list[list[Any]] = [[] for _ in rows["examples"]]
    return columns | {
        name: [values or [marks[spec.dtype]] for values in columns.get(name, nothing)]
        for name, spec in inputs.items()
        if spec.dtype in marks
    }


def call_signature(signature: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs of a signature of a loaded SavedModel, by name, for inputs by name.

    `signature(**tensors)` does that for all names but `self`, which is its own parameter; a column may
    have that name.
    """
    if "self" not in tensors:
        return signature(**tensors)
    return signature._call_impl((), tensors)  # noqa: SLF001


def _call(signature: Any, tensors: dict[str, Any]) -> dict[str, Any]:
    constants = {name: tf.constant(value) for name, value in tensors.items()}
    return {name: value.numpy() for name, value in call_signature(signature, constants).items()}


def _can_answer(name: str, signature: Any, rows: dict[str, Any]) -> bool:
    try:
        ask_signature(name, signature, rows)
    except Exception:  # then the label is not the reason
        return False
    return True


def _first_line(error: BaseException) -> str:
    """Returns the reason in an error, without the place in the graph that TensorFlow adds."""
    lines = [line.strip() for line in str(error).splitlines()]
    reasons = [line for line in lines if line and not line.startswith(_AROUND_A_REASON)]
    return f"{type(error).__name__}: {reasons[0] if reasons else error!r}"[:400]


def _memory_mb(field: str) -> float:
    """Returns a field of this process's status; `ru_maxrss` would include the process that started it."""
    with open("/proc/self/status", encoding="ascii") as stream:
        fields = dict(line.split(":", 1) for line in stream)
    return int(fields[field].split()[0]) / 1024


def main() -> None:
    """Loads a model, reads a request, and writes the answers, or the `error` for which it does not load."""
    path = sys.stdin.readline().rstrip("\n")
    if not path:
        return
    failure = None
    try:
        model = load(path)
    except Exception as error:  # the model's, or TensorFlow's of it
        failure = {"error": _first_line(error)}
    request, answers = (sys.stdin.readline().rstrip("\n") for _ in range(2))
    if not answers:
        return
    with open(request, "rb") as stream:
        fields = pickle.load(stream)  # written by the ServingCheck that started this process
    with open(answers, "wb") as stream:
        pickle.dump(failure or ask_model(model, **fields), stream)


if __name__ == "__main__":
    main()
