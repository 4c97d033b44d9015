import logging
import shutil
from datetime import timedelta

import pytest

from pipelines.root.records import RunRecords
from pipelines.scheduling.backfill import plan_backfill
from pipelines.scheduling.receivers import Receivers
from pipelines.scheduling.scheduler import MAX_STARTS_LEFT, StoppedError
from pipelines.scheduling.spans import find_arrivals
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START

TICK = time_tick("trips", START + timedelta(minutes=1))
ENDED = {"status": "failed", "is_bad_input": True}
UNTOLD = {**ENDED, "scheduled_by": TICK.id, "notification": "pending"}
BAD = {"error": "bad_input", "reason": "no column"}
BUSY = {"error": "root_busy", "reason": "Another run"}


def minutes(runs):
    return [int(run.scheduled_by[-5:-3]) for run in runs]


def events(told):
    return [content["event"] for content in told]


def statuses(root):
    return [record.status for record in root.records.read_all()]


@pytest.fixture
def run_for(scheduler, clock, stop):
    """Returns a function that runs a scheduler for some seconds of its clock."""

    def run(secs, by=scheduler):
        until = clock.monotonic() + secs
        clock.at_sleep = lambda: clock.monotonic() >= until and stop.request()
        by.run()
        stop.requested = False

    return run


def resumed(runs):
    return ["--resume" in launch.command for launch in runs.launches]


def killed(launch):
    """A run that leaves nothing."""
    return -9


# Ticks


def test_twenty_ticks_at_one_a_minute(clock, root, add, run_for):
    add()
    run_for(20 * 60 + 5)
    records = root.records.read_all()
    assert minutes(records) == list(range(1, 21))
    assert {record.status for record in records} == {"pushed"}
    assert [record.started[14:19] for record in records] == [f"{n:02}:00" for n in range(1, 21)]
    assert max(clock.naps) <= 30


def test_schedules_take_turns_and_the_earliest_is_first(scheduler, clock, add):
    add(name="a", every_secs=100, missed="catch-up")
    add(name="b", every_secs=70, missed="catch-up")
    clock.pass_by(250)
    done = scheduler.run_due()
    # a at 100 and 200 s, b at 70, 140 and 210 s.
    assert "".join(run.scheduled_by[0] for run in done) == "babab"


@pytest.mark.parametrize("missed", ["latest", "catch-up"])
def test_what_is_due_ends_though_runs_take_longer_than_the_interval(scheduler, clock, runs, missed, add):
    add(missed=missed)
    runs.secs = 90
    runs.outcomes = ["pushed"] * 5 + [lambda launch: pytest.fail("it does not end")]
    clock.pass_by(130)
    assert minutes(scheduler.run_due()) == {"latest": [2], "catch-up": [1, 2]}[missed]


@pytest.mark.parametrize("enabled", [True, False])  # a disabled schedule is left alone
def test_an_interrupted_run_is_resumed_before_anything_else(scheduler, clock, runs, record, add, enabled):
    add(missed="catch-up", enabled=enabled)
    record("20260131-100100", status="running", scheduled_by=TICK.id, attempt=3)
    clock.pass_by(180)
    done = scheduler.run_due()
    assert minutes(done) == [1, 2, 3] * enabled
    assert resumed(runs) == [True, False, False] * enabled
    assert [run.run_id for run in done[:1]] == ["20260131-100100"] * enabled


def test_a_schedule_that_is_created_while_it_sleeps(scheduler, clock, stop, runs, add):
    def change():
        if clock.monotonic() > 300 and not scheduler.store.names():
            add(since=clock.now(), created=clock.now())
        if clock.monotonic() > 700:
            stop.request()

    clock.at_sleep = change
    scheduler.run()
    assert len(runs.launches) == 6


def test_a_full_disk_does_not_end_it(clock, root, monkeypatch, caplog, add, run_for):
    add()
    write, failures = RunRecords.write, []

    def fail(self, record):
        if 160 < clock.monotonic() < 260:
            failures.append(record)
            raise OSError(28, "No space left on device")
        write(self, record)

    monkeypatch.setattr(RunRecords, "write", fail)
    run_for(290)
    assert failures
    assert "error, retrying in 30 s: [Errno 28] No space left" in caplog.text
    assert set(statuses(root)) == {"pushed"}


