import dataclasses

from pipelines.report.context import NOT_RECORDED, Context
from pipelines.root import Root


def test_the_run_to_compare_with_and_why_details_are_missing(full, tmp_path, bare, failed):
    (former, record) = full.records
    broken = dataclasses.replace(former, run_id="20260101-120000", status="failed", metrics={})
    assert full.previous == former
    assert Context(record, Root(tmp_path), {}, (former, broken, record)).previous == former
    assert Context(record, Root(tmp_path), {}, (broken, record)).previous == broken
    assert Context(record, Root(tmp_path), {}, (record, former)).previous is None
    not_begun = dataclasses.replace(broken, attempt=0)
    assert Context(record, Root(tmp_path), {}, (broken, not_begun, record)).previous == broken
    assert Context(record, Root(tmp_path), {}, (former, broken, record)).number == 3
    assert bare.missing("Trainer") == NOT_RECORDED
    assert failed.missing("Trainer") == "Trainer did not run, or failed."
    assert failed.missing("CsvExampleGen").startswith("CsvExampleGen did not run")


def test_the_former_run_is_the_one_with_the_next_lower_number(full, tmp_path):
    (former, record) = (dataclasses.replace(run, version=None) for run in full.records)
    records = Root(tmp_path).records
    ahead = dataclasses.replace(former, run_id="20270101-000000", number=1)
    older = dataclasses.replace(former, run_id="20260103-000000", number=2)
    newest = dataclasses.replace(record, run_id="20260102-000000", number=3)
    for run in (newest, ahead, older):
        records.write(run)
    runs = records.read_all()
    former_runs = [Context(run, Root(tmp_path), {}, runs).previous for run in runs]
    assert [run.run_id for run in former_runs[1:]] == ["20270101-000000", "20260103-000000"]
