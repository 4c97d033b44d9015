"""Points of plots from sums over examples: ROC, precision and recall, calibration, confusion."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from components.evaluator.gate.intervals import wilson_interval
from components.evaluator.report_details.prediction_sums import (
    NUM_BINS,
    NUM_CONFIDENCE_BINS,
    PredictionSums,
    Values,
    threshold_bin,
)
from components.tfx.decision_file import DEFAULT_THRESHOLD

CONFIDENCE = 0.95
"""Number of intervals of a calibration."""

MAX_POINTS = 100
"""Number of points of a curve."""

MAX_CLASSES = 30
"""Number of classes of a confusion matrix; the classes with the fewest examples are merged into one."""

MAX_CLASS_ROWS = 100
"""Number of classes whose precision and recall are kept: those with the most examples."""

_CALIBRATION_BINS = 10
_HISTOGRAM_BINS = 20
_RESIDUAL_BINS = 21
_MAX_SHOWN = 400


def plot_points(
    sums: PredictionSums, classes: tuple[str, ...] = (), threshold: float = DEFAULT_THRESHOLD
) -> dict[str, Any]:
    """Returns the points of a model's plots in JSON form; empty if nothing was counted."""
    if sums.by_class is not None:
        return _binary(sums.by_class, sums.squares, threshold)
    if sums.confidence is not None:
        return _multi_class(sums, classes)
    if sums.sample is not None:
        return _regression(sums.sample)
    return {}


def _binary(by_class: Values, squares: float, threshold: float) -> dict[str, Any]:
    negative, positive = by_class
    # True and false positives, with the threshold at the lower end of each bin from the highest down.
    true = np.concatenate([[0.0], np.cumsum(positive[::-1])])
    false = np.concatenate([[0.0], np.cumsum(negative[::-1])])
    thresholds = 1 - np.arange(NUM_BINS + 1) / NUM_BINS
    points: dict[str, Any] = {
        "calibration": _calibration(negative, positive, squares),
        "histogram": [
            part.reshape(_HISTOGRAM_BINS, -1).sum(axis=1).tolist() for part in (negative, positive)
        ],
    }
    if true[-1] > 0 and false[-1] > 0:
        recall, fall_out = true / true[-1], false / false[-1]
        kept = _corners(fall_out, recall)
        points["roc"] = _rows(fall_out[kept], recall[kept], thresholds[kept])
        some = true + false > 0
        precision = true[some] / (true + false)[some]
        kept = _corners(recall[some], precision)
        points["precision_recall"] = _rows(recall[some][kept], precision[kept], thresholds[some][kept])
    cut = threshold_bin(threshold)
    points["confusion"] = {
        "threshold": threshold,
        "true_positives": float(positive[cut:].sum()),
        "false_positives": float(negative[cut:].sum()),
        "false_negatives": float(positive[:cut].sum()),
        "true_negatives": float(negative[:cut].sum()),
    }
    return points


def _calibration(negative: Values, positive: Values, squares: float) -> list[dict[str, float]]:
    """Returns mean prediction and observed rate for tenths of the examples by probability."""
    total = negative + positive
    weight = float(total.sum())
    if not weight > 0:
        return []
    size_of_1 = weight / squares  # effective number of examples for a weight of 1 (Kish)
    middles = (np.arange(NUM_BINS) + 0.5) / NUM_BINS
    share_below = np.cumsum(total) / weight
    tenth = np.minimum(((share_below - total / weight / 2) * _CALIBRATION_BINS).astype(int), 9)
    rows = []
    for number in range(_CALIBRATION_BINS):
        inside = (tenth == number) & (total > 0)
        size = float(total[inside].sum())
        if size > 0:
            predicted = float(middles[inside] @ total[inside])
            rows.append(_calibrated(predicted, float(positive[inside].sum()), size, size_of_1))
    return rows


def _calibrated(predicted: float, happened: float, weight: float, size_of_1: float) -> dict[str, float]:
    low, high = wilson_interval(happened * size_of_1, weight * size_of_1, CONFIDENCE)
    return {
        "predicted": predicted / weight,
        "happened": happened / weight,
        "low": low,
        "high": high,
        "weight": weight,
    }


