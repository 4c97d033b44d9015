"""The predictions that the Evaluator judged, for some rows."""

from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from components.serving_check.clean_process import ask_signature
from components.serving_check.comparison import Outputs
from components.serving_check.rows import Rows

DEFAULT = "serving_default"
"""Signature that the Evaluator asks, and a server by default."""

Judged = tuple[npt.NDArray[Any], Outputs]
"""Rows, and the predictions for them by name."""

_PREDICTION = "predictions/"


def judged_predictions(eval_path: str | None, serving_path: str, rows: Rows) -> Judged:
    """Returns the predictions of the evaluation model, or else of the serving model in this process.

    `eval_path`: directory of the evaluation model; None without one.
    """
    if eval_path is None:
        signatures = tf.saved_model.load(serving_path, tags=["serve"]).signatures
        name = DEFAULT if DEFAULT in signatures else next(iter(signatures), "")
        given = {"examples": rows.with_label, "columns": rows.columns}
        found = ask_signature(name, signatures[name], given) if name else {}
        return found.get("index", np.arange(0)), found.get("outputs", {})
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
    return np.arange(len(rows.examples)), {name: one.numpy() for name, one in outputs.items()}
