import json
import os
import subprocess
import sys

import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.store import is_scheduled, scheduler_lock


def test_schedules_are_kept_as_readable_files(store, make_schedule, add):
    assert store.read_all() == ([], [])
    nightly = make_schedule(name="nightly", cron="0 3 * * *")
    store.write(nightly)
    add()
    assert store.read("nightly") == nightly
    assert [schedule.name for schedule in store.read_all()[0]] == ["nightly", "trips"]
    fields = json.loads(store.file("nightly").read_text())
    assert (fields["format"], fields["cron"]) == (2, "0 3 * * *")
    assert "every_secs" not in fields  # defaults are left out


def test_which_one_is_meant(store, add):
    with pytest.raises(BadInputError, match=r"no schedules in .* `schedule create` makes one"):
        store.chosen(None)
    add()
    assert store.chosen(None).name == "trips"
    add(name="nightly")
    with pytest.raises(BadInputError, match=r"2 schedules in .*nightly, trips.*--name"):
        store.chosen(None)
    with pytest.raises(BadInputError, match=r"no schedule 'nihgtly'.*: nightly, trips"):
        store.chosen("nihgtly")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "should be a valid dictionary"),
        ('{"format": 3}', "format = 3"),
        ('{"format": "2"}', "format = '2'"),
        ('{"name": "trips"}', "working_dir is missing"),
        ('{"name": "trips", "crom": "0 3 * * *"}', "there is no such key"),
    ],
)
def test_a_damaged_file_affects_only_itself(store, text, message, add):
    add(name="other")
    store.file("trips").write_text(text)
    with pytest.raises(BadInputError, match=rf"(?s)trips\.json.*{message}"):
        store.read("trips")
    schedules, errors = store.read_all()
    assert [schedule.name for schedule in schedules] == ["other"]
    assert len(errors) == 1
    assert message in errors[0]


def test_the_copy_of_a_file_is_no_second_schedule(store, add):
    add()
    copy = store.folder / "trips (copy).json"
    backup = store.folder / "trips.json~"
    for file in (copy, backup, store.folder / ".trips.json.swp"):
        file.write_text(store.file("trips").read_text())
    store.state("trips").mkdir()
    assert (store.names(), store.strangers()) == (["trips"], [copy, backup])
    copy.rename(store.file("trips-2"))
    with pytest.raises(BadInputError, match=r"trips-2\.json is the file of the schedule 'trips'"):
        store.read("trips-2")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: file.symlink_to("/no/such/file"), "a link to a file that does not exist"),
        (lambda file: file.symlink_to("/dev/zero"), "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (lambda file: file.mkdir(), "not a regular file"),
    ],
    ids=["dangling link", "device", "pipe", "folder"],
)
def test_what_is_no_file_keeps_no_other_schedule_from_running(store, make, message, add):
    add()
    make(store.file("bad"))
    store.migrate()
    schedules, errors = store.read_all()
    assert ([schedule.name for schedule in schedules], len(errors)) == (["trips"], 1)
    assert message in errors[0]


def test_a_schedule_is_deleted_with_its_state(store, add):
    add()
    store.state("trips").mkdir()
    store.delete("trips")
    assert store.names() == []
    assert not store.state("trips").exists()
    with pytest.raises(BadInputError, match="no schedules"):
        store.delete("trips")
    add()
    os.mkfifo(store.state("trips"))  # in place of its folder
    store.delete("trips")
    assert store.names() == []


def test_a_change_keeps_what_others_have_changed(store, make_schedule, add):
    add()
    store.change("trips", enabled=False)
    store.change("trips", retries=5)
    assert store.read("trips") == make_schedule(enabled=False, retries=5)


def test_one_command_at_a_time_changes_schedules(store, monkeypatch):
    monkeypatch.setattr("pipelines.scheduling.store._LOCK_WAIT_SECS", 0)
    with store.changing(), pytest.raises(BadInputError, match="Another command"), store.changing():
        pass


def test_the_second_scheduler_is_refused_and_the_lock_is_not_inherited(tmp_path):
    assert not is_scheduled(tmp_path)
    with scheduler_lock(tmp_path):
        assert is_scheduled(tmp_path)
        with pytest.raises(BadInputError, match="Another sch"), scheduler_lock(tmp_path):
            pass
        process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not is_scheduled(tmp_path)
    with scheduler_lock(tmp_path):
        pass
    process.kill()
    process.communicate()
