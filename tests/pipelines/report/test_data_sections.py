from pipelines.label_distribution import compare_labels
from pipelines.report.data_sections import data_sections
from pipelines.run_record import RunRecord

RECORD = RunRecord(
    run_id="r1", name="a", status="running", started="2026", config={}, data_fingerprint="", log=""
)


def test_columns_and_labels_are_shown():
    comparison = compare_labels({"train": ["a<"] * 6 + ["b"] * 2, "eval": ["a<", "b"]})
    record = RECORD.changed(
        columns=(
            {"name": "x<", "kind": "number", "use": "days", "missing_share": 0.125, "note": "iso"},
        ),
        label_by_split=comparison.as_record("y"),
    )
    html = "\n".join(data_sections(record))
    for part in ("x&lt;", "days", "12.5%", "iso", "a&lt;", "75.00%", "50.00%", "train (8 rows)"):
        assert part in html
    assert "chi-square test, p = " in html


def test_numbers_are_shown_as_quantiles_in_order():
    values = {"train": [float(number) for number in range(41)], "eval": [0.5, 1.5]}
    record = RECORD.changed(label_by_split=compare_labels(values).as_record("y"))
    html = "\n".join(data_sections(record))
    assert html.index(">0 %<") < html.index(">25 %<") < html.index(">100 %<")
    assert ">20<" in html  # the median of 0 to 40


def test_nothing_is_shown_of_a_run_that_recorded_nothing():
    assert data_sections(RECORD) == []
