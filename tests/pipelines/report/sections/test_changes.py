import dataclasses

from pipelines.report.sections.changes import describe


def test_what_differs_from_the_run_before_and_what_no_record_has(full, bare):
    found = describe(full)
    assert found["previous"] == "20260101-030405"
    assert [part["title"] for part in found["parts"]] == ["Outcome", "Metrics"]
    rows = {row["name"]: row for row in found["parts"][1]["rows"]}
    assert rows["auc"] == {"name": "auc", "before": "0.75", "after": "0.81", "change": "+0.06"}
    assert "data, columns, configuration, code" in found["same"]
    assert describe(bare) is None  # the first run
    bare = {"columns": (), "models": (), "code_definitions": {}}
    records = tuple(dataclasses.replace(one, **bare) for one in full.records)
    found = describe(dataclasses.replace(full, record=records[-1], records=records))
    assert not {"columns", "code", "model"} & set(found["same"].split(", "))
    assert "data" in found["same"]
