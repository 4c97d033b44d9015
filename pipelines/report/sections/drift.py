"""Section of drift and anomalies: the findings of the ExampleValidator, and the drift of each column."""

from typing import Any

from pipelines.artifacts.anomalies import NOTE_PREFIX
from pipelines.report import words
from pipelines.report.context import Context

_MEASURES = {"l_infty": "L-infinity distance", "jensen_shannon_divergence": "Jensen-Shannon divergence"}
_MAX_ROWS = 40


def describe(context: Context) -> dict[str, Any] | None:
    """Returns the anomalies and the distances; None if the data were not validated."""
    details = context.details.get("anomalies")
    record = context.record
    noted = [note.removeprefix(NOTE_PREFIX) for note in record.notes if note.startswith(NOTE_PREFIX)]
    if details is None:
        if not noted and "ExampleValidator" not in {component.name for component in record.components}:
            return None
        anomalies = [{"text": text, "tone": "warn", "mark": "!", "word": "found"} for text in noted]
        missing = context.missing("ExampleValidator")
        return {"anomalies": anomalies, "rows": [], "more": [], "missing": missing}
    rows = sorted((_row(entry) for entry in details.get("drift", ())), key=lambda row: -float(row["ratio"]))
    return {
        "anomalies": [_anomaly(finding) for finding in details.get("found", ())],
        "rows": rows[:_MAX_ROWS],
        "more": rows[_MAX_ROWS:],
        "missing": None,
    }


def _anomaly(finding: dict[str, Any]) -> dict[str, Any]:
    if finding["is_breaking"]:
        return {"text": finding["text"], "tone": "bad", "mark": "✗", "word": "breaks training"}
    word = "drift" if finding.get("is_drift") else "warning"
    return {"text": finding["text"], "tone": "warn", "mark": "!", "word": word}


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    limit = entry["limit"] or 1.0
    ratio = entry["value"] / limit
    return {
        "column": entry["column"],
        "split": entry["split"],
        "measure": _MEASURES.get(entry["measure"], entry["measure"]),
        "value": words.number(entry["value"], 3),
        "limit": words.number(entry["limit"], 3),
        "ratio": ratio,
        "bar": min(100.0, 50 * ratio),
        "exceeds": ratio > 1,
    }
