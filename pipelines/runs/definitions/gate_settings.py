"""Settings of the gate that come from the run that pushed the served version."""

from dataclasses import replace
from typing import Any

from components.evaluator.gate.default_checks import DefaultChecks
from components.evaluator.gate.leak_doubts import dominant_column
from components.evaluator.gate.slice_columns import MAX_VALUES
from components.evaluator.gate.slice_doubts import parse_excesses
from pipelines.root.baseline import baseline_when_pushed
from pipelines.root.served_run import serving_run, weighs_alike
from pipelines.runs.definitions.run_plan import RunPlan

MAX_CATEGORIES, MAX_NUMBERS = 20, 10
"""Numbers of columns that divide the examples for the gate's doubts: a number takes 4 bytes an example."""


def gate_settings(plan: RunPlan) -> DefaultChecks | None:
    """Returns the settings of the default checks and the doubts; None if they are switched off."""
    if plan.code.default_checks is None:
        return None
    served = serving_run(plan.root)
    is_comparable = served is not None and weighs_alike(served, plan.config)
    details: dict[str, Any] = {}
    if served is not None:
        details = plan.root.details(served.same_as or served.run_id).read("evaluation") or {}
    then = parse_excesses(details.get("excesses", ()) if is_comparable else ())
    categories, numbers = _columns(plan)
    importance = details.get("importance") or {"features": ()}
    important = [excess["feature"] for excess in importance["features"]]
    first = dict.fromkeys((*(excess.slice.column for excess in then), *important, *numbers))
    return replace(
        plan.code.default_checks,
        baseline_then=baseline_when_pushed(plan.root) if is_comparable else None,
        doubts=plan.config.gate.doubts,
        known_doubts=plan.doubts,
        accepted=tuple(sorted(_accepted_columns(plan, dominant_column(importance)))),
        categories=tuple(categories[:MAX_CATEGORIES]),
        numbers=tuple([name for name in first if name in numbers][:MAX_NUMBERS]),
        slices_then=then,
    )


def _accepted_columns(plan: RunPlan, served: str | None) -> set[str]:
    """Returns the columns that the model may rely on entirely.

    Columns that the user has named, that are doubted already, or that the served model relies on.
    """
    # A date is many features: hour, weekday, season, trend. Where some are missing, the gap may be the leak.
    dates = {row.name for row in plan.columns if row.kind == "date" and not row.missing_share}
    leaks = (leak.column for leak in plan.leaks)
    return {*plan.config.columns, *dates, *leaks, *filter(None, [served])}


def _columns(plan: RunPlan) -> tuple[list[str], list[str]]:
    """Returns the columns with few values, and those of numbers."""
    read = plan.code.plan.columns if plan.code.plan else tuple(plan.profile.columns)
    categories, numbers = [], []
    for name in read:
        column = plan.profile.columns.get(name)
        if column is None or name == plan.config.data.label or name in plan.moving_columns:
            continue
        if column.num_distinct is not None and column.num_distinct <= MAX_VALUES:
            categories.append(name)
        elif column.is_numeric:
            numbers.append(name)
    return categories, numbers
