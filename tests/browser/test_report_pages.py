"""The pages in a real browser: `make test-report` brings Node's packages and needs Chromium."""

import dataclasses
import json
import os
import pathlib
import subprocess

import pytest

from pipelines.report.context import Context
from pipelines.report.page import render_index, render_report
from pipelines.root import Root

from ..pipelines.report.conftest import DETAILS, FORMER, HOSTILE, RECORD, STATISTICS  # noqa: TID252

PROJECT = pathlib.Path(__file__).parents[2]
PACKAGES = PROJECT / ".report-check"

pytestmark = pytest.mark.browser


def pages(root):
    """Returns a report with everything, one without details, wide ones, and an index."""
    template = STATISTICS["columns"][0]
    many = [{**template, "name": f"column {number} {'long name ' * 9}"} for number in range(300)]
    points = [[1, 0.5], [9, 0.4]]
    curves = [  # of most of them the page has the names alone
        {"run": "", "tag": f"dnn/hiddenlayer_{number}/fraction_of_zero_values", "points": points}
        for number in range(9)
    ]
    wide = {
        **DETAILS,
        "statistics": {**STATISTICS, "columns": many, "num_columns": 300},
        "training": {"num_curves": 9, "curves": curves},
    }
    names = [*(f"Municipality_of_the {number} long names" for number in range(30)), "9 other classes"]
    confusion = {
        "classes": names,
        "table": [[40 * (row == column) + row % 3 for column in range(31)] for row in range(31)],
        "has_others": True,
    }
    plots = {"problem_type": "multi-class", "num_examples": 2_000, "classes": names}
    evaluation = {"plots": {**plots, "model": {"confusion": confusion, "calibration": []}}}
    blocked = dataclasses.replace(
        RECORD, status="not_blessed", version=None, serving_version=None, reason=HOSTILE
    )
    failed = dataclasses.replace(RECORD, run_id="20260103", status="failed", version=None, metrics={})
    runs = (FORMER, RECORD)
    return {
        "full": render_report(Context(RECORD, Root(root), DETAILS, runs), has_index=True),
        "bare": render_report(Context(RECORD, Root(root), {}, (RECORD,))),
        "wide": render_report(Context(RECORD, Root(root), wide, runs)),
        "classes": render_report(
            Context(blocked, Root(root), {**DETAILS, "evaluation": evaluation}, (blocked,))
        ),
        "index": render_index(Root(root), [*runs, failed]),
    }


@pytest.mark.timeout(900)
def test_no_finding_no_request_no_sideways_scrolling(tmp_path):
    files = []
    for name, text in pages(tmp_path).items():
        files.append(tmp_path / f"{name}.html")
        files[-1].write_text(text, encoding="utf-8")
    shots = os.environ.get("REPORT_SHOTS")
    result = subprocess.run(
        ["node", PROJECT / "scripts" / "report" / "check_pages.js", *files,
         *(("--shots", shots) if shots else ())],
        env={**os.environ, "NODE_PATH": str(PACKAGES / "node_modules")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    findings = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(findings) == 4 * len(files)
    for finding in findings:
        where = (finding["file"], finding["profile"])
        assert finding["violations"] == [], where
        assert finding["passes"] > 20, where
        assert finding["requests"] == finding["errors"] == [], where
        assert finding["scrollWidth"] <= finding["width"], where
        assert finding["firstFocus"] == "skip", where
