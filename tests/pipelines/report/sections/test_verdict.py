import dataclasses

from pipelines.report.sections.verdict import describe, verdict_sentence


def test_the_verdict_in_words(full, failed):
    record = full.record
    assert verdict_sentence(record) == (
        "The model passed 2 checks and was pushed as version 1770000000. It was compared with version "
        "1760000000."
    )
    for changes, part in (
        ({"baseline_version": None}, "It is the first"),
        ({"status": "not_blessed"}, "1 of 2 checks failed, so nothing was pushed. Version"),
        ({"status": "not_blessed", "serving_version": None}, "No version serves."),
        ({"status": "unchanged"}, "version 1770000000 serves"),
        ({"status": "running"}, "The run has not ended."),
        ({"status": "interrupted", "components": ()}, "The run was interrupted; nothing was"),
    ):
        assert part in verdict_sentence(dataclasses.replace(record, **changes)), changes
    assert "failed in CsvExampleGen" in verdict_sentence(failed.record)


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
