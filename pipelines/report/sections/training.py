"""Section of the training: curves, and the models that were compared."""

import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.report.plots import Plot, PlotText, Series, lines

_SPEED = ("global_step/sec", "examples/sec")
_INPUT_WAIT = "input_wait_share"  # `INPUT_WAIT` of estimator_core.summaries, which imports TensorFlow
_DIAGNOSTICS = (
    "accuracy_baseline",
    "bias",
    "fraction_of_zero_weights",
    "global_step",
    "label/mean",
    "prediction/mean",
    "learning_rate",
    _INPUT_WAIT,
    *_SPEED,
)
"""Curves that say little about the training's progress; drawn only if there are no others."""

_METRICS_OF_MODELS = ("auc", "auc_precision_recall", "accuracy")
_NUMBERED = re.compile(r"_\d+$")
_LAST = 100
_FIRST = ("loss", "average_loss", "epoch_loss")
_MUCH_WAITING = 0.3
MAX_PLOTS = 6
"""Maximal number of plots of a training; only the names of further curves are shown."""


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the plots and the table of models; None if nothing was trained."""
    record = context.record
    details = context.details.get("training")
    if details is None and not record.models:
        if "Trainer" not in {component.name for component in record.components}:
            return None
        nothing = context.missing("Trainer")
        return {"plots": [], "models": None, "missing": nothing, "others": [], "waiting": ""}
    plots, others = curve_plots(details["curves"]) if details else ([], [])
    missing = None
    if details is None:
        missing = context.missing("Trainer")
    elif not plots:
        missing = "The training wrote no event files with curves."
    return {
        "plots": plots,
        "others": others,
        "waiting": waiting_in_words(details["curves"]) if details else "",
        "models": models_table(record.models) if record.models else None,
        "missing": missing,
    }


def curve_plots(curves: Sequence[Mapping[str, Any]]) -> tuple[list[Plot], list[str]]:
    """Returns a plot for each quantity, and the names of the other quantities.

    A quantity of the training and of the evaluation, such as the loss, is one plot.
    """
    by_tag: dict[str, list[Mapping[str, Any]]] = {}
    for curve in _without_twins(curves):
        # Keras calls the loss of an epoch `epoch_loss`.
        by_tag.setdefault(curve["tag"].removeprefix("epoch_"), []).append(curve)
    _join_losses(by_tag)
    by_tag = {  # a single point is not a curve, but worth showing next to one
        tag: curves_of_tag
        for tag, curves_of_tag in by_tag.items()
        if any(len(curve["points"]) > 1 for curve in curves_of_tag)
    }
    names = sorted(by_tag, key=lambda tag: (_rank(tag), tag))
    plots = []
    drawn = [tag for tag in names if _rank(tag) < _LAST] or names
    for number, tag in enumerate(drawn[:MAX_PLOTS]):
        series = [Series(_run_name(curve["run"]), curve["points"]) for curve in by_tag[tag][:4]]
        text = PlotText(f"training-{number}", tag, _in_words(tag, series))
        plots.append(lines(text, series, "step", tag))
    return plots, [tag for tag in names if tag not in drawn[:MAX_PLOTS]]


def waiting_in_words(curves: Sequence[Mapping[str, Any]]) -> str:
    """Returns a sentence about the time that the training waited for its input; empty if unknown."""
    shares = [curve["points"][-1][1] for curve in curves if curve["tag"] == _INPUT_WAIT]
    if not shares:
        return ""
    share = max(shares)
    text = f"Time spent waiting for input data: {share:.0%}."
    if share < _MUCH_WAITING:
        return text
    return (
        f"{text} The input is slower than the steps: parse whole batches (batch before map), cache data "
        "that fit in memory, run map in parallel, and prefetch."
    )


def models_table(models: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the table of the models that were compared, from the fields of `Candidate`."""
    metrics = [name for name in _METRICS_OF_MODELS if any(name in model["metrics"] for model in models)]
    is_ensemble = sum(model["is_chosen"] for model in models) > 1
    return {
        "metrics": metrics,
        "is_ensemble": is_ensemble,
        "has_failures": any(model["failure"] for model in models),
        "rows": [
            {
                "name": model["model"],
                "is_chosen": model["is_chosen"],
                "weight": f"{model['weight']:.0%}" if is_ensemble and model["is_chosen"] else "",
                "contribution": words.number(model.get("contribution")) if is_ensemble else "",
                "dropped": f"dropped at step {_step_label(model, model['last_step'])}"
                if model["is_dropped"]
                else "",
                "loss": words.number(model["loss"]),
                "metrics": [words.number(model["metrics"].get(name)) for name in metrics],
                "step": _step_label(model, model["step"]),
                "time": words.seconds(model["seconds"]),
                "failure": model["failure"],
            }
            for model in models
        ],
    }


