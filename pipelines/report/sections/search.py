"""Section of the search: its trials, their progress, and the importance of the parameters."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.artifacts.search import search_in_words, values_in_words
from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.plots import Plot, PlotText, dots_and_best

MAX_OPEN = 20
"""Number of trials that are shown at first."""


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the plot and the tables; None if the run has no search."""
    search = context.details.get("search")
    if search is None:
        if "Tuner" not in {component.name for component in context.record.components}:
            return None
        return {"missing": context.missing("Tuner")}
    trials, summary = ranked(search), search_in_words(search)
    rows = [_row(trial, search) for trial in trials]
    return {
        "missing": None,
        "summary": summary[:1].upper() + summary[1:],
        "metric": metric_label(search),
        "plot": history_plot(search),
        "importance": importance_rows(search["importance"]),
        "rows": rows[:MAX_OPEN],
        "more": rows[MAX_OPEN:],
    }


def ranked(search: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Returns the trials: those with a value first, the best one at the top, then the others in order."""
    sign = -1 if search["direction"] == "maximize" else 1

    def rank(trial: Mapping[str, Any]) -> tuple[bool, float, int]:
        value = trial["value"]
        return value is None, sign * (value or 0.0), trial["number"]

    return sorted(search["trials"], key=rank)


def metric_label(search: Mapping[str, Any]) -> str:
    """Returns the name of the metric, with the number of folds that its values are the mean of."""
    folds = search["folds"]
    return f"{search['metric']} (mean of {folds} folds)" if folds > 1 else str(search["metric"])


def history_plot(search: Mapping[str, Any]) -> Plot | None:
    """Returns the plot of the trials' values and of the best one so far; None with fewer than two values."""
    points = [(trial["number"], trial["value"]) for trial in search["trials"] if trial["value"] is not None]
    if len(points) < 2:
        return None
    better = max if search["direction"] == "maximize" else min
    best: list[tuple[float, float]] = []
    for number, value in points:
        best.append((number, better(value, best[-1][1]) if best else value))
    reached = next(number for number, value in points if value == best[-1][1])
    metric = metric_label(search)
    description = (
        f"{metric} by trial. The best so far goes from {words.number(best[0][1])} in trial {best[0][0]} to "
        f"{words.number(best[-1][1])} in trial {reached}."
    )
    text = PlotText("search-history", "Trials", description)
    return dots_and_best(text, points, best, "trial", metric)


def importance_rows(shares: Mapping[str, float]) -> list[dict[str, Any]]:
    """Returns a row for each parameter, the most important first."""
    top = max(shares.values(), default=0.0) or 1.0
    ranking = sorted(shares.items(), key=lambda item: -item[1])
    return [
        {"name": name, "share": words.percent(share), "bar": 100 * share / top} for name, share in ranking
    ]


def _row(trial: Mapping[str, Any], search: Mapping[str, Any]) -> dict[str, Any]:
    evaluations: Sequence[Any] = trial["evaluations"]
    marks = []
    is_chosen = trial["number"] == search["chosen"]
    if trial["number"] == search["best"]:
        marks.append("✓ best" if is_chosen else "best")
    elif is_chosen:
        marks.append("✓ used")
    if trial["is_first"]:
        marks.append("without a search")
    if trial["state"] != "finished":
        marks.append(trial["state"])
    if trial["attempts"] > 1:
        marks.append("resumed")
    return {
        "number": trial["number"],
        "is_chosen": is_chosen,
        "marks": ", ".join(marks),
        "value": words.number(trial["value"]),
        "step": words.number(trial["step"]),
        "evaluations": words.number(len(evaluations)),
        "time": words.seconds(trial["secs"]),
        "values": values_in_words(trial["values"]),
        "reason": trial["reason"],
    }