@pytest.mark.parametrize(("missed", "expected"), [("skip", []), ("latest", [4]), ("catch-up", [1, 2, 3, 4])])
def test_a_machine_that_slept_through_four_ticks(scheduler, clock, told, missed, expected, runs, add):
    add(missed=missed)
    runs.secs = 2
    clock.pass_by(4 * 60 + 40)
    assert minutes(scheduler.run_due()) == expected
    assert events(told) == ["missed"]  # once, and not for each run
    assert told[0]["missed"]["count"] == 4
    clock.time = START.replace(minute=5)
    assert minutes(scheduler.run_due()) == [5]
    assert events(told) == ["missed"]


def test_lateness_is_told_again_after_a_run_in_time(scheduler, clock, told, add):
    add()
    for _ in range(2):
        clock.pass_by(200)
        scheduler.run_due()
        clock.time = clock.time.replace(second=0)
        clock.pass_by(60)
        scheduler.run_due()
    assert events(told) == ["missed", "missed"]


def test_ticks_that_become_late_during_a_run_are_told_too(scheduler, clock, told, runs, add):
    add(missed="catch-up")
    runs.secs = 150
    clock.pass_by(60)
    done = [scheduler._run_next(clock.now()) for _ in range(3)]
    # The run of minute 1 ends at 3:30; that of minute 2 at 6:00, when 3, 4 and 5 are late.
    assert minutes(done) == [1, 2, 3]
    assert [content["missed"]["count"] for content in told] == [1, 3]


def test_long_runs_of_a_schedule_keep_no_other_from_running(runs, add, run_for):
    for name in ("trips", "zones"):
        add(name=name)
    runs.secs = 70
    run_for(700)
    ids = [runs.option(number, "--scheduled-by") for number in range(len(runs.launches))]
    names = [tick.partition("/")[0] for tick in ids]
    assert abs(names.count("zones") - names.count("trips")) <= 1
    assert len(names) >= 8


# A clock that is wrong


def test_a_clock_that_was_a_year_ahead_for_one_look_silences_nothing(scheduler, clock, runs, add):
    add(cron="0 3 * * *")
    clock.time = START.replace(year=2027)
    assert len(scheduler.run_due()) == 1
    clock.time = START
    assert scheduler.run_due() == []
    clock.time = START + timedelta(days=1)
    scheduler.run_due()
    assert runs.ticks() == ["20270131T030000Z", "20260201T030000Z"]


def test_catch_up_runs_again_what_a_clock_a_year_ahead_ran_too_early(make_scheduler, clock, stop, runs, add):
    add(cron="0 3 * * *", missed="catch-up")
    clock.time = START.replace(year=2027)
    runs.outcomes = ["pushed", "pushed", lambda launch: stop.request() or -9]
    make_scheduler().run_due()
    stop.requested = False
    clock.time = START + timedelta(days=1)
    make_scheduler().run_due()
    clock.time = START + timedelta(days=2)
    make_scheduler().run_due()
    days = [key[4:8] for key in runs.ticks()]
    assert days == ["0201", "0202", "0203", "0201", "0202"]


def test_what_was_skipped_by_a_clock_that_was_ahead_is_ignored(scheduler, clock, runs, caplog, store, add):
    add(cron="0 3 * * *", missed="skip")
    clock.time = START.replace(year=2027)
    scheduler.run_due()
    assert store.read("trips").since == START.replace(year=2027, hour=3)
    clock.time = START.replace(day=1, month=2, hour=3, minute=1)
    scheduler.run_due()
    assert runs.ticks() == ["20260201T030000Z"]
    assert "2027-01-31T03:00:00+00:00, a time in the future" in caplog.text


def test_a_clock_that_is_set_back_runs_no_tick_twice(scheduler, clock, runs, add):
    add(missed="catch-up")
    clock.pass_by(180)
    scheduler.run_due()
    clock.time = START + timedelta(seconds=50)
    for _ in range(5):
        scheduler.run_due()
        clock.time = clock.time.replace(second=0) + timedelta(minutes=1)
    assert [key[11:13] for key in runs.ticks()] == ["01", "02", "03", "04"]


# Failures, retries and kills


@pytest.fixture
def run_tick(scheduler, make_schedule):
    """Returns a function that runs a tick of a schedule until it is done."""
    return lambda **changes: scheduler.run_tick(make_schedule(**changes), TICK)


OH = {"status": "failed", "reason": "Trainer: oh"}
OTHER_DATA = {**BAD, "reason": "--resume: other data"}
KILLED_MIDWAY = "its process was killed by signal 9 before its run ended"
KILLED = "its process was killed by signal 9 before its run began: it printed nothing"


