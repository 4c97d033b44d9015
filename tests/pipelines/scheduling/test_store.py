import json
import os

import pytest

from pipelines.atomic_files import write_json
from pipelines.config.notify import NotifyConfig
from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.scheduling.locks import take_run_lock
from pipelines.scheduling.memory import read_memory
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START


@pytest.fixture
def store(root):
    return ScheduleStore(Root(root))


def test_schedules_are_kept_as_readable_files(store, make_schedule):
    assert store.read_all() == []
    nightly = make_schedule(name="nightly", cron="0 3 * * *")
    store.write(nightly)
    store.write(make_schedule())
    assert store.read("nightly") == nightly
    assert [one.name for one in store.read_all()] == ["nightly", "trips"]
    fields = json.loads(store.file("nightly").read_text())
    assert (fields["format"], fields["cron"]) == (1, "0 3 * * *")
    assert "every_secs" not in fields  # defaults are left out


def test_which_one_is_meant(store, make_schedule):
    with pytest.raises(BadInputError, match=r"no schedules in .* `schedule create` makes one"):
        store.chosen(None)
    store.write(make_schedule())
    assert store.chosen(None).name == "trips"
    store.write(make_schedule(name="nightly"))
    with pytest.raises(BadInputError, match=r"2 schedules in .*nightly, trips.*--name"):
        store.chosen(None)
    with pytest.raises(BadInputError, match=r"no schedule 'nihgtly'.*: nightly, trips"):
        store.chosen("nihgtly")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ('{"format": 2}', "newer version"),
        ('{"name": "trips"}', "working_dir is missing"),
        ('{"name": "trips", "crom": "0 3 * * *"}', "there is no such key"),
    ],
)
def test_a_damaged_file(store, text, message):
    store.folder.mkdir(parents=True)
    store.file("trips").write_text(text)
    with pytest.raises(BadInputError, match=rf"(?s)trips\.json.*{message}"):
        store.read("trips")


def test_a_schedule_is_deleted_once_its_run_has_ended(store, make_schedule):
    store.write(make_schedule())
    store.ledger("trips").write(time_tick("trips", START).changed(pid=77, starts=1))
    lock = take_run_lock(store.folder)
    with pytest.raises(BadInputError, match=r"is going on \(process 77\)"):
        store.delete("trips")
    os.close(lock)
    store.delete("trips")
    assert store.names() == []
    assert not (store.folder / "trips").exists()
    with pytest.raises(BadInputError, match="no schedules"):
        store.delete("trips")


SECRET = "https://example.com/SECRET"


def readable_by_others(folder):
    """Returns the files that others can read, and their contents."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.stat().st_mode & 0o044]
    assert files
    return "".join(file.read_text() for file in files)


def test_who_is_told_is_in_a_file_that_others_cannot_read(store, make_schedule):
    schedule = make_schedule(
        notify=NotifyConfig(webhook=SECRET),
        settings=("notify.command=tell SECRET", "trainer.train_steps=5"),
    )
    store.write(schedule)
    assert "SECRET" not in readable_by_others(store.root.path)
    read = store.read("trips")
    assert read.notify.webhook == SECRET
    assert set(read.settings) == set(schedule.settings)
    store.write(make_schedule())
    assert store.read("trips").notify == NotifyConfig()


def test_what_a_former_version_wrote_is_hidden_and_kept(store, make_schedule):
    former = make_schedule().model_dump(mode="json", exclude_defaults=True)
    settings = ["notify.webhook=https://a/SECRET", "trainer.train_steps=5"]
    notify = {"command": "tell SECRET"}
    write_json(store.file("trips"), {"format": 1, **former, "notify": notify, "settings": settings})
    state = store.folder / "trips" / "state.json"
    write_json(state, {"told_missed": "20260131", "notify": {"webhook": SECRET}})
    assert read_memory(state.parent).told_missed == "20260131"
    store.hide_receivers()
    store.hide_receivers()
    assert "SECRET" not in readable_by_others(store.root.path)
    assert read_memory(state.parent).told_missed == "20260131"
    read = store.read("trips")
    assert (read.notify.webhook, read.notify.command) == (SECRET, None)  # the newest that was known
    assert set(read.settings) == set(settings)


def test_one_command_at_a_time_changes_schedules(store, monkeypatch):
    monkeypatch.setattr("pipelines.scheduling.store._LOCK_WAIT_SECS", 0)
    with store.changing(), pytest.raises(BadInputError, match="Another command"), store.changing():
        pass
