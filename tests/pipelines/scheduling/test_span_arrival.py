import os
import time
from datetime import datetime, timezone

import pytest

from pipelines.config import load_config
from pipelines.errors import BadInputError
from pipelines.scheduling.span_arrival import (
    check_has_windows,
    find_arrivals,
    new_arrivals,
    span_selection,
    span_tick,
    span_tick_key,
)
from tests.pipelines.scheduling.conftest import START


def key(span, version=1):
    return span_tick_key(span, version)


def test_keys_sort_as_spans_do():
    keys = [key(9), key(9, 2), key(10), key(10**17)]
    assert sorted(keys) == keys
    dates = [span_tick_key(datetime(2026, 1, day).date(), None) for day in (9, 10)]
    assert dates == ["span-2026-01-09", "span-2026-01-10"]


def test_spans_above_the_last_one(make_schedule):
    schedule = make_schedule(on_new_span=True)
    found = find_arrivals(schedule, key(8))
    assert [(one.key, one.selection, one.is_complete) for one in found] == [
        (key(9), "9", True),
        (key(10), "10", True),
    ]
    assert find_arrivals(schedule, key(10)) == []


def test_a_window_ends_with_its_span(make_schedule):
    schedule = make_schedule(on_new_span=True, settings=("data.spans=last 3",))
    assert [one.selection for one in find_arrivals(schedule, key(9))] == ["last 3 to 10"]


def test_a_new_version_is_new(make_schedule, tmp_path):
    schedule = make_schedule(on_new_span=True)
    (tmp_path / "span-10" / "v1").rename(tmp_path / "span-10" / "v2")
    assert [one.key for one in find_arrivals(schedule, key(10))] == [key(10, 2)]


def test_what_is_empty_or_being_written(make_schedule, tmp_path):
    schedule = make_schedule(on_new_span=True)
    (tmp_path / "span-11" / "v1").mkdir(parents=True)
    (tmp_path / "span-12" / "v1").mkdir(parents=True)
    (tmp_path / "span-12" / "v1" / "a.csv").write_text("x,y\n1,0\n")
    (tmp_path / "span-12" / "v1" / "b.csv.tmp").touch()
    found = find_arrivals(schedule, key(10))
    assert [(one.key, one.is_complete) for one in found] == [(key(12), False)]


def test_a_span_has_arrived_when_it_was_moved_and_not_when_it_was_written(make_schedule, tmp_path):
    schedule = make_schedule(on_new_span=True)
    file = tmp_path / "span-10" / "v1" / "data.csv"
    os.utime(file, (1e9, 1e9))
    since = find_arrivals(schedule, key(9))[0].since
    assert abs(since.timestamp() - time.time()) < 600
    assert since.tzinfo == timezone.utc


def test_the_last_run_may_be_one_by_hand(make_schedule, ledger, root, record):
    schedule = make_schedule(on_new_span=True)

    def new():
        return [one.selection for one in new_arrivals(schedule, ledger, root, find_arrivals)]

    assert new() == ["8", "9", "10"]
    spans = ({"span": 9, "version": 1, "num_files": 1},)
    record("20260131-100000", status="failed", spans=spans)
    assert new() == ["8", "9", "10"]
    record("20260131-100001", status="unchanged", spans=spans)
    assert new() == ["10"]
    ledger.write(span_tick("trips", find_arrivals(schedule, key(9))[0], START))
    assert new() == []


def test_data_of_a_relative_path_are_found_from_anywhere(make_schedule, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    path = "data.path=span-{SPAN}/v{VERSION}"
    schedule = make_schedule(on_new_span=True, settings=(path,), working_dir=str(tmp_path))
    assert len(find_arrivals(schedule, "")) == 3


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
