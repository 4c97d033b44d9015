"""A request of a client: its limits, the inputs that it has for the model, and its answer or error."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.errors import BadInputError
from pipelines.serving.cells import Cells, to_cells
from pipelines.serving.model import signature_inputs
from pipelines.serving.saved_model import Signature


class RequestError(Exception):
    """A request that gets no prediction."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


def check_rows(num_rows: int, max_rows: int) -> None:
    """Refuses a request with too many rows."""
    if num_rows > max_rows:
        raise RequestError(
            413, f"The request has {num_rows} rows; {max_rows} are allowed. Split it into several."
        )


def check_json(body: Any, max_rows: int, max_bytes: int) -> None:
    """Refuses a JSON body of any form with too many rows, before the rows are read."""
    if not isinstance(body, dict):
        return
    inputs = body.get("inputs")
    tensors = inputs if isinstance(inputs, list) else []
    columns = inputs.values() if isinstance(inputs, dict) else ()
    data = [tensor.get("data") for tensor in tensors if isinstance(tensor, dict)]
    for rows in (body.get("instances"), body.get("examples"), inputs, *columns, *data):
        if isinstance(rows, list):
            check_rows(len(rows), max_rows)
    examples, context = body.get("examples"), body.get("context")
    if context and isinstance(examples, list):
        check_context(len(json.dumps(context)), len(examples), max_bytes)


def check_context(num_bytes: int, num_examples: int, max_bytes: int) -> None:
    """Refuses a context that becomes too large once each example has it."""
    if num_bytes * num_examples > max_bytes:
        raise RequestError(413, "The context is too large for so many examples.")


class HeldBytes:
    """Counts the bytes of all requests that the server holds."""

    def __init__(self, limit: int, small_bytes: int = 0):
        self._limit = limit
        self._small_bytes = small_bytes
        self._held = 0

    @contextlib.contextmanager
    def request(self) -> Iterator[Callable[[int], None]]:
        """Yields a function that counts bytes until the request ends, and refuses those beyond the limit."""
        held = 0

        def hold(num_bytes: int) -> None:
            nonlocal held
            is_small = held + num_bytes <= self._small_bytes
            if self._held + num_bytes > self._limit and not is_small:
                raise RequestError(
                    503,
                    f"The server is busy: it holds {self._held} bytes of requests. Try again later.",
                    {"Retry-After": "1"},
                )
            held += num_bytes
            self._held += num_bytes

        try:
            yield hold
        finally:
            self._held -= held


Tensors = Mapping[str, Any]
"""NumPy arrays by the name of an input or an output."""

LARGE_BYTES = 16 << 10
"""Size of a request beyond which it is read, and its answer written, in a thread."""

_MAX_COMPARISONS = 10_000  # of unknown names with absent columns: up to 0.4 s


@dataclass(frozen=True)
class Inputs:
    tensors: Tensors
    num_rows: int
    # Cells by column, of which the tensors were made; None if the request gave tensors.
    cells: Cells | None = None


@dataclass(frozen=True)
class PreparedRequest:
    signature: Signature
    inputs: Inputs
    answer: Callable[[Tensors], Any]


def inputs_of_rows(rows: Any, signature: Signature) -> Inputs:
    """Returns the inputs for rows with the columns of the CSV."""
    try:
        cells, num_rows = to_cells(rows, signature.columns, _MAX_COMPARISONS)
        if not num_rows:
            raise RequestError(400, "There is no row. Give one or more.")
        return Inputs(signature_inputs(cells, signature, num_rows), num_rows, cells)
    except BadInputError as error:
        raise RequestError(400, str(error)) from error
