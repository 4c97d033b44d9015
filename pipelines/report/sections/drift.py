"""Section of drift and anomalies: the findings of the ExampleValidator, and the drift of each column."""

from typing import Any

from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.report import words
from pipelines.report.context import Context

_MEASURES = {
    "l_infty": "L-infinity distance",
    "jensen_shannon_divergence": "Jensen-Shannon divergence",
}
_MAX_ROWS = 40


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the anomalies and the distances; None if the data were not validated."""
    details = context.details.get("anomalies")
    record = context.record
    noted = [
        note.removeprefix(NOTE_PREFIX) for note in record.notes if note.startswith(NOTE_PREFIX)
    ]
    if details is None:
        if not noted and "ExampleValidator" not in {one.name for one in record.components}:
            return None
        anomalies = [{"text": text, "tone": "warn", "mark": "!", "word": "found"} for text in noted]
        missing = context.missing("ExampleValidator")
        return {"anomalies": anomalies, "rows": [], "more": [], "missing": missing}
    rows = sorted(
        (_row(one) for one in details.get("drift", ())), key=lambda row: -float(row["ratio"])
    )
    return {
        "anomalies": [_anomaly(one) for one in details.get("found", ())],
        "rows": rows[:_MAX_ROWS],
        "more": rows[_MAX_ROWS:],
        "missing": None,
    }


def _anomaly(found: dict[str, Any]) -> dict[str, Any]:
    if found["is_breaking"]:
        return {"text": found["text"], "tone": "bad", "mark": "✗", "word": "breaks training"}
    word = "drift" if found.get("is_drift") else "warning"
    return {"text": found["text"], "tone": "warn", "mark": "!", "word": word}


def _row(found: dict[str, Any]) -> dict[str, Any]:
    limit = found["limit"] or 1.0
    ratio = found["value"] / limit
    return {
        "column": found["column"],
        "split": found["split"],
        "measure": _MEASURES.get(found["measure"], found["measure"]),
        "value": words.number(found["value"], 3),
        "limit": words.number(found["limit"], 3),
        "ratio": ratio,
        "bar": min(100.0, 50 * ratio),
        "exceeds": ratio > 1,
    }
