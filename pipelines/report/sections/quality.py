"""Section of the model's quality: its metrics, and the plots for its problem type."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.plots import (
    Plot,
    PlotText,
    Series,
    calibration,
    histogram,
    over_thresholds,
    scatter,
    two_histograms,
    unit_square,
)
from pipelines.root.decision_lines import decision_lines
from pipelines.root.records import RunRecord

_SHADES = 9
_MAX_WITH_SHARES = 6
"""Classes of a confusion matrix that has room for a share in each cell."""

_MAX_CONFUSIONS = 8
_RECALLS = (0.99, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)
"""Recalls whose thresholds a report shows."""


def describe(context: Context) -> dict[str, Any] | None:
    """Returns metrics and plots; None if the model was not evaluated."""
    record = context.record
    details = context.details.get("evaluation", {})
    plots = details.get("plots", {})
    if not record.metrics and not plots:
        return None
    model, baseline = plots.get("model") or {}, plots.get("baseline") or {}
    classes = plots.get("classes") or []
    kind = plots.get("problem_type")
    values: dict[str, Any] = {
        "metrics": metric_rows(context),
        "baseline_version": record.baseline_version if record.baseline_metrics else None,
        "kind": kind,
        "num_examples": plots.get("num_examples"),
        "is_weighted": bool(
            record.config.get("data", {}).get("weight")
            or record.config.get("trainer", {}).get("class_weights")
        ),
        "plots": [],
        "by_class": model.get("by_class", []),
        "confusion": None,
        "decision": None,
        "calibration": model.get("calibration", []),
        "quantiles": model.get("residual_quantiles", {}),
        "missing": None if model else context.missing("Evaluator"),
    }
    if kind == "binary" and model:
        values["plots"] = binary_plots(model, baseline, classes, record.metrics)
        values["confusion"] = binary_confusion(model["confusion"], classes)
        values["decision"] = decision(record, model)
    elif kind == "multi-class" and model:
        values["plots"] = multi_class_plots(model)
        values["confusion"] = confusion_table(**model["confusion"])
    elif kind == "regression" and model:
        values["plots"] = regression_plots(model)
    elif not values["missing"]:
        values["missing"] = "There are no plots for predictions of this kind."
    return values


def metric_rows(context: Context) -> list[dict[str, Any]]:
    """Returns a row for each metric, with its interval and the baseline's value."""
    record = context.record
    details = context.details.get("evaluation", {}).get("slices", {})
    overall = details.get("slices", {}).get("Overall", {}).get("intervals", {})
    rows = []
    for name, value in record.metrics.items():
        low, high = record.intervals.get(name) or overall.get(name) or (None, None)
        baseline = record.baseline_metrics.get(name)
        change = None if baseline is None or value is None else value - baseline
        rows.append(
            {
                "name": name,
                "value": words.metric(name, value),
                "interval": words.metric_interval(name, low, high),
                "baseline": words.metric(name, baseline) if record.baseline_metrics else "",
                "change": "" if change is None else words.metric_change(name, change),
            }
        )
    return rows


def binary_plots(
    model: Mapping[str, Any],
    baseline: Mapping[str, Any],
    classes: Sequence[str],
    metrics: Mapping[str, float | None],
) -> list[Plot]:
    """Returns ROC, precision and recall, calibration and the distribution of the probabilities."""
    plots = []
    auc = metrics.get("auc")
    if "roc" in model:
        area = "" if auc is None else f" The area under the curve is {words.number(auc, 4)}."
        recall = max((row[1] for row in model["roc"] if row[0] <= 0.1), default=0.0)
        description = (
            "Recall against the share of negatives that are classified as positive. At a false positive rate "
            f"of at most 10 %, the recall is {words.percent(recall, 0)}.{area}"
        )
        curves = _model_and_baseline_series(model, baseline, "roc")
        text = PlotText("roc", "ROC curve", description)
        plots.append(unit_square(text, curves, "false positive rate", "recall", "chance"))
    if "precision_recall" in model:
        text = PlotText(
            "precision-recall",
            "Precision and recall",
            "Precision against recall, over all thresholds; the closer to the top right, the better.",
        )
        curves = _model_and_baseline_series(model, baseline, "precision_recall")
        plots.append(unit_square(text, curves, "recall", "precision"))
    if model.get("calibration"):
        text = PlotText(
            "calibration",
            "Calibration",
            "The observed share against the predicted probability, by tenths of the examples. "
            + _calibration_in_words(model["calibration"]),
        )
        plots.append(calibration(text, model["calibration"], baseline.get("calibration", ())))
    if any(map(any, model.get("histogram", ()))):
        names = list(classes[:2]) if len(classes) > 1 else ["0", "1"]
        text = PlotText(
            "probabilities",
            "Predicted probabilities by class",
            f"Distribution of the predicted probability of {names[1]}, by class. The less the two "
            "overlap, the better the model separates the classes.",
        )
        labels = [f"is {name}" for name in names]
        x_label = f"predicted probability of {names[1]}"
        plots.append(two_histograms(text, model["histogram"], labels, x_label))
    return plots


