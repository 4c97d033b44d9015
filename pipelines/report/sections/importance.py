"""Section of the importance of features."""

from collections.abc import Mapping
from typing import Any

from pipelines.report import words
from pipelines.report.context import Context

MAX_OPEN = 20
"""Number of features that are shown at first."""


def describe(context: Context) -> dict[str, Any] | None:
    """Returns a row for each feature; None if the model was not evaluated."""
    if not context.record.metrics:
        return None
    evaluation = context.details.get("evaluation")
    importance = (evaluation or {}).get("importance")
    if not importance:
        missing = context.missing("Evaluator")
        if evaluation is not None:
            missing = (
                "Not available: it needs an evaluation model (a trainer_fn writes one), a known problem type "
                "and at least 20 examples."
            )
        return {"rows": [], "more": [], "unused": [], "left_out": [], "worst": [], "missing": missing}
    used = [feature for feature in importance["features"] if feature["growth"]]
    top = max((abs(feature["growth"]) for feature in used), default=0.0) or 1.0
    rows = [
        {
            "name": feature["feature"],
            "growth": words.signed(feature["growth"]),
            "interval": words.interval(feature["low"], feature["high"], 3),
            "relative": words.relative(feature["growth"], importance["loss"]),
            "bar": max(0.0, 100 * feature["growth"] / top),
            "is_clear": feature["low"] is not None and feature["low"] > 0,
        }
        for feature in used
    ]
    return {
        "rows": rows[:MAX_OPEN],
        "more": rows[MAX_OPEN:],
        "unused": [feature["feature"] for feature in importance["features"] if not feature["growth"]],
        "left_out": importance["left_out"],
        "num_rows": words.number(importance["num_rows"]),
        "loss": words.number(importance["loss"]),
        # Older versions took the first rows, and did not record the loss of a constant.
        "trivial_loss": words.number(importance.get("trivial_loss"))
        if "trivial_loss" in importance
        else None,
        "worst": [_error(error) for error in importance.get("worst", ())],
        "missing": None,
    }


def _error(error: Mapping[str, Any]) -> dict[str, Any]:
    is_number = "explained" not in error
    label = words.number(error["label"]) if is_number else error["label"]
    return {
        "label": label,
        "prediction": words.number(error["prediction"])
        if is_number
        else f"p({label}) = {words.number(error['probability'], 2)}",
        "loss": words.number(error["loss"]),
        "towards": "the prediction" if is_number else error["explained"],
        "contributions": [
            {**part, "cell": part["cell"] or "[missing]", "value": words.signed(part["value"])}
            for part in error["contributions"]
        ],
    }
