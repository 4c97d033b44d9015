"""Detects that new data differ from the data with which the served model was pushed.

The checks compare two models on the same new data, so damaged labels make both look worse alike. The
served model reveals it: it has not changed, and yet its metrics have.
"""

from collections.abc import Mapping

from components.evaluator.gate.default_checks import ValueThen
from pipelines.root import Root
from pipelines.root.served_run import serving_run

Interval = tuple[float | None, float | None]


def baseline_when_pushed(root: Root) -> tuple[ValueThen, ...] | None:
    """Returns the metrics of the served version, and of the trivial model, from that version's run.

    None if they are not known. A run that is resumed after its push finds its own: the data are the same
    then.
    """
    record = serving_run(root)
    found = []
    for check in record.checks if record else ():
        metric, value, reference = check["metric"], check["value"], check["reference"]
        if check["against"] == "trivial" and value is not None and reference is not None:
            interval = record.intervals.get(metric, (None, None)) if record else (None, None)
            found.append(ValueThen(metric, value, reference, interval))
    return tuple(found) or None


def changed_data_note(
    version: str | None,
    metrics_then: Mapping[str, float | None],
    intervals_then: Mapping[str, Interval],
    metrics_now: Mapping[str, float | None],
    intervals_now: Mapping[str, Interval],
) -> str | None:
    """Returns a sentence if a metric of the baseline has changed by more than chance; otherwise None."""
    changes = [
        f"{name} was {metrics_then[name]:.5g} and is {metrics_now[name]:.5g}"
        for name, now in intervals_now.items()
        if name in intervals_then
        and metrics_then.get(name) is not None
        and metrics_now.get(name) is not None
        and _are_apart(intervals_then[name], now)
    ]
    if not changes:
        return None
    return (
        f"the data or their meaning have changed: of version {version}, {' and its '.join(changes)}, "
        "which is more than chance. Look at the labels before you trust either model"
    )


def _are_apart(first: Interval, second: Interval) -> bool:
    (low, high), (other_low, other_high) = first, second
    return (high is not None and other_low is not None and high < other_low) or (
        low is not None and other_high is not None and low > other_high
    )
