import dataclasses

from pipelines.report.context import NOT_RECORDED, Context
from pipelines.root import Root


def test_the_run_to_compare_with_is_the_newest_that_was_evaluated(full, tmp_path):
    (former, record) = full.records
    broken = dataclasses.replace(former, run_id="20260101-120000", status="failed", metrics={})
    assert full.former == former
    assert Context(record, Root(tmp_path), {}, (former, broken, record)).former == former
    assert Context(record, Root(tmp_path), {}, (broken, record)).former == broken
    assert Context(record, Root(tmp_path), {}, (record, former)).former is None
    not_begun = dataclasses.replace(broken, attempt=0)
    assert Context(record, Root(tmp_path), {}, (broken, not_begun, record)).former == broken
    assert Context(record, Root(tmp_path), {}, (former, broken, record)).number == 3


def test_why_details_are_missing(bare, failed):
    assert bare.missing("Trainer") == NOT_RECORDED
    assert failed.missing("Trainer") == "Trainer did not run, or failed."
    assert failed.missing("CsvExampleGen").startswith("CsvExampleGen did not run")
