"""A request that was read: the inputs for the model, and the way from its outputs to the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.errors import BadInputError
from pipelines.serving.cells import Cells, cells_of
from pipelines.serving.inputs import inputs_of
from pipelines.serving.saved_model import Signature
from pipelines.serving.server.request_error import RequestError

Tensors = Mapping[str, Any]
"""NumPy arrays by the name of an input or an output."""

LARGE_BYTES = 16 << 10
"""Size of a request beyond which it is read, and its answer written, in a thread."""

_MAX_COMPARISONS = 10_000  # of unknown names with absent columns: up to 0.4 s


@dataclass(frozen=True)
class Inputs:
    """Inputs of a signature."""

    tensors: Tensors
    num_rows: int
    # Cells by column, of which the tensors were made; None if the request gave tensors.
    cells: Cells | None = None


@dataclass(frozen=True)
class PreparedRequest:
    """A request that was read."""

    signature: Signature
    inputs: Inputs
    answer: Callable[[Tensors], Any]


def inputs_of_rows(rows: Any, signature: Signature) -> Inputs:
    """Returns the inputs for rows with the columns of the CSV."""
    try:
        cells, num_rows = cells_of(rows, signature.columns, _MAX_COMPARISONS)
        if not num_rows:
            raise RequestError(400, "There is no row. Give one or more.")
        return Inputs(inputs_of(cells, signature, num_rows), num_rows, cells)
    except BadInputError as error:
        raise RequestError(400, str(error)) from error
