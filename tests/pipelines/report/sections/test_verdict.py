import dataclasses

from pipelines.report.sections.verdict import describe, verdict_sentence
from pipelines.root.records import Decision


def test_the_verdict_in_words(full, failed):
    record = full.record
    assert verdict_sentence(record) == (
        "The model passed 2 checks and was pushed as version 1770000000. It was compared with version "
        "1760000000."
    )
    for changes, part in (
        ({"baseline_version": None}, "It is the first"),
        ({"status": "not_blessed"}, "1 of 2 checks failed, so nothing was pushed. Version"),
        ({"status": "not_blessed", "serving_version": None}, "No version is live."),
        ({"status": "unchanged"}, "version 1770000000 is live"),
        ({"status": "unchanged", "serving_version": None}, "Nothing that the run depends on has"),
        ({"status": "finished"}, "All components have finished"),
        ({"version": None}, "The model was pushed."),
        ({"checks": ()}, "The model was pushed as version 1770000000. It was compared"),
        ({"status": "running"}, "The run has not ended."),
        ({"status": "interrupted", "components": ()}, "The run was interrupted; nothing was"),
    ):
        assert part in verdict_sentence(dataclasses.replace(record, **changes)), changes
    assert "failed in CsvExampleGen" in verdict_sentence(failed.record)


def test_a_held_model_and_its_decision_in_words(full):
    held = dataclasses.replace(
        full.record, status="held", reason="one; two", doubts=("one", "two"), version=None
    )
    sentence = verdict_sentence(held)
    assert sentence.startswith("The model passed 2 checks, but there are doubts about the data, so ")
    assert f"`approve {held.run_id} --because REASON` pushes this model" in sentence
    decision = Decision("rejected", "ann", "2026-01-31T12:00:00+00:00", "wrong labels")
    rejected = dataclasses.replace(held, decision=decision)
    assert verdict_sentence(rejected).endswith("It was held, and rejected by ann: wrong labels.")
    found = describe(dataclasses.replace(full, record=rejected))
    assert (found["state"]["word"], found["doubts"], found["reason"]) == (
        "rejected", ["one", "two"], None,
    )  # fmt: skip
    assert dict(found["facts"])["Decision"] == ("rejected by ann: wrong labels (2026-01-31 12:00:00 UTC)")
    approved = dataclasses.replace(full.record, decision=dataclasses.replace(decision, kind="approved"))
    assert "as version 1770000000 after it was approved." in verdict_sentence(approved)


def test_failed_checks_are_a_list_unless_the_reason_says_more(full):
    check = full.record.checks[0]
    checks = tuple({**check, "passed": False, "message": text} for text in ("a; 1 of 2", "b"))
    record = dataclasses.replace(full.record, checks=checks, reason="a; 1 of 2; b")
    found = describe(dataclasses.replace(full, record=record))
    assert (found["failures"], found["reason"]) == (["a; 1 of 2", "b"], None)
    record = dataclasses.replace(record, reason="the ServingCheck: x")
    found = describe(dataclasses.replace(full, record=record))
    assert (found["failures"], found["reason"]) == ([], "the ServingCheck: x")


def test_every_bound_value_and_interval(full):
    found = describe(full)
    first = found["checks"][0]
    assert (first["against"], first["relation"], first["interval"]) == (
        "trivial model", "≥", "+0.27 to no bound (90 %)",
    )  # fmt: skip
    assert found["num_passed"] == 1
    card = found["cards"][0]
    assert (card["value"], card["interval"], card["baseline"], card["change"]) == (
        "0.81", "0.77 to 0.85", "0.75", "+0.06",
    )  # fmt: skip
    assert dict(found["facts"])["Took"] == "2 min 5 s"
    assert dict(found["facts"])["Data"] == "span 3"
