import json
import os

import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.locks import take_run_lock
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START


@pytest.fixture
def store(root):
    return ScheduleStore(root)


def test_schedules_are_kept_as_readable_files(store, make_schedule):
    assert store.read_all() == []
    nightly = make_schedule(name="nightly", cron="0 3 * * *")
    store.write(nightly)
    store.write(make_schedule())
    assert store.read("nightly") == nightly
    assert [one.name for one in store.read_all()] == ["nightly", "trips"]
    fields = json.loads(store.file("nightly").read_text())
    assert (fields["format"], fields["cron"]) == (1, "0 3 * * *")
    assert "every_secs" not in fields  # what is as ever is left out


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
        ('{"name": "trips"}', "config is missing"),
        ('{"name": "trips", "crom": "0 3 * * *"}', "there is no such key"),
    ],
)
def test_a_damaged_file(store, text, message):
    store.folder.mkdir(parents=True)
    store.file("trips").write_text(text)
    with pytest.raises(BadInputError, match=rf"(?s)trips\.json.*{message}"):
        store.read("trips")


def test_deleting(store, make_schedule):
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
