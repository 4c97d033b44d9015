import dataclasses

import pytest

from pipelines.report.page import render_report
from pipelines.report.sections.drift import describe

from ..conftest import HOSTILE  # noqa: TID252
from ..html_checks import check_page  # noqa: TID252


def test_anomalies_and_distances_the_farthest_first_or_the_notes_of_an_older_record(full, bare, failed):
    found = describe(full)
    assert [one["word"] for one in found["anomalies"]] == ["breaks training", "drift"]
    first, second = found["rows"]
    assert (first["column"], first["exceeds"], first["bar"]) == (HOSTILE, True, 100)  # 3 x the limit
    assert (second["value"], second["limit"], second["bar"]) == ("0.02", "0.1", 10)  # a fifth of it
    assert first["measure"] == "Jensen-Shannon divergence"
    found = describe(bare)
    assert [one["text"] for one in found["anomalies"]] == ["train split, column 'x': odd."]
    assert found["missing"]
    assert describe(failed) is None


@pytest.mark.more
def test_a_first_run_speaks_of_no_model_that_serves(full):
    details = {**full.details, "anomalies": {"found": [], "drift": []}}
    first = dataclasses.replace(full, details=details)
    for context, is_compared in ((first, False), (full, True)):
        section = next(
            one for one in check_page(render_report(context)).all("section") if one.get("id") == "drift"
        )
        assert ("serving model" in section.text) == is_compared
        assert ("Drift was not measured" in section.text) != is_compared