@pytest.mark.parametrize(
    ("outcomes", "retries", "is_resumed", "records", "reason"),
    [
        ([OH] * 5, 2, [False, True, True], ["failed"], "Trainer: oh"),
        (["failed", "pushed"], 1, [False, True], ["pushed"], None),
        (["unchanged"], 3, [False], ["unchanged"], None),
        (["not_blessed"], 3, [False], ["not_blessed"], None),
        (["held"], 3, [False], ["held"], None),
        ([BAD], 3, [False], ["failed"], "no column"),
        (["failed", OTHER_DATA, "pushed"], 1, [False, True, False], ["failed", "pushed"], None),
        ([killed, killed], 1, [False, False], ["failed", "failed"], KILLED),
        (["running"] * 5, 2, [False, True, True], ["failed"], KILLED_MIDWAY),
        (["running", "pushed"], 1, [False, True], ["pushed"], None),
        # Another run has taken the root at the last moment.
        ([BUSY, BUSY, "pushed"], 0, [False] * 3, ["pushed"], None),
    ],
)
def test_what_is_tried_again(run_tick, runs, clock, root, outcomes, retries, is_resumed, records, reason):
    runs.outcomes = [*outcomes]
    run = run_tick(retries=retries)
    assert (run.status, run.reason) == (records[-1], reason)
    assert resumed(runs) == is_resumed
    assert statuses(root) == records
    # A minute before each new attempt, except where the root was busy.
    assert clock.naps == [60.0] * (len(is_resumed) - 1 if BUSY not in outcomes else 0)


def test_each_resumption_is_another_attempt_of_the_run(run_tick, runs, told):
    runs.outcomes = ["failed", "failed", "pushed"]
    assert run_tick(retries=2).attempt == 3
    assert told == []


def test_bad_data_are_not_tried_again_whoever_asks(run_tick, runs, told):
    """A run that is refused before it begins has a record all the same, that of the scheduler."""
    runs.outcomes = [BAD]
    run = run_tick(retries=3)
    assert (run.is_bad_input, run.scheduled_by, run.attempt) == (True, TICK.id, 0)
    assert told[0]["text"] == f"trips: run {run.run_id} failed: no column"
    assert run_tick(retries=3).run_id == run.run_id
    assert len(runs.launches) == len(told) == 1


def test_a_run_behind_a_newer_one_is_not_resumed(run_tick, runs, record):
    record("20260131-100100", status="interrupted", scheduled_by=TICK.id, number=1)
    record("20260131-100200", status="failed", number=2)  # by hand
    assert run_tick().status == "pushed"
    assert resumed(runs) == [False]


def test_a_process_that_breaks_leaves_the_end_of_its_output(run_tick, runs):
    def broken(launch):
        """Such as when half of the environment was upgraded."""
        launch.stderr.parent.mkdir(parents=True, exist_ok=True)
        launch.stderr.write_text("Traceback\n  ...\nModuleNotFoundError: No module named 'tfx'\n")
        return 1

    runs.outcomes = [broken]
    assert run_tick(retries=0).reason == (
        "its process ended with exit code 1 before its run began: "
        "Traceback |   ... | ModuleNotFoundError: No module named 'tfx'"
    )


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No folder"), ValueError("embedded null byte")])
def test_a_process_that_cannot_be_started(make_scheduler, make_schedule, root, error):
    def fail(launch):
        raise error

    run = make_scheduler(start=fail).run_tick(make_schedule(retries=1), TICK)
    assert f"could not be started: {error}" in run.reason
    assert statuses(root) == ["failed", "failed"]


@pytest.mark.parametrize(("is_stubborn", "signals"), [(False, ["stop"]), (True, ["stop", "kill"])])
def test_the_time_limit(run_tick, runs, is_stubborn, signals):
    runs.secs, runs.is_stubborn = 1_000, is_stubborn
    run = run_tick(timeout_secs=90, retries=0)
    assert runs.processes[0].signals == signals
    assert run.status == "failed"
    if not is_stubborn:
        assert run.reason == "stopped after its time limit, 90 s"
    assert len(runs.launches) == 1


def test_a_run_that_pushed_right_at_its_time_limit_has_pushed(run_tick, runs, record, root):
    def push(launch):
        record("20260131-100100", status="pushed", scheduled_by=TICK.id)
        return 0

    runs.secs, runs.outcomes = 1_000, [push]
    assert run_tick(timeout_secs=90).status == "pushed"
    assert runs.processes[0].signals == ["stop"]
    assert statuses(root) == ["pushed"]


