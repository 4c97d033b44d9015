import dataclasses

from pipelines.report.context import Context
from pipelines.report.sections.history import describe, metric_plot, newest_metric
from tests.pushed_versions import add_model


def test_pushes_newest_first_with_the_metric_without_later_runs(full, failed):
    add_model(full.root.serving / "1770000000")
    found = describe(full)
    assert [(row["version"], row["state"], row["value"]) for row in found["rows"]] == [
        ("1770000000", "serving", "0.81"),
        ("1760000000", "removed", "0.75"),
    ]
    assert found["rows"][0]["is_this"]
    assert found["plot"].description.startswith("auc of 2 runs, from 0.75 in the first to 0.81")
    former = full.records[0]
    found = describe(Context(former, full.root, {}, full.records))
    assert [row["run_id"] for row in found["rows"]] == [former.run_id]
    assert metric_plot([full.record], "auc") is None
    assert describe(failed) is None
    broken = dataclasses.replace(full.record, metrics={})
    assert newest_metric([full.record, broken]) == "auc"
    assert newest_metric([broken]) == ""
