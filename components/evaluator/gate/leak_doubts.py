"""A doubt about a model that relies almost entirely on one column, which may leak the label.

An honest column alone can be as good as a leak: the width of a petal leaves 6 % of the error in telling
three species of iris apart, a cancellation date that is filled in for 80 % of the churned customers 20 %. But
other columns know part of the same, and a model uses them as well. A leak makes all others superfluous.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

MAX_LOSS_LEFT = 0.5
"""Share of the trivial model's loss above which a model is not good enough to have seen the label."""

MIN_TIMES_OTHERS = 10.0
"""A leak's importance is at least this many times that of all other columns together."""

_MIN_COLUMNS = 5  # with the label: among two or three columns, one often explains everything


def dominant_column(importance: Mapping[str, Any]) -> str | None:
    """Returns the column that a model relies on; None if there is none, or not all columns were measured."""
    features = importance["features"]
    trivial_loss = importance.get("trivial_loss")  # older versions did not record it
    if not trivial_loss or len(features) < _MIN_COLUMNS or importance.get("left_out"):
        return None
    top, *others = sorted(features, key=lambda feature: -(feature["growth"] or 0.0))
    is_good = importance["loss"] <= MAX_LOSS_LEFT * trivial_loss
    if is_good and (top["low"] or 0.0) > MIN_TIMES_OTHERS * _growth(others):
        return str(top["feature"])
    return None


def leak_doubts(importance: Mapping[str, Any], accepted: Collection[str]) -> tuple[str, ...]:
    """Returns the doubt about the column that a model relies on, if any."""
    name = dominant_column(importance)
    if name is None or name in accepted:
        return ()
    (top,) = (feature for feature in importance["features"] if feature["feature"] == name)
    others = [feature for feature in importance["features"] if feature is not top]
    return (
        f"column {name!r} may leak the label: when its values are shuffled, the loss grows from "
        f"{importance['loss']:.3g} by {top['growth']:.3g}, and for all other columns together by "
        f"{_growth(others):.3g}. If it is not known at prediction time, leave it out: [columns] "
        f'{json.dumps(name, ensure_ascii=False)} = "ignore" (a module must not read it); if it is, name its '
        "kind there, or approve the model",
    )


def _growth(features: list[dict[str, Any]]) -> float:
    return sum(max(0.0, feature["growth"] or 0.0) for feature in features)
