"""Spans of data in one root: broken ones end before Transform, the next good one is pushed."""

import json

import pytest

from benchmarks.campaigns.retraining_spans import run_sequence, table_row


@pytest.mark.slow
def test_a_broken_span_ends_and_the_next_good_one_is_pushed(warm_command, tmp_path):
    spans = list(run_sequence("broken", 3, tmp_path, warm_command))
    assert [(span.data, span.outcome, span.trained) for span in spans] == [
        ("new rows", "pushed", True),
        ("metres", "failed", False),
        ("new rows", "pushed", True),
    ]
    assert spans[1].auc is None
    assert spans[2].auc > 0.8
    assert "column 'miles': The values have drifted: the median was " in spans[1].said[0]
    assert "unchanged" not in table_row(spans[2])

    # The schema is that of the first one, also after the second push.
    root = tmp_path / "root"
    shown = json.loads(warm_command("schema", "show", "--json", "--root", root).stdout)
    records = sorted((root / "runs").glob("*.json"))
    assert shown["run_id"] == records[0].stem
    assert [column["type"] for column in shown["columns"] if column["name"] == "miles"] == ["FLOAT"]

    # The schema of an ended run can be accepted.
    accepted = warm_command("schema", "accept", records[1].stem, "--root", root)
    assert accepted.returncode == 0
    assert accepted.stdout.splitlines()[:2] == [
        f"accepted: run {records[1].stem}",
        "= the schema stays as it is",
    ]
