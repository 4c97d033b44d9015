"""Section of the data: statistics by column with small histograms, and the label by split."""

import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pipelines.data.formats.number_format import NumberFormat
from pipelines.data.formats.units import SCALE_NAMES
from pipelines.data.missing import is_missing
from pipelines.report import words
from pipelines.report.context import Context

MAX_OPEN = 40
"""Number of columns that are shown at first; further ones need a click."""

_WIDTH, _HEIGHT = 120, 34
_MAX_CLASSES = 30
_SPLIT_NAMES = ("train", "eval")
_COUNT = re.compile(r"\d+ values?\b")

_Show = Callable[..., str]


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the columns and the label; None for a run that recorded nothing about its data."""
    record = context.record
    statistics = context.details.get("statistics")
    if not (record.columns or statistics or record.label_by_split):
        return None
    rows = column_rows(record.columns, statistics)
    return {
        "rows": rows[:MAX_OPEN],
        "more": rows[MAX_OPEN:],
        "num_columns": statistics["num_columns"] if statistics else len(rows),
        "splits": dict(statistics["splits"]) if statistics else {},
        "has_statistics": statistics is not None,
        "missing": None if statistics else context.missing("StatisticsGen"),
        "label": label_table(record.label_by_split) if record.label_by_split else None,
        "label_column": record.section("data").get("label"),
    }


def column_rows(
    columns: Sequence[Mapping[str, Any]], statistics: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Returns a row for each column, in the order of the CSV.

    `statistics`: see `describe_statistics`; None if they were not recorded.
    """
    statistics_by_name = {entry["name"]: entry for entry in statistics["columns"]} if statistics else {}
    planned = {entry["name"]: entry for entry in columns}
    rows = []
    for name in dict.fromkeys((*planned, *statistics_by_name)):
        column, measured = planned.get(name, {}), statistics_by_name.get(name)
        row: dict[str, Any] = {
            "name": name,
            "kind": column.get("kind") or (measured or {}).get("type", ""),
            "use": column.get("use", ""),
            "note": column.get("note", ""),
            "missing": column.get("missing_share"),
            "summary": "",
            "details": [],
            "plot": None,
        }
        if measured and statistics:
            row |= _measured(measured, statistics["splits"], column, row["kind"])
        rows.append(row)
    return rows


def _measured(
    column: Mapping[str, Any], sizes: Mapping[str, int], planned: Mapping[str, Any], kind: str
) -> dict[str, Any]:
    """Returns the fields of a row that come from the statistics.

    `planned`: column of the plan, whose share of missing cells counts `N/A` and the like, while the
    statistics only see empty cells; empty if there is no plan.
    `kind`: kind of the column; the cells of numbers and dates are shown as the values that they stand for.
    """
    splits: Mapping[str, Mapping[str, Any]] = column["splits"]
    if kind in ("number", "date"):
        splits = {name: {**values, **values.get("parsed", {})} for name, values in splits.items()}
    first = splits.get("train") or next(iter(splits.values()), {})
    total = sum(sizes.values()) or 1
    missing_by_split = [(sizes[name], values["missing"]) for name, values in splits.items() if name in sizes]
    row: dict[str, Any] = {}
    if planned.get("missing_share") is None:
        row["missing"] = sum(missing for _, missing in missing_by_split) / total
    if "histogram" in first:
        is_date = first.get("quantity") == "days"
        show, show_deviation = _value_words(planned, first, column["type"])
        row["summary"] = (
            f"mean {show(first['mean'], 4)}, from {show(first['min'], 4)} to {show(first['max'], 4)}"
        )
        row["details"] = [
            {
                "split": name,
                "values": [
                    ("mean", show(values.get("mean"))),
                    (f"standard deviation{', days' * is_date}", show_deviation(values.get("std_dev"))),
                    ("minimum", show(values.get("min"))),
                    ("median", show(values.get("median"))),
                    ("maximum", show(values.get("max"))),
                    *([] if is_date else [("zeros", words.number(values.get("zeros")))]),
                    ("missing", words.number(values.get("missing"))),
                ],
            }
            for name, values in splits.items()
        ]
        histograms = {name: values.get("histogram", []) for name, values in splits.items()}
        row["plot"] = number_plot(histograms, show)
    elif "top" in first:
        frequent = next((label for label, _ in first["top"] if not is_missing(label)), "")
        # The use counts the values of all splits, without those that stand for a missing cell.
        count = "" if _COUNT.search(planned.get("use", "")) else words.counted(first["unique"], "value")
        row["summary"] = ", ".join(filter(None, (count, f"most often {frequent}" if frequent else "")))
        row["details"] = [
            {
                "split": name,
                "values": [
                    *((label, words.number(count)) for label, count in values.get("top", ())),
                    ("different values", words.number(values.get("unique"))),
                    ("empty", words.number(values.get("missing"))),
                ],
            }
            for name, values in splits.items()
        ]
        row["plot"] = category_plot({name: values.get("top", []) for name, values in splits.items()})
    return row


def _value_words(planned: Mapping[str, Any], values: Mapping[str, Any], kind: str) -> tuple[_Show, _Show]:
    """Returns functions that show a value of a column, and a difference of two, as the plan reads cells."""
    if values.get("quantity") == "days":
        return _date, words.number
    written = NumberFormat(**(planned.get("number_format") or {}))
    if written.clock:
        return _clock, _seconds
    if written.scale == "time":
        return _seconds, _seconds
    cells = [cell.strip() for cell, _ in values.get("top", ()) if not is_missing(cell)]
    if cells and all(cell.endswith("%") for cell in cells):
        return _in_percent, _in_percent
    unit = written.currency or written.unit or SCALE_NAMES.get(written.scale or "multiples", "")
    if unit:
        show = functools.partial(_with_unit, unit=unit)
        return show, show
    low, high = values.get("min"), values.get("max")
    if kind == "whole numbers" and low is not None and high is not None and _is_year(low) and _is_year(high):
        return _year, words.number
    return words.number, words.number


