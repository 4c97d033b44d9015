"""Section of the verdict: a sentence, the headline metrics, and every check with its bound."""

from typing import Any

from pipelines.config.load import is_of_tfx_pipeline
from pipelines.data.spans import name_spans
from pipelines.report import words
from pipelines.report.context import Context
from pipelines.root.check_records import against_text, interval_text, subject
from pipelines.root.records import RunRecord

_MAX_CARDS = 4


def describe(context: Context) -> dict[str, Any]:
    """Returns the verdict, the headline metrics and every check."""
    record = context.record
    failures = [str(check["message"]) for check in record.checks if not check["passed"]]
    is_listed = record.reason == "; ".join(failures) or record.status == "held"  # see the doubts
    return {
        "state": words.state(record.shown_status),
        "sentence": verdict_sentence(record),
        "reason": None if is_listed else record.reason,
        "failures": failures if record.reason == "; ".join(failures) else [],
        "doubts": list(record.doubts),
        "facts": _facts(context),
        "cards": _cards(record),
        "checks": [_check(check) for check in record.checks],
        "num_passed": sum(bool(check["passed"]) for check in record.checks),
        "not_checked": list(record.not_checked),
        "notes": list(record.notes),
    }


def verdict_sentence(record: RunRecord) -> str:
    """Returns the outcome of the run, in one or two sentences."""
    failed = [check for check in record.checks if not check["passed"]]
    count = f"{len(record.checks)} check{'s' if len(record.checks) != 1 else ''}"
    if record.status == "pushed":
        if record.version is None:  # a TFX pipeline's Pusher has its own folder, which a note names
            return "The model was pushed."
        approved = " after it was approved" if record.decision else ""
        passed = f"passed {count} and was" if record.checks else "was"
        what = f"The model {passed} pushed as version {record.version}{approved}."
        if record.baseline_version is None:
            if is_of_tfx_pipeline(record.config):  # it may compare with nothing
                return what
            return what + " It is the first: there was no version to compare it with."
        return what + f" It was compared with version {record.baseline_version}."
    if record.status == "finished":
        return "All components have finished. The pipeline has no Pusher."
    if record.status == "unchanged":
        if record.serving_version is None:
            return "Nothing that the run depends on has changed."
        return (
            f"The model had been pushed before, so nothing was pushed; version {record.serving_version} is "
            "live."
        )
    serving = (
        f"Version {record.serving_version} stays live." if record.serving_version else "No version is live."
    )
    if record.status == "held":
        return _held_sentence(record, count, serving)
    if record.status == "not_blessed":
        if failed:
            lost = f"{len(failed)} of {count} failed"
        elif record.checks and record.stopped_by == "ServingCheck":
            lost = f"The model passed {count}, but the ServingCheck stopped it"
        else:
            lost = "The model was not good enough"
        return f"{lost}, so nothing was pushed. {serving}"
    if record.status == "running":
        return "The run has not ended."
    how = "was interrupted" if record.status == "interrupted" else "failed"
    where_it_failed = f" in {record.stopped_by}" if record.stopped_by else ""
    return f"The run {how}{where_it_failed}; nothing was pushed."


def _held_sentence(record: RunRecord, count: str, serving: str) -> str:
    passed = f"The model passed {count}, but there are doubts about the data"
    if record.decision and record.decision.kind != "approved":
        return f"{passed}. It was held, and {record.decision}."
    run_id = record.same_as or record.run_id
    return (
        f"{passed}, so nothing was pushed: a person has to decide. `approve {run_id} --because REASON` "
        f"pushes this model, `--reject` discards it. {serving}"
    )


def _facts(context: Context) -> list[tuple[str, str]]:
    record = context.record
    elapsed = words.duration_secs(record.started, record.finished)
    facts = [
        ("Run", record.run_id),
        ("Started", words.moment(record.started)),
        ("Took", words.seconds(elapsed)),
    ]
    if record.spans:
        facts.append(("Data", name_spans(record.spans)))
    elif path := record.section("data").get("path"):
        facts.append(("Data", str(path)))
    if record.version:
        state = context.root.versions.state(record.version)
        facts.append(("Version", f"{record.version} ({state} when this page was made)"))
    if record.baseline_version:
        facts.append(("Compared with", f"version {record.baseline_version}"))
    if record.decision:
        facts.append(("Decision", f"{record.decision} ({words.moment(record.decision.time)})"))
    if record.serving_version:
        facts.append(("Served at the end", f"version {record.serving_version}"))
    return facts


def _cards(record: RunRecord) -> list[dict[str, Any]]:
    """Returns the first metrics, with their intervals and the baseline's values."""
    cards = []
    for name, value in list(record.metrics.items())[:_MAX_CARDS]:
        baseline = record.baseline_metrics.get(name)
        low, high = record.intervals.get(name, (None, None))
        cards.append(
            {
                "name": name,
                "value": words.metric(name, value, 4),
                "interval": "" if low is None and high is None else words.metric_interval(name, low, high),
                "baseline": None if baseline is None else words.metric(name, baseline, 4),
                "change": None
                if baseline is None or value is None
                else words.metric_change(name, value - baseline, 3),
            }
        )
    return cards


def _check(check: dict[str, Any]) -> dict[str, Any]:
    confidence = check["confidence"]
    return {
        **check,
        "metric": subject(check),
        "against": against_text(check),
        "interval": interval_text(check) + (f" ({100 * confidence:g} %)" if confidence else ""),
        "relation": "≥" if check["higher_is_better"] else "≤",
    }