def _multi_class(sums: PredictionSums, classes: tuple[str, ...]) -> dict[str, Any]:
    weights: dict[int, float] = {}
    for (label, answer), weight in sums.confusion.items():
        weights[label] = weights.get(label, 0.0) + weight
        weights.setdefault(answer, 0.0)
    frequent = sorted(weights, key=lambda ident: (-weights[ident], ident))[:MAX_CLASSES]
    order = sorted(frequent)
    index = {ident: number for number, ident in enumerate(order)}
    has_others = len(weights) > len(order)
    size = len(order) + has_others
    table = np.zeros((size, size))
    for (label, answer), weight in sums.confusion.items():
        table[index.get(label, size - 1), index.get(answer, size - 1)] += weight
    names = [classes[ident] if ident < len(classes) else str(ident) for ident in order]
    confidence = sums.confidence if sums.confidence is not None else np.zeros((3, 0))
    size_of_1 = float(confidence[2].sum()) / sums.squares if sums.squares else 1.0
    calibration = [
        _calibrated(predicted, right, weight, size_of_1)
        for predicted, right, weight in confidence.T.tolist()
        if weight > 0
    ]
    return {
        "by_class": _by_class(sums.confusion, classes),
        "confusion": {
            "classes": [*names, f"{len(weights) - len(order)} other classes"][:size],
            "table": table.tolist(),
            "has_others": has_others,
        },
        "calibration": calibration,
        "confidence_bins": NUM_CONFIDENCE_BINS,
    }


def _by_class(confusion: Mapping[tuple[int, int], float], classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Returns the weight, precision, recall and F1 of each class; None without a denominator."""
    rows: defaultdict[int, float] = defaultdict(float)
    predicted: defaultdict[int, float] = defaultdict(float)
    for (label, answer), weight in confusion.items():
        rows[label] += weight
        predicted[answer] += weight
    idents = sorted({*rows, *predicted}, key=lambda ident: (-rows[ident], ident))[:MAX_CLASS_ROWS]
    by_class = []
    for ident in sorted(idents):
        right = confusion.get((ident, ident), 0.0)
        by_class.append(
            {
                "name": classes[ident] if ident < len(classes) else str(ident),
                "rows": rows[ident],
                "precision": right / predicted[ident] if predicted[ident] else None,
                "recall": right / rows[ident] if rows[ident] else None,
                "f1": 2 * right / (rows[ident] + predicted[ident])
                if rows[ident] or predicted[ident]
                else None,
            }
        )
    return by_class


def _regression(sample: Values) -> dict[str, Any]:
    labels, answers = sample[:, 0], sample[:, 1]
    residuals = answers - labels
    reach = float(np.quantile(np.abs(residuals), 0.995)) or 1.0
    counts, edges = np.histogram(
        np.clip(residuals, -reach, reach), bins=_RESIDUAL_BINS, range=(-reach, reach)
    )
    quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
    return {
        "sample_size": len(sample),
        "pairs": _rows(labels[:_MAX_SHOWN], answers[:_MAX_SHOWN]),
        "residuals": {"counts": counts.tolist(), "edges": edges.tolist()},
        "residual_quantiles": {
            f"{100 * level:g} %": float(value)
            for level, value in zip(quantiles, np.quantile(residuals, quantiles), strict=True)
        },
    }


def _corners(horizontal: Values, vertical: Values) -> Any:
    """Returns the indices of the points to draw: the curve's turns, then points at even distances."""
    first, last = 0, len(horizontal) - 1
    moved: Any = np.flatnonzero((np.diff(horizontal) != 0) | (np.diff(vertical) != 0)) + 1
    kept = np.unique(np.concatenate([[first], moved - 1, moved, [last]]))
    if len(kept) <= MAX_POINTS:
        return kept
    way = np.cumsum(
        np.abs(np.diff(horizontal[kept], prepend=horizontal[kept[0]]))
        + np.abs(np.diff(vertical[kept], prepend=vertical[kept[0]]))
    )
    wanted = np.linspace(0, way[-1], MAX_POINTS)
    return np.unique(np.concatenate([[first], kept[np.searchsorted(way, wanted)], [last]]))


def _rows(*columns: Values) -> list[list[float]]:
    return [[float(f"{value:.6g}") for value in row] for row in zip(*columns, strict=True)]
