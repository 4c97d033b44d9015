"""A version of a model, loaded, that predicts rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from components.serving_check.clean_process import call_signature
from pipelines.errors import BadInputError, shown
from pipelines.serving.cells import Cells, cells_of
from pipelines.serving.inputs import inputs_of
from pipelines.serving.predictions import plain_columns
from pipelines.serving.saved_model import Column, Signature, read_signatures
from pipelines.terminal.quiet_tensorflow import without_parameter_names

_ROWS_AT_A_TIME = 4_096


class Model:
    """A version of a model.

    model = pipelines.load("pipeline_root")
    model.predict([{"fare": 12, "company": None}])     # {"class": ..., "probability": ...}
    """

    def __init__(self, folder: Path):
        self.version = int(folder.name)
        self.folder = folder
        self.signatures = read_signatures(folder)
        try:
            with without_parameter_names():
                # A TPUEstimator exports a second graph, for TPUs.
                self._loaded = tf.saved_model.load(str(folder), tags=["serve"])
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise BadInputError(f"The model in {folder} cannot be loaded: {error}") from error

    @property
    def columns(self) -> Mapping[str, Column]:
        """Columns that `predict` takes, by name."""
        return self.signature_for_rows().columns

    def predict(self, rows: Any) -> dict[str, Any]:
        """Returns the predictions as columns, NumPy arrays with a value for each row.

        A classifier has `class` (text), `probability` (of that class), and up to 20 classes
        `probability_CLASS` for each; a regression has `value`. A model with other outputs has these.

        `rows`: list of dicts, a dict of columns, or a pandas DataFrame, with the columns of the CSV that
        the model was trained on. None, NaN, an empty text, or a column that is left out is a missing value.
        Columns that the model does not take are not used.
        """
        cells, num_rows = cells_of(rows, self.columns)
        return self.predict_cells(cells, num_rows)

    def predict_cells(self, cells: Cells, num_rows: int) -> dict[str, Any]:
        """Returns the predictions of rows whose cells were cast; see `predict`."""
        signature = self.signature_for_rows()
        return self.predict_inputs(inputs_of(cells, signature, num_rows), num_rows, signature)

    def predict_inputs(
        self, inputs: Mapping[str, Any], num_rows: int, signature: Signature
    ) -> dict[str, Any]:
        """Returns the predictions of rows; see `predict`."""
        parts = []
        for start in range(0, max(num_rows, 1), _ROWS_AT_A_TIME):
            part = {name: rows[start : start + _ROWS_AT_A_TIME] for name, rows in inputs.items()}
            parts.append(plain_columns(self.run(signature.name, part), signature.method))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def run(self, signature: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the outputs of a signature as NumPy arrays, by name."""
        known = self.signatures[signature]
        tensors = {
            name: tf.constant(value, known.inputs[name].dtype) for name, value in inputs.items()
        }
        try:
            with without_parameter_names():
                outputs = call_signature(self._loaded.signatures[signature], tensors)
        except (tf.errors.InvalidArgumentError, ValueError, TypeError) as error:
            raise BadInputError(f"The model refuses the input: {_reason_of(error)}") from error
        return {name: value.numpy() for name, value in outputs.items()}

    def signature(self, name: str) -> Signature:
        if name not in self.signatures:
            known = ", ".join(self.signatures)
            raise BadInputError(f"There is no signature {shown(repr(name))}. There are: {known}.")
        return self.signatures[name]

    def signature_for_rows(self) -> Signature:
        """Returns the signature that predicts rows: one of tf.Examples, if the model has one."""
        found: Sequence[Signature] = sorted(
            (one for one in self.signatures.values() if one.columns),
            key=lambda one: not one.takes_examples,
        )
        if not found:
            raise BadInputError(
                f"No signature of the model in {self.folder} takes rows: neither serialized tf.Examples that "
                "it parses itself, nor a tensor for each column. Its signatures: "
                f"{', '.join(self.signatures)}. Export another one, or send the tensors to `serve`."
            )
        return found[0]


def _reason_of(error: Exception) -> str:
    """Returns the reason in an error of TensorFlow, without the places in the graph and in Python."""
    message = getattr(error, "message", None) or str(error)
    *_, reason = message.partition("\n\t [[")[0].split("\n\n")  # behind the Python frames
    return reason.strip()
