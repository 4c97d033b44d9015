from datetime import datetime, timezone

import pytest

from components.pusher.provenance import Provenance
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.root.history import (
    continued_runs,
    future_runs,
    mark_killed,
    new_run,
    newest_version_ever,
    read_runs,
    run_of_version,
    unconfirmed_pushes,
    unfinished_run,
)
from tests.pushed_versions import write_version


def test_killed_runs_are_listed_as_interrupted_and_marked_on_disk(killed, root):
    assert [record.status for record in read_runs(root)] == ["interrupted"]
    with root.lock.writing.held():
        assert [record.status for record in read_runs(root)] == ["running"]
    assert root.records.read_all() == [killed]  # reading changes nothing
    records = root.records
    pushed = killed.changed(run_id="20260101-000000", status="pushed", version="7")
    records.write(pushed)
    mark_killed(root)
    marked = killed.changed(status="interrupted", reason="the process was killed")
    assert records.read_all() == [pushed, marked]


def test_only_the_newest_run_can_be_unfinished(killed, tmp_path, root):
    assert unfinished_run(Root(tmp_path / "other")) is None
    assert unfinished_run(root) == killed
    newer = killed.changed(run_id="20260102-030406", status="failed")
    root.records.write(newer)
    assert unfinished_run(root) == newer
    root.records.write(newer.changed(status="not_blessed"))
    assert unfinished_run(root) is None


@pytest.fixture
def push(tmp_path):
    """Returns a function that makes a version which a run has pushed."""

    def push_version(version, run_id, folder="serving"):
        base = tmp_path / "root" / folder
        target = base / str(version)
        write_version(Provenance(run_id, f"{base}/../model"), str(target), str(base))

    return push_version


@pytest.mark.parametrize("folder", ["serving", "withdrawn"])
def test_a_run_that_was_killed_after_its_push_has_pushed(killed, push, folder, root):
    push(1000, "20260101-000000")
    push(2000, killed.run_id, folder)
    push(3000, "20260103-000000")
    (record,) = read_runs(root)
    assert (record.status, record.version) == ("pushed", "2000")
    assert "killed after it had pushed" in record.reason
    # Once more it can end well, unless the version is out of service again.
    assert unfinished_run(root) == (killed if folder == "serving" else None)
    mark_killed(root)
    assert root.records.read_all() == [record]
    assert unfinished_run(root) is None


def test_a_push_is_unsettled_until_a_run_ends_well_with_it(killed, push, root):
    assert unconfirmed_pushes(root) == ()
    push(2000, killed.run_id)
    mark_killed(root)
    assert unconfirmed_pushes(root) == (killed.run_id,)
    next_run = killed.changed(run_id="20260103-000000", status="failed", reason="disk full")
    root.records.write(next_run)
    assert unconfirmed_pushes(root) == (killed.run_id,)
    root.records.write(next_run.changed(status="pushed", version="2000", reason=None))
    assert unconfirmed_pushes(root) == ()


def test_the_newest_version_ever_may_be_served_withdrawn_or_gone(killed, push, root):
    assert newest_version_ever(root) == 0
    push(1000, "a")
    assert newest_version_ever(root) == 1000
    push(2000, "b", "withdrawn")
    assert newest_version_ever(root) == 2000
    root.records.write(killed.changed(status="pushed", version="3000"))
    assert newest_version_ever(root) == 3000


def test_the_run_of_a_version(killed, root):
    pushed = killed.changed(run_id="20260103-000000", status="pushed", version="3000")
    root.records.write(pushed)
    assert run_of_version(root, "3000") == pushed
    assert run_of_version(root, "4000") is None
    assert run_of_version(root, None) is None


