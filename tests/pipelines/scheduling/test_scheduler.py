import logging
import os
import shutil

import pytest

from pipelines.config.notify import NotifyConfig
from pipelines.root import Root
from pipelines.scheduling.ledger import Ledger
from pipelines.scheduling.locks import take_run_lock
from pipelines.scheduling.notify.delivery import DeliveryError
from pipelines.scheduling.scheduler import Scheduler
from pipelines.scheduling.span_arrival import find_arrivals, span_tick
from pipelines.scheduling.store import ScheduleStore
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START


def minutes(ticks):
    return [int(tick.due[14:16]) for tick in ticks]


def events(told):
    return [one["event"] for one in told]


def run_for(scheduler, clock, stop, secs):
    """Runs a scheduler for some seconds of its clock."""
    until = clock.monotonic() + secs
    clock.at_sleep = lambda: clock.monotonic() >= until and stop.request()
    scheduler.run()
    stop.requested = False


def test_twenty_ticks_at_one_a_minute(scheduler, clock, stop, runs, make_schedule, ledger):
    scheduler.store.write(make_schedule())
    run_for(scheduler, clock, stop, 20 * 60 + 5)
    done = list(ledger.ticks())
    assert minutes(done) == list(range(1, 21))
    assert {tick.status for tick in done} == {"pushed"}
    assert len(runs.launches) == 20
    started = [tick.started for tick in done]
    assert started == [tick.due for tick in done]  # each in its second
    assert max(clock.naps) <= 30


def test_schedules_take_turns_and_the_earliest_is_first(scheduler, clock, make_schedule):
    scheduler.store.write(make_schedule(name="a", every_secs=100, missed="catch-up"))
    scheduler.store.write(make_schedule(name="b", every_secs=70, missed="catch-up"))
    clock.pass_by(250)
    done = scheduler.run_due()
    # a at 100 and 200 s, b at 70, 140 and 210 s.
    assert "".join(tick.id[0] for tick in done) == "babab"


def test_what_a_former_scheduler_has_begun_comes_first(scheduler, clock, make_schedule, ledger):
    scheduler.store.write(make_schedule(missed="catch-up"))
    ledger.write(time_tick("trips", START))
    clock.pass_by(60)
    done = scheduler.run_due()
    assert minutes(done) == [0, 1]


def test_a_schedule_that_is_disabled_is_left_alone(scheduler, clock, runs, make_schedule, ledger):
    scheduler.store.write(make_schedule(enabled=False))
    ledger.write(time_tick("trips", START))
    clock.pass_by(200)
    assert scheduler.run_due() == []
    assert not runs.launches


def test_a_schedule_that_is_changed_while_it_sleeps(scheduler, clock, stop, make_schedule, ledger):
    def change():
        if clock.monotonic() > 300 and "trips" not in scheduler.store.names():
            scheduler.store.write(make_schedule(since=clock.now(), created=clock.now()))
        if clock.monotonic() > 700:
            stop.request()

    clock.at_sleep = change
    scheduler.run()
    assert len(ledger.keys()) == 6


def test_a_damaged_schedule_stops_no_other(scheduler, clock, make_schedule, runs, caplog):
    scheduler.store.write(make_schedule())
    scheduler.store.file("other").write_text("{")
    scheduler.store.write(make_schedule(name="third"))
    ledger = scheduler.store.ledger("third")
    ledger.write(time_tick("third", START))
    (ledger.folder / "ticks" / "20260131T100000Z.json").write_text("{")
    clock.pass_by(60)
    assert [tick.schedule for tick in scheduler.run_due()] == ["trips"]
    assert caplog.text.count("other.json cannot be read") == 1
    assert caplog.text.count("20260131T100000Z.json cannot be read") == 1


def test_a_full_disk_does_not_end_it(
    scheduler, clock, stop, make_schedule, runs, ledger, monkeypatch, caplog
):
    scheduler.store.write(make_schedule())
    write, failing = Ledger.write, []

    def fail(self, tick):
        if 160 < clock.monotonic() < 260:
            failing.append(tick)
            raise OSError(28, "No space left on device")
        write(self, tick)

    monkeypatch.setattr(Ledger, "write", fail)
    run_for(scheduler, clock, stop, 290)
    assert failing
    assert "tried again in 30 s: [Errno 28] No space left" in caplog.text
    assert [tick.state for tick in ledger.ticks() if tick.state == "claimed"] == []
    assert len(runs.launches) == ledger.counts()["pushed"]


def test_the_outcome_is_told(scheduler, clock, runs, make_schedule, told, record):
    record("r2", status="pushed", notes=("anomaly: column 'miles'",))
    runs.outcomes = [
        {"run_id": None, "status": "failed", "error": "bad_input", "reason": "no column"},
        "pushed",
        {"run_id": "r2", "status": "pushed", "version": "2"},
        {"run_id": "r3", "status": "not_blessed", "reason": "worse"},
    ]
    scheduler.store.write(make_schedule(missed="catch-up", grace_secs=1_000))
    clock.pass_by(240)
    scheduler.run_due()
    assert events(told) == ["failed", "drifted", "not_blessed"]
    assert told[0]["log"].endswith("20260131T100100Z.1.err")


