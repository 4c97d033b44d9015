from pipelines.report.sections.drift import describe

from ..conftest import HOSTILE  # noqa: TID252


def test_anomalies_and_distances_the_farthest_first(full):
    found = describe(full)
    assert [one["word"] for one in found["anomalies"]] == ["breaks training", "drift"]
    first, second = found["rows"]
    assert (first["column"], first["exceeds"], first["bar"]) == (
        HOSTILE,
        True,
        100,
    )  # 3 x the limit
    assert (second["value"], second["limit"], second["bar"]) == ("0.02", "0.1", 10)  # a fifth of it
    assert first["measure"] == "Jensen-Shannon divergence"


def test_the_notes_of_an_older_record_tell_the_anomalies(bare, failed):
    found = describe(bare)
    assert [one["text"] for one in found["anomalies"]] == ["train split, column 'x': odd."]
    assert found["missing"]
    assert describe(failed) is None
