import pytest

SPANS = ({"span": 3, "version": None, "num_files": 1},)


def test_a_run_is_known_once_its_record_is_gone(killed, root):
    runs = [
        killed.changed(run_id="20260101-000000", status="pushed", version="7", spans=SPANS),
        killed.changed(run_id="20260102-000000", status="failed"),
    ]
    for run in runs:
        root.records.write(run)
    pruned = root.pruned
    assert pruned.read_all() == []
    pruned.add(runs)
    assert pruned.read_all() == []  # it was stopped before it removed them
    (root.runs / "20260101-000000.json").unlink()
    (run,) = root.pruned.read_all()
    assert (run.run_id, run.version, run.spans) == ("20260101-000000", "7", SPANS)
    pruned.add(runs)
    assert len((root.runs / "pruned.jsonl").read_text().splitlines()) == 2
    # No record of a run is made of it.
    assert {one.run_id for one in root.records.read_all()} == {killed.run_id, runs[1].run_id}


def test_half_a_line_costs_no_other(killed, caplog, root):
    file = root.runs / "pruned.jsonl"
    file.write_text('{"run_id": "2026010')
    run = killed.changed(run_id="20260101-000000")
    root.pruned.add([run])
    assert [one.run_id for one in root.pruned.read_all()] == [run.run_id]
    assert "has a line that is not a pruned run" in caplog.text


def test_the_tick_and_the_number_of_a_run_outlive_its_record(killed, root):
    run = killed.changed(run_id="20260101-000000", scheduled_by="nightly/20260101T000000Z", number=12)
    root.pruned.add([run])
    older = '{"run_id": "20251231-000000", "name": "taxi", "status": "failed", "finished": null, '
    older += '"started": "2025-12-31T00:00:00+00:00", "version": null, "spans": []}\n'
    wrong = older.replace("20251231", "20251230").replace("[]", "7")
    with (root.runs / "pruned.jsonl").open("a") as stream:
        stream.write(older + wrong)
    assert [(run.run_id, run.scheduled_by, run.number) for run in root.pruned.read_all()] == [
        ("20260101-000000", "nightly/20260101T000000Z", 12),
        ("20251231-000000", None, 0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\0",
        b"null",
        b'{"run_id": "a", "name": "t", "status": "failed", "started": "x", "finished": null, '
        b'"version": null, "spans": []}',
    ],
)
def test_a_damaged_line_costs_no_other(killed, line, root):
    runs = root.pruned
    runs.add([killed.changed(run_id="20260101-000000", name="a\u2028b")])
    file = root.runs / "pruned.jsonl"
    file.write_bytes(line + b"\n" + file.read_bytes())
    assert [run.run_id for run in runs.read_all()] == ["20260101-000000"]
    (error,) = runs.errors()
    assert "line 1" in error


def test_a_folder_in_its_place_is_an_error(killed, root):
    (root.runs / "pruned.jsonl").mkdir()
    runs = root.pruned
    assert runs.read_all() == []
    assert "pruned.jsonl is not a regular file" in runs.errors()[0]