def test_runs_whose_training_others_went_on_with(killed, root):
    records = root.records
    second = killed.changed(run_id="20260102-030406", mended=killed.run_id)
    third = killed.changed(run_id="20260102-030407", mended=second.run_id)
    lost = killed.changed(run_id="20260102-030408", mended="20200101-000000")
    for record in (second, third, lost):
        records.write(record)
    assert continued_runs(root, third) == (second, killed)
    assert continued_runs(root, killed) == ()
    assert continued_runs(root, lost) == ()


def test_a_run_on_kubeflow_goes_on_though_no_process_of_this_machine_does(killed, root):
    root.records.write(killed.changed(kubeflow_run="run-1"))
    started = datetime.fromisoformat(killed.started).timestamp()
    (record,) = read_runs(root, now=started + 13 * 24 * 3600)
    assert record.status == "running"
    (record,) = read_runs(root, now=started + 15 * 24 * 3600)
    assert record.status == "failed"
    assert "no sign of life from this run for 14 days" in record.reason
    mark_killed(root)
    assert root.records.read(killed.run_id).status == "running"
    assert unfinished_run(root) is None


TICK = "nightly/20260101T000000Z"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def test_a_new_run_gets_the_next_number_and_an_id_that_no_run_ever_had(killed, tmp_path, root):
    assert new_run(Root(tmp_path / "other"), now=NOW) == {
        "run_id": "20260102-030405", "number": 1, "scheduled_by": None, "notification": "",
    }  # fmt: skip
    assert new_run(root, now=NOW)["run_id"] == "20260102-030405-2"  # killed has number 0
    root.records.write(killed.changed(run_id="20270102-030405", number=7))
    assert new_run(root, now=NOW)["number"] == 8
    pruned = killed.changed(run_id="20260102-030405-2", number=9)
    root.pruned.add([pruned])
    (root.runs / "20260102-030405-3.json").write_text("{")  # damaged: its id is taken all the same
    assert new_run(root, TICK, NOW) == {
        "run_id": "20260102-030405-4", "number": 10, "scheduled_by": TICK, "notification": "pending",
    }  # fmt: skip


@pytest.mark.parametrize("is_pruned", [False, True])
def test_a_tick_is_done_once_its_newest_run_has_ended(killed, is_pruned, root):
    def leave(run_id, **fields):
        record = killed.changed(run_id=run_id, **fields)
        root.pruned.add([record]) if is_pruned else root.records.write(record)

    leave("20270101-000000", number=1, scheduled_by=TICK, status="failed")  # the clock was ahead
    assert new_run(root, TICK)["number"] == 2
    leave("20260101-000000", number=2, scheduled_by=TICK, status="held")
    leave("20260101-000001", number=3, status="failed")
    with pytest.raises(
        BadInputError, match=f"^Run 20260101-000000 has run {TICK} already; nothing was changed"
    ):
        new_run(root, TICK)
    assert new_run(root, "nightly/20260102T000000Z")["number"] == 4


def test_runs_are_in_the_order_of_their_numbers_whatever_the_clock_said(killed, root):
    # killed is of an earlier version, and has no number
    for run_id, number in (("20270101-000000", 1), ("20260103-000000", 2), ("20260101-000000", 3)):
        root.records.write(killed.changed(run_id=run_id, number=number))
    expected = [killed.run_id, "20270101-000000", "20260103-000000", "20260101-000000"]
    assert [record.run_id for record in read_runs(root)] == expected
    assert unfinished_run(root).run_id == "20260101-000000"


def test_a_run_that_failed_before_it_began_is_not_the_one_to_resume(killed, not_begun, root):
    assert root.records.read_all() == [killed, not_begun]
    assert unfinished_run(root) == killed
    assert root.records.newest(other_than=killed.run_id) is None


def test_runs_of_the_future_are_told_from_a_clock_that_is_a_little_ahead(killed):
    ahead = killed.changed(started="2026-01-02T03:10:00+00:00")  # killed: 03:04:05
    a_little = killed.changed(started="2026-01-02T04:08:00+01:00")
    assert future_runs([killed, a_little, ahead], NOW) == [ahead]