def test_a_receiver_that_is_down_fails_no_run_and_is_told_later(
    root, clock, stop, runs, make_schedule, caplog
):
    sent, is_down = [], True

    def deliver(config, content):
        if is_down:
            raise DeliveryError("mail is down")
        sent.append(content)

    scheduler = Scheduler(Root(root), clock, stop, start=runs.start, deliver=deliver)
    scheduler.store.write(make_schedule(every_secs=3_600))
    runs.outcomes = [{"run_id": "r", "status": "not_blessed", "reason": "worse"}]
    clock.pass_by(3_600)
    (done,) = scheduler.run_due()
    assert done.status == "not_blessed"
    assert len(scheduler.outbox.pending()) == 1
    assert "mail is down" in caplog.text
    is_down = False
    run_for(scheduler, clock, stop, 60)
    assert events(sent) == ["not_blessed"]
    assert scheduler.outbox.pending() == []


def test_who_is_told_when_the_configuration_cannot_be_read(
    root, clock, stop, runs, make_schedule, config_file
):
    sent = []
    scheduler = Scheduler(
        Root(root),
        clock,
        stop,
        start=runs.start,
        deliver=lambda config, _: sent.append(config.command),
    )
    fail = {"run_id": None, "status": "failed", "error": "bad_input"}
    runs.outcomes = [fail, fail, fail]
    # At first nothing is known but the settings of the schedule.
    text = config_file.read_text()
    config_file.write_text("[data")
    scheduler.store.write(make_schedule(notify=NotifyConfig(command="created")))
    clock.pass_by(60)
    scheduler.run_due()
    config_file.write_text(text.replace('"tell"', '"tell-others"'))
    clock.pass_by(60)
    scheduler.run_due()
    config_file.write_text("[data")
    clock.pass_by(60)
    scheduler.run_due()
    assert sent == ["created", "tell-others", "tell-others"]


@pytest.mark.parametrize(
    ("missed", "num_runs", "counts"),
    [
        ("skip", 0, {"skipped": 4}),
        ("latest", 1, {"skipped": 3, "pushed": 1}),
        ("catch-up", 4, {"pushed": 4}),
    ],
)
def test_a_machine_that_slept_through_four_ticks(
    scheduler, clock, make_schedule, ledger, told, missed, num_runs, counts, runs
):
    scheduler.store.write(make_schedule(missed=missed))
    runs.secs = 2
    clock.pass_by(4 * 60 + 40)
    done = scheduler.run_due()
    assert len(done) == num_runs
    assert ledger.counts() == counts
    assert events(told) == ["missed"]  # once, and not for each run
    assert told[0]["missed"]["count"] == 4
    clock.time = START.replace(minute=5)
    (following,) = scheduler.run_due()
    assert following.due.startswith("2026-01-31T10:05")
    assert events(told) == ["missed"]


def test_a_run_that_takes_longer_than_its_time_is_told_while_it_goes_on(
    scheduler, clock, runs, make_schedule, told
):
    scheduler.store.write(make_schedule())
    runs.secs = 300
    when_told = []
    deliver = scheduler.outbox._deliver
    scheduler.outbox._deliver = lambda *args: (when_told.append(clock.now()), deliver(*args))
    clock.pass_by(60)
    scheduler._run_next()
    assert events(told) == ["missed"]
    # The tick of 10:02 may be 30 s late; it is looked every 10 s.
    late = (when_told[0] - START).total_seconds()
    assert 150 < late <= 162


def test_lateness_is_told_anew_when_it_was_over(scheduler, clock, make_schedule, told):
    scheduler.store.write(make_schedule())
    for _ in range(2):
        clock.pass_by(200)
        scheduler.run_due()
        clock.time = clock.time.replace(second=0)
        clock.pass_by(60)
        scheduler.run_due()
    assert events(told) == ["missed", "missed"]


def test_spans_are_looked_for_at_their_distance(scheduler, clock, stop, make_schedule, ledger):
    looked = []
    find = scheduler._find

    def look(schedule, known):
        looked.append(clock.monotonic())
        return find(schedule, known)

    scheduler._find = look
    scheduler.store.write(make_schedule(on_new_span=True, poll_secs=100))
    scheduler.run_due()
    assert [(tick.spans, tick.state) for tick in ledger.ticks()] == [("10", "done")]
    looked.clear()
    run_for(scheduler, clock, stop, 450)
    assert len(looked) in (4, 5)


def spans_of(runs):
    """Returns the spans that runs were started with, in their order."""
    given = [runs.option(number, "--set") for number in range(len(runs.launches))]
    return [text.removeprefix("data.spans=") for text in given]


