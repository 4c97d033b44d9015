import dataclasses

from pipelines.report.context import Context
from pipelines.report.page import render_index, render_report
from pipelines.root import Root
from tests.pushed_versions import add_model

from .conftest import FORMER, HOSTILE, RECORD  # noqa: TID252
from .html_checks import check_page  # noqa: TID252


def write_reports(root, *records):
    (root / "runs").mkdir()
    for record in records:
        (root / "runs" / f"{record.run_id}.html").touch()


def serve(root, *versions):
    for version in versions:
        add_model(root / "serving" / version)


def test_all_runs_what_serves_and_the_metric_over_time(tmp_path):
    serve(tmp_path, "1760000000", "1770000000")
    broken = dataclasses.replace(
        RECORD, run_id="20260101-120000", status="failed", version=None, metrics={}, reason=HOSTILE,
        baseline_metrics={},
    )  # fmt: skip
    running = dataclasses.replace(RECORD, run_id="20260103-000000", status="running", version=None,
                                  metrics={}, baseline_metrics={}, finished=None)  # fmt: skip
    write_reports(tmp_path, FORMER, RECORD, running)
    text = render_index(Root(tmp_path), [FORMER, broken, RECORD, running], "abc")
    page = check_page(text)
    rows = [row for body in page.all("tbody") for row in body.all("tr")]
    cells = [[cell.text for cell in row.children] for row in rows]
    assert [row[0] for row in cells] == [
        "20260103-000000", "20260102-030405", "20260101-120000", "20260101-030405",
    ]  # fmt: skip
    assert cells[1][2:7] == ["✓ pushed", "1770000000 live", "0.81", "0.75", "2 min 5 s"]
    assert cells[2][2] == "✗ failed"
    assert cells[2][-1] == HOSTILE
    assert cells[3][3] == "1760000000 kept"
    links = [one.get("href") for one in page.all("a")][1:]
    assert sorted(links) == [
        "20260101-030405.html", "20260102-030405.html", "20260102-030405.html",
    ]  # the served one, and rows; not of one that goes on, or whose report could not be made  # fmt: skip
    assert rows[1].get("id") == "run-20260102-030405"
    assert "auc of 2 runs, from 0.75 in the first to 0.81 in the last" in text
    facts = dict(zip(*([one.text for one in page.all(tag)] for tag in ("dt", "dd")), strict=True))
    assert facts == {
        "Runs": "4", "pushed": "2", "failed": "1", "running": "1", "Versions for a rollback": "1",
    }  # fmt: skip


def test_a_root_without_a_version_and_a_page_elsewhere_that_links_to_nothing(tmp_path):
    failed = dataclasses.replace(RECORD, status="failed", version=None, metrics={}, spans=())
    page = check_page(render_index(Root(tmp_path), [failed]))
    assert "No version is live." in page.root.text
    assert not page.all("svg")
    serve(tmp_path, "1770000000")
    write_reports(tmp_path, RECORD)
    page = check_page(render_index(Root(tmp_path), [RECORD], has_reports=False))
    assert [one.get("href") for one in page.all("a")] == ["#main"]


def test_a_long_reason_is_cut_and_whole_in_the_report(tmp_path):
    reason = "a word " * 80
    run = dataclasses.replace(RECORD, status="not_blessed", version=None, reason=reason)
    page = check_page(render_index(Root(tmp_path), [run]))
    (cell,) = (one for one in page.all("td") if "long" in one.get("class", ""))
    assert 140 < len(cell.text) <= 160
    assert cell.text.endswith("...")
    assert reason.startswith(cell.text.removesuffix("..."))
    assert reason.strip() in check_page(render_report(Context(run, Root(tmp_path)))).root.text
