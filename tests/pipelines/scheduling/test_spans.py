import os
import shutil
import time
from datetime import date, timezone

import pytest

from pipelines.config.load import load_config
from pipelines.errors import BadInputError
from pipelines.scheduling.spans import (
    check_has_windows,
    find_arrivals,
    new_arrivals,
    schedule_data,
    span_name,
    span_selection,
    span_tick_key,
)


def key(span, version=1):
    return span_tick_key(span, version)


@pytest.fixture
def schedule(make_schedule):
    return make_schedule(on_new_span=True)


KNOWN = {key(8), key(9), key(10)}


def test_keys_sort_as_spans_do_and_have_names_for_a_backfill():
    keys = [key(9), key(9, 2), key(10), key(10**17)]
    assert sorted(keys) == keys
    dates = [span_tick_key(date(2026, 1, day), None) for day in (9, 10)]
    assert dates == ["span-2026-01-09", "span-2026-01-10"]
    names = [span_name(one) for one in (key(7, 3), span_tick_key(0, None), key(date(2026, 1, 9), 2))]
    assert names == ["7", "0", "2026-01-09"]


def test_spans_that_are_not_known(schedule, make_schedule, tmp_path):
    found = find_arrivals(schedule, {key(9)})
    assert [(one.key, one.spans, one.is_complete) for one in found] == [
        (key(8), "8", True),
        (key(10), "10", True),
    ]
    assert find_arrivals(schedule, KNOWN) == []
    window = make_schedule(on_new_span=True, settings=("data.spans=last 3",))
    assert [one.spans for one in find_arrivals(window, {key(9), key(8)})] == ["last 3 to 10"]
    shutil.copytree(tmp_path / "span-8" / "v1", tmp_path / "span-8" / "v2")
    assert [one.key for one in find_arrivals(schedule, KNOWN)] == [key(8, 2)]  # a new version is new


def test_what_is_empty_or_being_written(schedule, tmp_path):
    (tmp_path / "span-11" / "v1").mkdir(parents=True)
    (tmp_path / "span-12" / "v1").mkdir(parents=True)
    (tmp_path / "span-12" / "v1" / "a.csv").write_text("x,y\n1,0\n")
    (tmp_path / "span-12" / "v1" / "b.csv.tmp").touch()
    assert [(one.key, one.is_complete) for one in find_arrivals(schedule, KNOWN)] == [(key(12), False)]


def test_a_span_has_arrived_when_it_was_moved_and_not_when_it_was_written(schedule, tmp_path):
    os.utime(tmp_path / "span-10" / "v1" / "data.csv", (1e9, 1e9))
    since = find_arrivals(schedule, {key(8), key(9)})[0].due
    assert abs(since.timestamp() - time.time()) < 600
    assert since.tzinfo == timezone.utc


@pytest.fixture
def new(history):
    """Returns a function that returns the spans that are new to a schedule."""
    return lambda schedule: new_arrivals(schedule, history())


def spans_of(new):
    return [arrival.spans for arrival in new.arrivals]


def span(number, version=1):
    return {"span": number, "version": version, "num_files": 1}


def test_of_the_spans_before_the_first_run_the_newest_is_run(make_schedule, new, tmp_path):
    schedule = make_schedule(on_new_span=True, missed="catch-up")
    found = new(schedule)
    assert (spans_of(found), found.old) == (["10"], {key(8), key(9)})
    shutil.copytree(tmp_path / "span-10", tmp_path / "span-12")
    found = new(schedule.model_copy(update={"passed_spans": found.old}))
    assert (spans_of(found), found.old) == (["10", "12"], None)  # though no scheduler was working


def test_of_a_root_with_runs_the_spans_above_the_last_are_run(schedule, record, new):
    record("20260131-100000", status="failed", spans=(span(9),))
    assert spans_of(new(schedule)) == ["10"]
    record("20260131-100001", status="unchanged", spans=(span(8),))
    found = new(schedule)
    assert (spans_of(found), found.old) == (["9", "10"], frozenset())


def test_a_run_by_hand_deals_with_what_it_reads(make_schedule, root, record, new, tmp_path):
    schedule = make_schedule(on_new_span=True, passed_spans=(key(8),))
    record("20260131-100000", status="failed", spans=(span(10),))
    assert spans_of(new(schedule)) == ["9", "10"]
    record("20260131-100001", status="not_blessed", spans=(span(9), span(10)))
    assert spans_of(new(schedule)) == []
    root.pruned.add(root.records.read_all())  # also when its record is removed
    root.records.file("20260131-100001").unlink()
    assert spans_of(new(schedule)) == []
    shutil.copytree(tmp_path / "span-9" / "v1", tmp_path / "span-9" / "v2")
    assert spans_of(new(schedule)) == ["9"]
    # A scheduled run has dealt with its span even if it failed.
    record("20260131-100002", status="failed", scheduled_by=f"trips/{key(9, 2)}")
    assert spans_of(new(schedule)) == []


def test_a_missing_folder_of_the_data_settles_nothing(make_schedule, new, tmp_path):
    path = f"data.path={tmp_path}/volume/span-{{SPAN}}/v{{VERSION}}"
    schedule = make_schedule(on_new_span=True, settings=(path,))
    assert new(schedule).old is None
    (tmp_path / "volume").mkdir()
    assert new(schedule).old == frozenset()
    for number in (8, 9, 10):
        (tmp_path / f"span-{number}").rename(tmp_path / "volume" / f"span-{number}")
    assert len(new(schedule).old) == 2


def test_data_of_a_relative_path_are_found_from_anywhere(make_schedule, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    path = "data.path=span-{SPAN}/v{VERSION}"
    schedule = make_schedule(on_new_span=True, settings=(path,), working_dir=str(tmp_path))
    assert len(find_arrivals(schedule, frozenset())) == 3


def test_a_url_is_left_alone_and_its_spans_do_not_start_runs(make_schedule, tmp_path):
    path = "s3://bucket/span-{SPAN}/trips.csv"
    schedule = make_schedule(settings=(f"data.path={path}",), working_dir=str(tmp_path))
    assert schedule_data(schedule).path == path
    with pytest.raises(BadInputError, match="--on-new-span finds spans in folders of this machine only"):
        check_has_windows(schedule_data(schedule), "--on-new-span")


def test_what_has_no_spans_or_fixed_ones(data, spans):
    with pytest.raises(BadInputError, match=r"--on-new-span needs spans.*no \{SPAN\}"):
        check_has_windows(load_config(data=str(data), label="y").data, "--on-new-span")
    for given in ("8..9", "8", "last 2 to 9"):
        config = load_config(data=spans, label="y", settings=[f"data.spans={given}"]).data
        with pytest.raises(BadInputError, match="names fixed ones"):
            check_has_windows(config, "--on-new-span")
    config = load_config(data=spans, label="y", settings=["data.spans=last 2"]).data
    check_has_windows(config, "--on-new-span")
    assert span_selection(config, 9) == "last 2 to 9"
