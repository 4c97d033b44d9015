"""A request that was read: the inputs for the model, and the way from its outputs to the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.errors import BadInputError
from pipelines.serving.cells import cells_of
from pipelines.serving.inputs import inputs_of
from pipelines.serving.saved_model import Signature
from pipelines.serving.server.request_error import RequestError

Tensors = Mapping[str, Any]
"""NumPy arrays by the name of an input or an output."""


@dataclass(frozen=True)
class PreparedRequest:
    """A request that was read.

    Attributes:
      signature: Signature to run.
      inputs: Inputs of it.
      num_rows: Number of rows.
      answer: Function from the outputs to the JSON value of the answer.
    """

    signature: Signature
    inputs: Tensors
    num_rows: int
    answer: Callable[[Tensors], Any]


def inputs_of_rows(rows: Any, signature: Signature) -> tuple[Tensors, int]:
    """Returns the inputs for rows with the columns of the CSV, and their number.

    Args:
      rows: List of dicts, or dict of columns.
      signature: Signature that takes columns.

    Raises:
      RequestError: These are no rows of the model, or there is none.
    """
    try:
        cells, num_rows = cells_of(rows, signature.columns)
        if not num_rows:
            raise RequestError(400, "There is no row. Give one or more.")
        return inputs_of(cells, signature, num_rows), num_rows
    except BadInputError as error:
        raise RequestError(400, str(error)) from error