def test_the_run_is_stopped_with_its_scheduler_and_resumed(scheduler, make_scheduler, runs, stop, clock, add):
    add(every_secs=3_600)
    clock.pass_by(3_600)
    runs.secs = 100
    scheduler._refresh = lambda: clock.monotonic() > 3_710 and stop.request()
    assert scheduler.run_due() == []
    assert runs.processes[0].signals == ["stop"]
    stop.requested = False
    (run,) = make_scheduler().run_due()
    assert (run.status, run.attempt) == ("pushed", 2)
    assert resumed(runs) == [False, True]


def test_a_run_that_never_ends_is_given_up(run_tick, runs, record):
    starts = MAX_STARTS_LEFT + 1
    record("20260131-100100", status="interrupted", scheduled_by=TICK.id, attempt=starts)
    run = run_tick(retries=1)
    assert (run.status, run.reason) == ("failed", "started 11 times without finishing")
    assert not runs.launches


def test_another_run_has_the_root(run_tick, clock, root):
    holder = root.lock.writing.held()
    holder.__enter__()
    clock.at_sleep = lambda: len(clock.naps) == 3 and holder.__exit__(None, None, None)
    assert run_tick().status == "pushed"
    assert clock.naps == [5.0] * 3


def test_a_run_left_by_a_killed_scheduler_is_waited_for(scheduler, clock, runs, root, record, told, add):
    add()
    clock.pass_by(60)
    left = record("20260131-100100", status="running", scheduled_by=TICK.id)
    holder = root.lock.writing.held()
    holder.__enter__()

    def end():
        if len(clock.naps) == 4:
            root.records.write(left.changed(status="not_blessed", reason="worse", notification="pending"))
            holder.__exit__(None, None, None)

    clock.at_sleep = end
    (run,) = scheduler.run_due()
    assert (run.run_id, run.status) == ("20260131-100100", "not_blessed")
    assert not runs.launches
    assert events(told) == ["not_blessed"]


def test_a_stop_ends_it_at_once(scheduler, clock, stop, make_schedule, runs, add):
    add(missed="catch-up")
    runs.secs = 1_000
    clock.pass_by(180)
    scheduler._refresh = stop.request
    scheduler.run()
    assert runs.processes[0].signals == ["stop"]
    assert len(runs.launches) == 1
    with pytest.raises(StoppedError):
        scheduler.run_tick(make_schedule(), TICK)


# Notifications


def test_the_outcome_is_told_once(scheduler, make_scheduler, clock, runs, told, root, add):
    drifted = {"status": "pushed", "notes": ("anomaly: column 'miles'",)}
    runs.outcomes = [BAD, "pushed", drifted, {"status": "not_blessed", "reason": "worse"}]
    add(missed="catch-up", grace_secs=1_000)
    clock.pass_by(240)
    scheduler.run_due()
    make_scheduler().run_due()
    assert events(told) == ["failed", "drifted", "not_blessed"]
    assert told[1]["notes"] == ["column 'miles'"]
    assert {record.notification for record in root.records.read_all()} == {""}


def test_an_end_that_no_scheduler_saw_is_told_by_the_next(scheduler, told, record, add):
    add()
    record("20260131-100100", **UNTOLD)
    record("20260131-090000", **ENDED, scheduled_by="trips/20260131T090000Z")
    scheduler.run_due()
    assert [content["run_id"] for content in told] == ["20260131-100100"]


def test_a_failure_of_a_receiver_stops_no_run_and_is_recorded(make_scheduler, clock, runs, root, caplog, add):
    scheduler = make_scheduler(tell=lambda config, content: f"no {content['event']}")
    add(every_secs=3_600)
    runs.outcomes = [{"status": "not_blessed", "reason": "worse"}]
    clock.pass_by(3_600)
    scheduler.run_due()
    (record,) = root.records.read_all()
    assert (record.status, record.notification) == ("not_blessed", "no not_blessed")
    assert "notification failed: trips: run" in caplog.text


def test_a_busy_root_is_no_reason_to_tell_twice(scheduler, told, record, root, add):
    add()
    record("20260131-100100", **UNTOLD)
    with root.lock.writing.held():
        for _ in range(2):
            scheduler.run_due()
    assert root.records.read("20260131-100100").notification == "pending"
    scheduler.run_due()
    assert root.records.read("20260131-100100").notification == ""
    assert events(told) == ["failed"]


def test_the_end_of_a_run_that_is_resumed_by_hand_is_told_too(scheduler, told, record, root, add):
    add()
    failed = record("20260131-100100", **UNTOLD)
    scheduler.run_due()
    held = failed.changed(status="held", is_bad_input=False, attempt=failed.attempt + 1)
    root.records.write(held)
    scheduler.run_due()
    assert events(told) == ["failed", "held"]