def multi_class_plots(model: Mapping[str, Any]) -> list[Plot]:
    """Returns the calibration of the most probable class."""
    if not model.get("calibration"):
        return []
    text = PlotText(
        "calibration",
        "Calibration",
        "The share of correct predictions against the probability of the most probable class. "
        + _calibration_in_words(model["calibration"]),
    )
    x_label, y_label = "probability of the most probable class", "share of correct predictions"
    return [calibration(text, model["calibration"], x_label=x_label, y_label=y_label)]


def regression_plots(model: Mapping[str, Any]) -> list[Plot]:
    """Returns predictions against labels, and the residuals."""
    size = words.number(model["sample_size"])
    middle = words.number(model["residual_quantiles"]["50 %"], 4)
    low, high = (words.number(model["residual_quantiles"][key], 4) for key in ("5 %", "95 %"))
    predicted = PlotText(
        "predicted-actual",
        "Predicted against actual",
        f"Predictions against labels of {len(model['pairs'])} examples; on the diagonal both are equal.",
    )
    residuals = PlotText(
        "residuals",
        "Residuals",
        f"Predicted minus actual, of {size} examples. The median is {middle}; 90 % are between {low} and "
        f"{high}.",
    )
    counts, edges = model["residuals"]["counts"], model["residuals"]["edges"]
    return [
        scatter(predicted, model["pairs"], "actual", "predicted"),
        histogram(residuals, counts, edges, "predicted minus actual"),
    ]