def test_a_new_span_is_run_once_and_with_itself(
    scheduler, clock, stop, runs, make_schedule, ledger, tmp_path
):
    scheduler.store.write(make_schedule(on_new_span=True, missed="catch-up", poll_secs=20))
    scheduler.run_due()
    for number in (11, 12):
        shutil.copytree(tmp_path / "span-10", tmp_path / f"span-{number}")
    run_for(scheduler, clock, stop, 200)
    assert spans_of(runs) == ["10", "11", "12"]


@pytest.mark.parametrize(
    "kept", [200, 2]
)  # with 2, ticks of spans are in the sums when 9 and 7 come
def test_catch_up_loses_no_span_that_arrives_after_a_later_one(
    root, clock, stop, runs, make_schedule, ledger, tmp_path, kept, monkeypatch
):
    monkeypatch.setattr(Ledger.fold, "__defaults__", (kept,))

    def work():  # each time a scheduler that was just started
        run_for(
            Scheduler(Root(root), clock, stop, start=runs.start, deliver=print), clock, stop, 70
        )

    (tmp_path / "span-9").rename(tmp_path / "held-back")
    ScheduleStore(Root(root)).write(
        make_schedule(on_new_span=True, missed="catch-up", poll_secs=20)
    )
    work()
    for number in (11, 12, 13):
        shutil.copytree(tmp_path / "span-10", tmp_path / f"span-{number}")
    work()
    (tmp_path / "held-back").rename(tmp_path / "span-9")
    shutil.copytree(tmp_path / "span-11" / "v1", tmp_path / "span-11" / "v2")  # corrected
    shutil.copytree(tmp_path / "span-10", tmp_path / "span-7")
    work()
    work()
    assert spans_of(runs) == ["10", "11", "12", "13", "7", "9", "11"]
    assert ledger.counts() == {"pushed": 7}
    assert ledger.last_ended()[0].key.endswith("11-v000000000000000002")


def test_each_schedule_on_new_spans_has_its_turn_at_once(scheduler, make_schedule):
    for name in ("a", "b", "c"):
        scheduler.store.write(make_schedule(name=name, on_new_span=True, poll_secs=600))
    assert [(tick.schedule, tick.spans) for tick in scheduler.run_due()] == [
        ("a", "10"), ("b", "10"), ("c", "10"),
    ]  # fmt: skip


def test_a_late_span_that_is_not_run_is_said_once(
    scheduler, clock, stop, runs, make_schedule, ledger, tmp_path, told, caplog
):
    scheduler.store.write(make_schedule(on_new_span=True, poll_secs=20))
    scheduler.run_due()
    shutil.copytree(tmp_path / "span-10", tmp_path / "span-7")
    run_for(scheduler, clock, stop, 200)
    assert spans_of(runs) == ["10"]
    assert ledger.counts() == {"pushed": 1, "skipped": 1}
    assert events(told) == ["missed"]
    text = "trips: span 7 arrived after span 10, and only newer ones are run; `schedule backfill "
    assert told[0]["text"] == text + "--name trips --from 7 --to 7` runs it"
    assert caplog.text.count("span 7 arrived after span 10") == 1


def test_old_spans_stay_unrun_when_a_run_from_before_is_gone_on_with(
    scheduler, clock, runs, make_schedule, ledger
):
    schedule = make_schedule(on_new_span=True, missed="catch-up", poll_secs=20)
    scheduler.store.write(schedule)
    of_span_10 = find_arrivals(schedule, frozenset())[-1]
    ledger.write(span_tick("trips", of_span_10, START))  # claimed, and nothing is noted of old ones
    scheduler.run_due()
    assert spans_of(runs) == ["10"]


def test_what_cannot_be_seen_is_said_once_and_does_not_end_it(
    scheduler, clock, stop, make_schedule, config_file, caplog, runs
):
    scheduler.store.write(make_schedule(on_new_span=True, poll_secs=20))
    text = config_file.read_text()
    config_file.write_text("[data")
    with caplog.at_level(logging.WARNING):
        run_for(scheduler, clock, stop, 200)
    assert caplog.text.count("its due runs are unknown") == 1
    config_file.write_text(text)
    run_for(scheduler, clock, stop, 100)
    assert len(runs.launches) == 1


def test_a_stop_ends_it_at_once(scheduler, clock, stop, make_schedule, runs, ledger):
    scheduler.store.write(make_schedule(missed="catch-up"))
    runs.secs = 1_000
    runs.outcomes = [lambda launch: 130]
    clock.pass_by(180)
    deliver = scheduler.outbox._deliver
    scheduler.outbox._deliver = lambda *args: (stop.request(), deliver(*args))
    scheduler.run()
    assert runs.processes[0].signals == ["stop"]
    assert len(runs.launches) == 1
    assert ledger.unfinished() is not None


def test_a_run_of_a_backfill_is_waited_for(scheduler, clock, make_schedule, root, runs):
    scheduler.store.write(make_schedule())
    clock.pass_by(60)
    lock = take_run_lock(root / "schedules")
    clock.at_sleep = lambda: len(clock.naps) == 3 and os.close(lock)
    (done,) = scheduler.run_due()
    assert done.status == "pushed"
    assert clock.naps == [5.0] * 3
