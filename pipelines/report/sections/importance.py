"""Section of the importance of features."""

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
    found = (evaluation or {}).get("importance")
    if not found:
        missing = context.missing("Evaluator")
        if evaluation is not None:
            missing = (
                "Not available: it needs an evaluation model (a trainer_fn writes one), a known problem type "
                "and at least 20 examples."
            )
        return {"rows": [], "more": [], "unused": [], "left_out": [], "missing": missing}
    used = [one for one in found["features"] if one["growth"]]
    top = max((abs(one["growth"]) for one in used), default=0.0) or 1.0
    rows = [
        {
            "name": one["feature"],
            "growth": words.signed(one["growth"]),
            "interval": words.interval(one["low"], one["high"], 3),
            "relative": words.relative(one["growth"], found["loss"]),
            "bar": max(0.0, 100 * one["growth"] / top),
            "is_clear": one["low"] is not None and one["low"] > 0,
        }
        for one in used
    ]
    return {
        "rows": rows[:MAX_OPEN],
        "more": rows[MAX_OPEN:],
        "unused": [one["feature"] for one in found["features"] if not one["growth"]],
        "left_out": found["left_out"],
        "num_rows": words.number(found["num_rows"]),
        "loss": words.number(found["loss"]),
        # Older versions took the first rows, and did not record the loss of a constant.
        "trivial_loss": words.number(found.get("trivial_loss"))
        if "trivial_loss" in found
        else None,
        "missing": None,
    }