def _step_label(model: Mapping[str, Any], step: int) -> str:
    """Returns a step of a model, with the number of its trees."""
    per_tree = model["steps_per_tree"]
    trees = f" ({words.counted(step // per_tree, 'tree')})" if per_tree else ""
    return f"{words.number(step)}{trees}"


def _without_twins(curves: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the curves without copies: TensorFlow calls a second summary of the name `loss` `loss_1`."""
    kept: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for curve in sorted(curves, key=lambda other: len(other["tag"])):
        base = _NUMBERED.sub("", curve["tag"])
        alike = kept.setdefault((curve["run"], base), [])
        if all(curve["points"] != other["points"] for other in alike):
            is_loss = base == "loss" and not alike
            alike.append({**curve, "tag": base} if is_loss else curve)
    return [curve for alike in kept.values() for curve in alike]


def _join_losses(by_tag: dict[str, list[Mapping[str, Any]]]) -> None:
    """Draws the losses of evaluation and training together: by example, if that is about the same.

    An evaluation has a mean over batches, `loss`, and one over examples, `average_loss`, by which models are
    judged. Both are drawn only if the loss of a batch is a sum.
    """
    losses, means = by_tag.get("loss", []), by_tag.get("average_loss", [])
    runs = {curve["run"]: curve["points"] for curve in losses}
    if not means or not all(_are_alike(curve["points"], runs.get(curve["run"])) for curve in means):
        return
    mean_runs = {curve["run"] for curve in means}
    by_tag["loss"] = [curve for curve in losses if curve["run"] not in mean_runs] + means
    del by_tag["average_loss"]


def _are_alike(points: Sequence[Sequence[float]], others: Sequence[Sequence[float]] | None) -> bool:
    """Returns whether the values differ by a factor of less than 2, most of the time."""
    ratios = [point[1] / other[1] for point, other in zip(points, others or (), strict=False) if other[1]]
    return bool(ratios) and 0.5 < median(ratios) < 2


def _rank(tag: str) -> int:
    if tag in _FIRST:
        return _FIRST.index(tag)
    is_diagnostic = tag in _DIAGNOSTICS or tag.endswith(("activation", "zero_values"))
    return _LAST if is_diagnostic else 10


def _run_name(run: str) -> str:
    if not run or run == "train":
        return "training"
    if "/" in run:  # of a member of an ensemble
        member, _, folder = run.partition("/")
        return f"{_run_name(folder)} of {member}"
    return "evaluation" if run.startswith(("eval", "validation")) else run


def _in_words(tag: str, series: Sequence[Series]) -> str:
    parts = []
    for line in series:
        (first_step, first), (last_step, last) = line.points[0], line.points[-1]
        if len(line.points) == 1:
            parts.append(f"{line.name}: {words.number(first)} at step {words.number(first_step)}")
            continue
        parts.append(
            f"{line.name}: from {words.number(first)} at step {words.number(first_step)} to "
            f"{words.number(last)} at step {words.number(last_step)}"
        )
    return f"{tag} by step. " + "; ".join(parts) + "."
