import json

import pytest

from pipelines.root import Root
from pipelines.root.records import ComponentRecord
from tests.pipelines.run_records import make_record

RECORD = make_record(
    status="running",
    config={"name": "taxi"},
    data_fingerprint="abc",
    log="/var/log/run.log",
    components=(ComponentRecord("Trainer", "finished", 1.5),),
    notes=("a note",),
    thresholds=({"metric": "auc", "lower": 0.6, "upper": None, "max_regression": None},),
    checks=({"metric": "auc", "passed": True},),
    not_checked=("the loss",),
    intervals={"auc": (None, 0.75)},
    columns=({"name": "x", "kind": "date", "use": "days", "missing_share": 0.5, "note": ""},),
    label_by_split={"test": "chi-square", "p_value": 0.25, "sizes": {"train": 2, "eval": 1}},
    spans=({"span": "2026-01-31", "version": 2, "num_files": 3},),
)


def test_records_survive_a_round_trip_and_are_replaced(tmp_path):
    records = Root(tmp_path).records
    assert records.read_all() == []
    records.write(RECORD)
    pushed = RECORD.changed(status="pushed", version="7", metrics={"auc": 0.9})
    records.write(pushed)
    assert records.read_all() == [pushed]
    assert records.read(RECORD.run_id) == pushed
    assert records.read("other") is None
    assert Root(tmp_path / "other").records.read(f"../../runs/{RECORD.run_id}") is None
    assert [file.name for file in records.folder.iterdir()] == ["20260102-030405.json"]


def test_summary_is_the_last_line_of_a_run():
    line = RECORD.changed(
        status="pushed",
        version="7",
        metrics={"auc": 0.9},
        report="r.html",
        baseline_version="6",
        baseline_metrics={"auc": 0.8},
        checks=({"metric": "auc", "passed": True},),
        not_checked=("the loss",),
        serving_version="7",
    ).summary()
    assert json.loads(json.dumps(line)) == {
        "run_id": "20260102-030405", "status": "pushed", "version": "7", "metrics": {"auc": 0.9},
        "report": "r.html", "baseline_version": "6", "baseline_metrics": {"auc": 0.8},
        "checks": [{"metric": "auc", "passed": True}], "not_checked": ["the loss"], "serving_version": "7",
        "spans": [{"span": "2026-01-31", "version": 2, "num_files": 3}],
    }  # fmt: skip
    assert "spans" not in RECORD.changed(spans=()).summary()


def test_the_rows_that_test_are_the_last_line_in_words():
    metrics = {"auc": 0.84, "recall": None, "precision": 2 / 3, "f1_score": 0.5, "example_count": 412.0}
    tested = RECORD.changed(test_metrics=metrics)
    assert tested.last_line == (
        "On the 412 test rows, which nothing else used: auc 0.84, recall not a number, precision 0.66667"
    )
    assert (tested.summary()["test_metrics"], RECORD.last_line) == (metrics, "")


def test_paths_in_a_root_that_is_moved_are_those_of_today(tmp_path):
    root = tmp_path / "root"
    record = RECORD.changed(log=str(root / "logs" / "1.log"), report=str(root / "runs" / "1.html"))
    Root(root).records.write(record)
    assert Root(root).records.read_all() == [record]
    moved = root.rename(tmp_path / "elsewhere")
    (found,) = Root(moved).records.read_all()
    assert (found.log, found.report) == (f"{moved}/logs/1.log", f"{moved}/runs/1.html")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"components": [{"name": 1}]}', "\udcff", "[" * 100_000],
    ids=["empty", "cut", "list", "no field", "component", "binary", "nested deeply"],
)
def test_a_record_that_cannot_be_read_is_left_out_with_a_warning(tmp_path, caplog, text):
    records = Root(tmp_path).records
    records.write(RECORD)
    broken = records.folder / "20260102-030406.json"
    broken.write_bytes(text.encode(errors="surrogateescape"))
    assert records.read_all() == [RECORD]
    assert records.read("20260102-030406") is None
    assert f"{broken} is not the record of a run and is left out" in caplog.text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run_id", "20260102-030405"),  # of another file
        ("run_id", 5),
        ("status", "weird"),
        ("config", []),
        ("version", 7),
        ("version", "²"),
        ("metrics", {"auc": "high"}),
        ("spans", [7]),
        ("intervals", {"auc": 5}),
        ("elsewhere", 1),
        ("number", "first"),
        ("started", "yesterday"),
        ("finished", "2026-01-02T03:04:05"),
    ],
)
def test_a_record_with_a_field_of_another_type_is_left_out_with_a_warning(tmp_path, caplog, field, value):
    records = Root(tmp_path).records
    records.write(RECORD)
    (file,) = records.folder.iterdir()
    other = records.folder / "20260102-030406.json"
    fields = {**json.loads(file.read_text()), "run_id": other.stem}
    other.write_text(json.dumps({**fields, field: value}))
    assert records.read_all() == [RECORD]
    assert (
        f"{other} is not the record of a run and is left out ({'it is' if value == RECORD.run_id else field}"
        in (caplog.text)
    )


def test_a_run_id_with_other_digits_is_sorted(tmp_path):
    Root(tmp_path).records.write(RECORD.changed(run_id="20260102-030405-²"))
    assert len(Root(tmp_path).records.read_all()) == 1


def test_runs_of_one_second_are_in_the_order_of_their_numbers(tmp_path):
    records = Root(tmp_path).records
    ids = ["20260102-030405", *(f"20260102-030405-{number}" for number in range(2, 12))]
    ids = ["20260102-030404-2", *ids, "20260102-030406"]
    for run_id in reversed(ids):
        records.write(RECORD.changed(run_id=run_id))
    assert [record.run_id for record in records.read_all()] == ids


@pytest.mark.parametrize("name", ["{} (copy)", "{} - Copy", "{}.bak", ".#{}", "notes"])
def test_files_that_are_not_ours_are_told_once_and_ignored(tmp_path, caplog, name):
    records = Root(tmp_path).records
    records.write(RECORD)
    copy = records.folder / f"{name.format(RECORD.run_id)}.json"
    copy.write_text(records.file(RECORD.run_id).read_text())
    (records.folder / f"{RECORD.run_id}.json~").touch()
    for _ in range(3):
        assert records.read_all() == [RECORD]
    (line,) = caplog.messages
    assert line.startswith(f"{copy} is not the record of a run and is left out (it is that of run 2026")
