"""Section "Changes since the previous run"."""

from typing import Any

from pipelines.report import words
from pipelines.report.context import Context
from pipelines.root.comparison import Difference, compare_runs, recorded_sections, shown_pair

MAX_OPEN = 12
"""Number of rows of a part that are shown at first."""

_TITLES = {
    "outcome": "Outcome",
    "metrics": "Metrics",
    "data": "Data",
    "columns": "Columns",
    "configuration": "Configuration",
    "code": "Code",
    "model": "Model",
    "environment": "Environment",
    "durations": "Durations",
}


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the differences from the previous run, by part; None if this is the first run."""
    previous = context.previous
    if previous is None:
        return None
    differences = compare_runs(previous, context.record)
    parts = []
    for section, title in _TITLES.items():
        rows = [_row(difference) for difference in differences if difference.section == section]
        if rows:
            parts.append({"title": title, "rows": rows[:MAX_OPEN], "more": rows[MAX_OPEN:]})
    recorded = recorded_sections(previous) | recorded_sections(context.record)
    unchanged = recorded - {difference.section for difference in differences}
    same = [title for section, title in _TITLES.items() if section in unchanged]
    return {
        "previous": previous.run_id,
        "previous_state": words.state(previous.status),
        "parts": parts,
        "same": ", ".join(same).lower(),
    }


def _row(difference: Difference) -> dict[str, str]:
    before, after = shown_pair(difference)
    change = difference.change
    return {
        "name": difference.name,
        "before": before,
        "after": after,
        "change": "" if change is None else words.signed(change, 3),
    }