def _with_unit(value: float | None, digits: int = 5, *, unit: str) -> str:
    return words.NOTHING if value is None else f"{words.number(value, digits)} {unit}"


def _in_percent(share: float | None, digits: int = 5) -> str:
    return words.NOTHING if share is None else f"{words.number(100 * share, digits)} %"


def _seconds(value: float | None, digits: int = 0) -> str:
    return words.seconds(value)


def _clock(value: float | None, digits: int = 0) -> str:
    """Returns seconds as `h:mm`, or `h:mm:ss` if they are not whole minutes."""
    if value is None:
        return words.NOTHING
    minutes, secs = divmod(round(abs(value)), 60)
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02d}" + (f":{secs:02d}" if secs else "")


def _is_year(value: float) -> bool:
    return 1_500 <= value <= 2_100


def _year(value: float | None, digits: int = 0) -> str:
    return words.NOTHING if value is None else f"{value:.0f}"


def number_plot(
    histograms: Mapping[str, Sequence[Sequence[float]]], show: _Show = words.number
) -> dict[str, Any] | None:
    """Returns a small histogram: bars of the training split, an outline of the evaluation split."""
    train, other = (histograms.get(name, ()) for name in _SPLIT_NAMES)
    shown = train or other
    if not shown:
        return None
    low = min(bucket[0] for bucket in (*train, *other))
    high = max(bucket[1] for bucket in (*train, *other))
    if high <= low:  # one value
        return _small_plot("M46 1h28v32h-28z", "", "one value")
    densities = [_densities(part) for part in (train, other)]
    top = max((density for part in densities for *_, density in part), default=0.0) or 1.0
    paths = []
    for part in densities:
        points = [
            (
                _WIDTH * (left - low) / (high - low),
                _WIDTH * (right - low) / (high - low),
                _HEIGHT - 1 - (_HEIGHT - 2) * density / top,
            )
            for left, right, density in part
        ]
        paths.append(points)
    bars = "".join(
        f"M{left:.4g} {_HEIGHT - 1}V{height:.4g}H{right:.4g}V{_HEIGHT - 1}z"
        for left, right, height in paths[0]
    )
    outline = ""
    if paths[1]:
        outline = f"M{paths[1][0][0]:.4g} {_HEIGHT - 1}" + "".join(
            f"V{height:.4g}H{right:.4g}" for _, right, height in paths[1]
        )
    text = f"from {show(low, 4)} to {show(high, 4)}"
    return _small_plot(bars, outline, text)


def category_plot(tops: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, Any] | None:
    """Returns small bars of the most frequent values, in the order of the training split."""
    train, other = (dict(map(tuple, tops.get(name, ()))) for name in _SPLIT_NAMES)
    names = list(train or other)[:10]
    if not names:
        return None
    totals = [sum(part.values()) or 1.0 for part in (train, other)]
    top = max(
        (part.get(name, 0) / total for part, total in zip((train, other), totals, strict=True)
         for name in names)
    ) or 1.0  # fmt: skip
    step = _WIDTH / len(names)
    bars = outline = ""
    for number, name in enumerate(names):
        left, right = number * step + 0.08 * step, (number + 1) * step - 0.08 * step
        height = _HEIGHT - 1 - (_HEIGHT - 2) * train.get(name, 0) / totals[0] / top
        bars += f"M{left:.4g} {_HEIGHT - 1}V{height:.4g}H{right:.4g}V{_HEIGHT - 1}z"
        if other:
            level = _HEIGHT - 1 - (_HEIGHT - 2) * other.get(name, 0) / totals[1] / top
            outline += f"M{left:.4g} {level:.4g}H{right:.4g}"
    text = f"the {len(names)} most frequent values" if len(names) > 1 else "the most frequent value"
    return _small_plot(bars, outline, text)


def label_table(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the distribution of the label by split, as the fields of `LabelComparison`."""
    names = list(comparison["shares"])
    is_classes = comparison["test"] == "chi-square"
    first = comparison["shares"][names[0]]
    levels = list(first)
    if is_classes:
        levels = sorted(levels, key=lambda level: -max(comparison["shares"][name][level] for name in names))[
            :_MAX_CLASSES
        ]
    form = words.percent if is_classes else words.number
    return {
        "column": comparison["column"],
        "test": comparison["test"],
        "p_value": f"{comparison['p_value']:.3g}",
        "distance": f"{comparison['distance']:.4f}",
        "what": "class" if is_classes else "share of the rows below",
        "splits": [(name, comparison["sizes"][name]) for name in names],
        "rows": [(level, [form(comparison["shares"][name][level]) for name in names]) for level in levels],
        "left_out": len(first) - len(levels),
    }


def _date(days: float | None, digits: int = 0) -> str:
    """Returns the date of days since 1970; `digits` is an argument of numbers."""
    return words.NOTHING if days is None else str(np.datetime64(math.floor(days), "D"))


def _densities(buckets: Sequence[Sequence[float]]) -> list[tuple[float, float, float]]:
    total = sum(bucket[2] for bucket in buckets) or 1.0
    return [(low, high, count / total / ((high - low) or 1.0)) for low, high, count in buckets if high > low]


def _small_plot(bars: str, outline: str, text: str) -> dict[str, Any]:
    return {"bars": bars, "outline": outline, "text": text, "width": _WIDTH, "height": _HEIGHT}