def test_who_is_told_of_an_unreadable_configuration(make_scheduler, clock, runs, config_file, store, add):
    commands = []
    scheduler = make_scheduler(tell=lambda config, _: commands.append(config.command) or "")
    runs.outcomes = [BAD, BAD, BAD]
    text = config_file.read_text()
    add()
    Receivers.model_validate({"notify": {"command": "created"}}).write(store.state("trips"))
    for content in ("[data", text.replace('"tell"', '"tell-others"'), "[data"):
        config_file.write_text(content)
        clock.pass_by(60)
        scheduler.run_due()
    assert commands == ["created", "tell-others", "tell-others"]


# Spans


def test_spans_are_looked_for_at_their_distance(make_scheduler, clock, runs, add, run_for):
    looked = []

    def find(schedule, known):
        looked.append(clock.monotonic())
        return find_arrivals(schedule, known)

    scheduler = make_scheduler(find=find)
    add(on_new_span=True, poll_secs=100)
    scheduler.run_due()
    assert runs.spans() == ["10"]
    looked.clear()
    run_for(450, by=scheduler)
    assert len(looked) in (4, 5)


def test_catch_up_loses_no_span_that_arrives_after_a_later_one(make_scheduler, runs, tmp_path, add, run_for):
    def work():  # each time a scheduler that was just started
        run_for(70, by=make_scheduler())

    (tmp_path / "span-9").rename(tmp_path / "held-back")
    add(on_new_span=True, missed="catch-up", poll_secs=20)
    work()
    for number in (11, 12, 13):
        shutil.copytree(tmp_path / "span-10", tmp_path / f"span-{number}")
    work()
    (tmp_path / "held-back").rename(tmp_path / "span-9")
    shutil.copytree(tmp_path / "span-11" / "v1", tmp_path / "span-11" / "v2")  # corrected
    shutil.copytree(tmp_path / "span-10", tmp_path / "span-7")
    work()
    work()
    assert runs.spans() == ["10", "11", "12", "13", "7", "9", "11"]
    assert runs.ticks()[-1].endswith("11-v000000000000000002")


def test_each_schedule_on_new_spans_has_its_turn_at_once(scheduler, runs, add):
    for name in ("a", "b", "c"):
        add(name=name, on_new_span=True, poll_secs=600)
    assert [run.scheduled_by[0] for run in scheduler.run_due()] == ["a", "b", "c"]
    assert runs.spans() == ["10", "10", "10"]


def test_a_late_span_that_is_not_run_is_told_once(scheduler, runs, tmp_path, told, caplog, add, run_for):
    add(on_new_span=True, poll_secs=20)
    scheduler.run_due()
    shutil.copytree(tmp_path / "span-10", tmp_path / "span-7")
    run_for(200)
    assert runs.spans() == ["10"]
    assert events(told) == ["missed"]
    text = (
        "trips: span 7 arrived after a later span was run, and only newer spans are run; `schedule backfill "
    )
    assert told[0]["text"] == text + "--name trips --from 7 --to 7` runs it"
    assert caplog.text.count("span 7 arrived") == 1


@pytest.mark.parametrize("year", [2026, 2027])  # 2027: by a clock that was ahead
def test_an_interrupted_run_of_a_span_is_resumed_with_its_span(scheduler, runs, record, add, year):
    key = "span-000000000000000009-v000000000000000001"
    add(on_new_span=True, missed="catch-up", passed_spans=())
    started = f"{year}-01-31T10:01:00+00:00"
    record("20260131-100100", status="running", scheduled_by=f"trips/{key}", started=started)
    scheduler.run_due()
    assert runs.ticks()[0] == key
    assert runs.spans() == ["9", "8", "10"]
    assert resumed(runs) == [True, False, False]


def test_unknown_due_runs_are_logged_once_and_end_nothing(config_file, caplog, runs, add, run_for):
    add(on_new_span=True, poll_secs=20)
    text = config_file.read_text()
    config_file.write_text("[data")
    with caplog.at_level(logging.WARNING):
        run_for(200)
    assert caplog.text.count("error, retrying in 30 s") == 1
    config_file.write_text(text)
    run_for(100)
    assert len(runs.launches) == 1


def test_a_backfill_is_not_continued_by_the_scheduler(scheduler, make_schedule, runs, record, root, clock):
    schedule = make_schedule(on_new_span=True, passed_spans=(), settings=("data.spans=last 1",))
    scheduler.store.write(schedule)
    tick = plan_backfill(schedule, root, "8", "8", clock.now(), False).ticks[0]
    record("20260131-100100", status="running", scheduled_by=tick.id)
    scheduler.run_due()
    assert tick.key not in runs.ticks()