def decision(record: RunRecord, model: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the outcome of a binary model at its threshold, next to other thresholds."""
    decide = record.section("trainer").get("decide")
    costs = decide.get("cost") if isinstance(decide, Mapping) else None
    costs = costs or {"false_positive": 1, "false_negative": 1}
    rows = threshold_rows(model, costs)
    return {
        "lines": [line[:1].upper() + line[1:] for line in decision_lines(record)],
        "plot": _thresholds_plot(model) if rows else None,
        "rows": rows,
        "costs": f"{costs['false_positive']:g} for a false positive, {costs['false_negative']:g} for a false "
        "negative",
    }


def _thresholds_plot(model: Mapping[str, Any]) -> Plot:
    threshold = model["confusion"]["threshold"]
    text = PlotText(
        "thresholds",
        "Precision and recall by threshold",
        "Precision, recall and F1, their harmonic mean, by the threshold above which a row is predicted as "
        f"positive. The model's threshold is {words.number(threshold, 4)}.",
    )
    points = sorted((row[2], row[1], row[0]) for row in model["precision_recall"])
    series = [
        Series(name, [(point[0], point[index]) for point in points])
        for index, name in ((1, "precision"), (2, "recall"))
    ]
    series.append(Series("F1", [(point[0], _f1(point[1], point[2])) for point in points]))
    return over_thresholds(text, series, threshold)


def threshold_rows(model: Mapping[str, Any], costs: Mapping[str, float]) -> list[dict[str, Any]]:
    """Returns a row for the model's threshold, and others by their recall; none without both classes."""
    counts = model["confusion"]
    if "precision_recall" not in model or "roc" not in model:
        return []
    positives = counts["true_positives"] + counts["false_negatives"]
    shown = {counts["threshold"]: (counts["true_positives"], counts["false_positives"])}
    for wanted in _RECALLS:
        reached = (row for row in model["precision_recall"] if row[0] >= wanted)
        recall, precision, threshold = max(reached, key=lambda row: row[2])
        shown.setdefault(threshold, (recall * positives, recall * positives * (1 / precision - 1)))
    rows = []
    for threshold, (found, wrong) in sorted(shown.items(), reverse=True):
        recall, precision = found / positives, found / (found + wrong) if found else 0.0
        missed = positives - found
        rows.append(
            {
                "threshold": words.number(threshold, 4),
                "is_chosen": threshold == counts["threshold"],
                "recall": words.percent(recall),
                "precision": words.percent(precision) if found + wrong else words.NOTHING,
                "f1": words.number(_f1(precision, recall), 3),
                "false_positives": words.number(round(wrong)),
                "false_negatives": words.number(round(missed)),
                "cost": words.number(
                    costs["false_positive"] * round(wrong) + costs["false_negative"] * round(missed)
                ),
            }
        )
    return rows


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if recall else 0.0


def binary_confusion(counts: Mapping[str, float], classes: Sequence[str]) -> dict[str, Any]:
    """Returns the confusion matrix at a threshold."""
    names = list(classes[:2]) if len(classes) > 1 else ["0", "1"]
    table = [
        [counts["true_negatives"], counts["false_positives"]],
        [counts["false_negatives"], counts["true_positives"]],
    ]
    return {**confusion_table(names, table), "threshold": counts["threshold"]}


def confusion_table(
    classes: Sequence[str], table: Sequence[Sequence[float]], has_others: bool = False
) -> dict[str, Any]:
    """Returns a confusion matrix with its shades, precisions and recalls.

    `table`: weights, `[labels, predictions]`.
    """
    totals = [sum(row) for row in table]
    taken = [sum(column) for column in zip(*table, strict=True)]
    rows = []
    for number, (name, row) in enumerate(zip(classes, table, strict=True)):
        total = totals[number]
        is_class = not (has_others and number == len(classes) - 1)  # the last row may combine several classes
        rows.append(
            {
                "name": name,
                "cells": [
                    {
                        "text": words.number(value),
                        "shade": max(1, round(_SHADES * value / total)) if value else 0,
                        "share": words.percent(value / total, 0) if total else words.NOTHING,
                        "is_right": column == number and is_class,
                        "is_zero": not value,
                    }
                    for column, value in enumerate(row)
                ],
                "recall": words.percent(row[number] / total) if total and is_class else words.NOTHING,
                "precision": words.percent(row[number] / taken[number])
                if taken[number] and is_class
                else words.NOTHING,
                "total": words.number(total),
            }
        )
    return {
        "classes": list(classes),
        "rows": rows,
        "threshold": None,
        "is_large": len(classes) > _MAX_WITH_SHARES,
        "largest": largest_confusions(classes, table, has_others) if len(classes) > 2 else [],
    }


def largest_confusions(
    classes: Sequence[str], table: Sequence[Sequence[float]], has_others: bool
) -> list[dict[str, str]]:
    """Returns the most frequent wrong predictions, largest first: arguments are those of `confusion_table`.

    Those of the last class are left out if it combines several classes.
    """
    num_known = len(classes) - has_others
    wrong = [
        (table[label][answer], sum(table[label]), label, answer)
        for label in range(num_known)
        for answer in range(num_known)
        if label != answer and table[label][answer]
    ]
    # If two are equally frequent, the larger share comes first.
    wrong.sort(key=lambda confusion: (-confusion[0], confusion[1]))
    return [
        {
            "actual": classes[label],
            "predicted": classes[answer],
            "count": words.number(count),
            "total": words.number(total),
            "share": words.percent(count / total, 0),
        }
        for count, total, label, answer in wrong[:_MAX_CONFUSIONS]
    ]


def _model_and_baseline_series(
    model: Mapping[str, Any], baseline: Mapping[str, Any], key: str
) -> list[Series]:
    series = [Series("model", [(row[0], row[1]) for row in model[key]])]
    if key in baseline:
        series.append(Series("baseline", [(row[0], row[1]) for row in baseline[key]], True))
    return series


def _calibration_in_words(rows: Sequence[Mapping[str, float]]) -> str:
    usual = sum(row["weight"] for row in rows) / len(rows)
    many = [row for row in rows if row["weight"] >= usual / 2]  # small groups deviate by chance
    worst = max(many, key=lambda row: abs(row["happened"] - row["predicted"]))
    among = ""
    if len(many) < len(rows):
        among = f" of a group of at least {words.number(math.ceil(usual / 2))} examples"
    return (
        f"Largest deviation{among}: {words.percent(worst['predicted'])} predicted, "
        f"{words.percent(worst['happened'])} observed."
    )
