from pipelines.run_history import mark_killed, read_runs, unfinished_run
from pipelines.run_lock import locked
from pipelines.run_record import RunRecords


def test_a_killed_run_is_listed_as_interrupted_unless_it_goes_on(killed, tmp_path):
    root = tmp_path / "root"
    assert [record.status for record in read_runs(root)] == ["interrupted"]
    with locked(root):
        assert [record.status for record in read_runs(root)] == ["running"]
    assert RunRecords(root).read_all() == [killed]  # reading changes nothing


def test_killed_runs_are_marked_on_disk_and_others_kept(killed, tmp_path):
    records = RunRecords(tmp_path / "root")
    pushed = killed.changed(run_id="20260101-000000", status="pushed", version="7")
    records.write(pushed)
    mark_killed(tmp_path / "root")
    marked = killed.changed(status="interrupted", reason="the process was killed")
    assert records.read_all() == [pushed, marked]


def test_only_the_newest_run_can_be_unfinished(killed, tmp_path):
    root = tmp_path / "root"
    assert unfinished_run(tmp_path / "other") is None
    assert unfinished_run(root) == killed
    newer = killed.changed(run_id="20260102-030406", status="failed")
    RunRecords(root).write(newer)
    assert unfinished_run(root) == newer
    RunRecords(root).write(newer.changed(status="not_blessed"))
    assert unfinished_run(root) is None
