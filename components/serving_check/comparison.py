"""Compares the answers of a model with those that were judged, row by row."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Outputs = Mapping[str, npt.NDArray[Any]]
"""Outputs or predictions by name, `[n, ...]`."""

_OTHER_NAMES = {
    "scores": ("probabilities",),
    "classes": ("all_classes",),
    "outputs": ("predictions", "logistic"),
}
"""Predictions of canned heads by the name of the same output in a classify or regress signature."""

_TIES = 0.002
"""Share of rows in which a class may differ: two classes with the same score are a matter of rounding."""

_SHOWN = 3


@dataclass(frozen=True)
class Compared:
    """An output that was compared with a prediction."""

    output: str
    prediction: str  # Name of the prediction that was judged
    num_rows: int
    num_different: int  # Number of rows that differ by more than the tolerance
    # Rows that differ most, largest difference first: `row`, `served` and `judged`.
    worst: tuple[dict[str, Any], ...] = ()
    # True if single rows were asked for, so that no other row could change the answer.
    one_by_one: bool = False


def compare(
    signature: str,
    served: tuple[npt.NDArray[Any], Outputs],
    judged: tuple[npt.NDArray[Any], Outputs],
    tolerance: float,
    *,
    one_by_one: bool = False,
) -> tuple[list[Compared], list[str]]:
    """Compares the outputs of a signature with the predictions of the same names.

    An output with another name counts as compared if it equals any prediction.
    """
    rows, of_served, of_judged = np.intersect1d(served[0], judged[0], assume_unique=True, return_indices=True)
    predictions = {name: values[of_judged] for name, values in judged[1].items()}
    compared, without = [], []
    for name, values in served[1].items():
        if len(values) != len(served[0]) or (one_by_one and values.dtype.kind != "f"):
            if not one_by_one:
                without.append(name)
            continue
        values = values[of_served]
        named = next((p for p in _names(signature, name) if _fit(values, predictions.get(p))), None)
        candidates = [named] if named else [p for p in predictions if _fit(values, predictions[p])]
        comparisons = [
            _compare(name, prediction, rows, values, predictions[prediction], tolerance, one_by_one)
            for prediction in candidates
        ]
        equal = next((comparison for comparison in comparisons if not comparison.num_different), None)
        if equal or named:
            compared.append(equal or comparisons[0])
        else:
            without.append(name)
    return compared, without


def _names(signature: str, output: str) -> Iterator[str]:
    """Yields the names of predictions that mean the same; several heads have theirs as a prefix."""
    head = signature.partition("/")[0]
    for name in (output, *_OTHER_NAMES.get(output, ())):
        yield f"{head}/{name}"
        yield name


def _fit(values: npt.NDArray[Any], others: npt.NDArray[Any] | None) -> bool:
    return (
        others is not None
        and values.size == others.size
        and (values.dtype.kind == "f") == (others.dtype.kind == "f")
        and (values.dtype.kind in "OSU") == (others.dtype.kind in "OSU")
    )


def _compare(
    output: str,
    prediction: str,
    rows: npt.NDArray[Any],
    served: npt.NDArray[Any],
    judged: npt.NDArray[Any],
    tolerance: float,
    one_by_one: bool,
) -> Compared:
    served, judged = served.reshape(len(rows), -1), judged.reshape(len(rows), -1)
    if judged.dtype.kind == "f":
        size = excess(served.astype(np.float64), judged.astype(np.float64), tolerance)
        num_different = int((size > 1).sum())
    else:
        size = (served != judged).sum(axis=1).astype(np.float64)
        num_different = int((size > 0).sum())
        if num_different <= _TIES * len(rows):
            num_different = 0
    worst = np.argsort(-size, kind="stable")[: min(_SHOWN, num_different)]
    return Compared(
        output,
        prediction,
        len(rows),
        num_different,
        tuple({"row": int(rows[i]), "served": _plain(served[i]), "judged": _plain(judged[i])} for i in worst),
        one_by_one,
    )


def excess(
    served: npt.NDArray[np.float64], judged: npt.NDArray[np.float64], tolerance: float
) -> npt.NDArray[np.float64]:
    """Returns the difference of each row, `[n, k]`, as a multiple of the tolerance: `[n]`."""
    finite = np.isfinite(judged)
    sizes = np.where(finite, np.abs(judged), 0.0).max(axis=1, initial=0.0)
    typical = np.median(sizes) if len(sizes) else 0.0
    allowed = tolerance * (sizes + (typical or sizes.mean() if len(sizes) else 0.0))
    same = (served == judged) | (np.isnan(served) & np.isnan(judged))
    with np.errstate(invalid="ignore", divide="ignore"):
        multiples = np.abs(served - judged) / allowed[:, np.newaxis]
    multiples[~np.isfinite(multiples)] = np.inf
    multiples[same] = 0.0
    largest: npt.NDArray[np.float64] = multiples.max(axis=1, initial=0.0)
    return largest


def _plain(values: npt.NDArray[Any]) -> list[Any]:
    """Returns the first values of a row for JSON; numbers that JSON lacks become text."""
    plain: list[Any] = []
    for value in values[:5].tolist():
        if isinstance(value, bytes):
            plain.append(value.decode("utf-8", "replace"))
        elif isinstance(value, float):
            plain.append(float(f"{value:.7g}") if np.isfinite(value) else str(value))
        else:
            plain.append(value)
    return plain
