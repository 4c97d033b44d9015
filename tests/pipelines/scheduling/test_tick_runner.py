"""The order of writes, retries, and the remains of a former scheduler. Kills: test_crashes.py."""

import json
import os
from datetime import timedelta

import pytest

from pipelines.root import Root
from pipelines.scheduling.locks import take_run_lock
from pipelines.scheduling.tick_runner import MAX_STARTS_LEFT, StoppedError, TickRunner
from pipelines.scheduling.ticks import time_tick
from tests.pipelines.scheduling.conftest import START

TICK = time_tick("trips", START)


class Listener:
    def __init__(self):
        self.done, self.waits, self.at_wait = [], 0, lambda: None

    def waiting(self):
        self.waits += 1
        self.at_wait()

    def ended(self, schedule, ledger, tick):
        assert ledger.read(tick.key).state == "claimed"  # before the outcome is stored
        self.done.append(tick)


@pytest.fixture
def listener():
    return Listener()


@pytest.fixture
def runner(root, clock, stop, listener, runs):
    return TickRunner(Root(root), clock, stop, listener, start=runs.start)


def failed(root, record, tick=TICK, run_id="20260131-100000", **line):
    """Returns the outcome of a run that leaves a record."""

    def end(launch):
        record(run_id, status=line.get("status", "failed"), scheduled_by=tick.id)
        line_of = {"run_id": run_id, "status": "failed", "reason": "Trainer: oh", **line}
        launch.stdout.parent.mkdir(parents=True, exist_ok=True)
        launch.stdout.write_text(json.dumps(line_of) + "\n")
        return 1

    return end


def killed(launch):
    """A run without output."""
    return -9


def test_a_tick_is_claimed_before_its_run_starts_and_done_after(
    runner, ledger, runs, listener, make_schedule
):
    seen = []
    start = runs.start

    def look(launch):
        seen.append(ledger.read(TICK.key))
        return start(launch)

    runner._start = look
    schedule = make_schedule()
    done = runner.run(schedule, ledger, TICK)
    assert (seen[0].state, seen[0].starts, seen[0].pid) == ("claimed", 1, None)
    assert (done.state, done.status, done.run_id, done.starts) == ("done", "pushed", "run-1", 1)
    assert done.duration_secs == 5
    assert ledger.read(TICK.key) == done
    assert listener.done == [done]
    # It is not run twice, whoever asks.
    assert runner.run(schedule, ledger, TICK) == done
    assert len(runs.launches) == 1


@pytest.mark.parametrize("status", ["unchanged", "not_blessed"])
def test_a_verdict_is_no_reason_to_try_again(runner, ledger, runs, make_schedule, status):
    runs.outcomes = [{"run_id": "r", "status": status, "reason": "as before"}]
    done = runner.run(make_schedule(retries=3), ledger, TICK)
    assert (done.status, done.reason, done.failures) == (status, "as before", 0)
    assert len(runs.launches) == 1


def test_a_run_that_fails_is_resumed_as_often_as_is_said(
    runner, ledger, runs, make_schedule, record, root, clock
):
    runs.outcomes = [failed(root, record) for _ in range(5)]
    done = runner.run(make_schedule(retries=2), ledger, TICK)
    assert (done.status, done.failures, done.reason) == ("failed", 2, "Trainer: oh")
    resumed = ["--resume" in launch.command for launch in runs.launches]
    assert resumed == [False, True, True]
    assert clock.naps.count(60.0) == 2
    assert [launch.stdout.name for launch in runs.launches] == [
        f"{TICK.key}.{number}.out" for number in (1, 2, 3)
    ]


def test_a_retry_that_succeeds(runner, ledger, runs, make_schedule, record, root):
    runs.outcomes = [failed(root, record), "pushed"]
    done = runner.run(make_schedule(), ledger, TICK)
    assert (done.status, done.failures, done.reason) == ("pushed", 1, None)


def test_bad_data_are_not_tried_again(runner, ledger, runs, make_schedule):
    line = {"run_id": None, "status": "failed", "error": "bad_input", "reason": "no column"}
    runs.outcomes = [line]
    done = runner.run(make_schedule(retries=3), ledger, TICK)
    assert (done.status, done.reason) == ("failed", "no column")
    assert len(runs.launches) == 1


def test_what_cannot_be_resumed_begins_anew(runner, ledger, runs, make_schedule, record, root):
    bad = {
        "run_id": None,
        "status": "failed",
        "error": "bad_input",
        "reason": "--resume: other data",
    }
    runs.outcomes = [failed(root, record), bad, "pushed"]
    done = runner.run(make_schedule(), ledger, TICK)
    assert done.status == "pushed"
    resumed = ["--resume" in launch.command for launch in runs.launches]
    assert resumed == [False, True, False]


def test_a_run_that_is_killed_counts_as_one_that_failed(runner, ledger, runs, make_schedule):
    runs.outcomes = [killed, killed, killed]
    done = runner.run(make_schedule(retries=1), ledger, TICK)
    assert done.status == "failed"
    assert done.reason == "its process was killed by signal 9"


def test_a_run_that_ends_without_a_last_line_is_told_with_its_last_words(
    runner, ledger, runs, make_schedule
):
    def broken(launch):
        """Such as when the environment was upgraded by half."""
        launch.stderr.parent.mkdir(parents=True, exist_ok=True)
        launch.stderr.write_text("Traceback\n  ...\nModuleNotFoundError: No module named 'tfx'\n")
        return 1

    runs.outcomes = [broken, broken]
    done = runner.run(make_schedule(), ledger, TICK)
    assert (done.status, done.failures) == ("failed", 1)
    assert done.reason == (
        "its process ended with exit code 1 before the run had ended: "
        "Traceback |   ... | ModuleNotFoundError: No module named 'tfx'"
    )
    assert len(runs.launches) == 2


def test_a_process_that_says_nothing_leaves_its_last_words(runner, ledger, runs, make_schedule):
    def end(launch):
        launch.stdout.parent.mkdir(parents=True, exist_ok=True)
        launch.stdout.write_text('{"run_id": null, "status": "failed", "error": "bad_input"}\n')
        launch.stderr.write_text("Traceback\nMemoryError\n")
        return 1

    runs.outcomes = [end]
    assert runner.run(make_schedule(), ledger, TICK).reason == "Traceback | MemoryError"


def test_a_process_that_cannot_be_started(runner, ledger, make_schedule):
    def fail(launch):
        raise FileNotFoundError(2, "No such file or directory", launch.working_dir)

    runner._start = fail
    done = runner.run(make_schedule(retries=1), ledger, TICK)
    assert done.status == "failed"
    assert "could not be started" in done.reason
    assert done.starts == 2


def test_the_time_limit(runner, ledger, runs, make_schedule, record, root):
    def interrupted(launch):
        return failed(root, record, status="interrupted")(launch)

    runs.secs, runs.outcomes = 1_000, [interrupted]
    done = runner.run(make_schedule(timeout_secs=90, retries=3), ledger, TICK)
    assert runs.processes[0].signals == ["stop"]
    assert (done.status, done.reason) == ("failed", "stopped after the time limit of 90 s")
    assert len(runs.launches) == 1
    assert 90 <= done.duration_secs < 100


def test_a_run_that_does_not_stop_is_killed(runner, ledger, runs, make_schedule):
    class Stubborn:
        pid, signals, over = 1, [], False

        def wait(self, secs):
            runs.clock.pass_by(secs)
            return -9 if self.over else None

        def stop(self):
            self.signals.append("stop")

        def kill(self):
            self.signals.append("kill")
            self.over = True

    process = Stubborn()
    runner._start = lambda launch: process
    done = runner.run(make_schedule(timeout_secs=90), ledger, TICK)
    assert process.signals == ["stop", "kill"]
    assert done.status == "failed"


def test_the_run_is_stopped_with_the_scheduler_and_resumed_by_the_next(
    runner, ledger, runs, stop, listener, make_schedule, record, root
):
    runs.secs = 100
    runs.outcomes = [lambda launch: -15]
    listener.at_wait = lambda: listener.waits > 5 and stop.request()
    with pytest.raises(StoppedError):
        runner.run(make_schedule(), ledger, TICK)
    assert runs.processes[0].signals == ["stop"]
    left = ledger.read(TICK.key)
    assert (left.state, left.starts, left.failures) == ("claimed", 1, 0)
    record("20260131-100000", status="interrupted", scheduled_by=TICK.id)
    stop.requested, listener.at_wait = False, lambda: None
    done = runner.run(make_schedule(), ledger, TICK)
    assert (done.status, done.starts, done.failures) == ("pushed", 2, 0)
    assert "--resume" in runs.launches[1].command


def test_another_run_has_the_root(runner, ledger, runs, clock, make_schedule, root):
    holder = Root(root).lock.writing.held()
    holder.__enter__()
    clock.at_sleep = lambda: len(clock.naps) == 3 and holder.__exit__(None, None, None)
    assert runner.run(make_schedule(), ledger, TICK).status == "pushed"
    assert clock.naps == [5.0] * 3


def test_another_run_takes_the_root_in_the_last_moment(runner, ledger, runs, make_schedule):
    busy = {"run_id": None, "status": "failed", "error": "root_busy", "reason": "Another run"}
    runs.outcomes = [busy, busy, "pushed"]
    done = runner.run(make_schedule(retries=0), ledger, TICK)
    assert (done.status, done.failures, done.starts) == ("pushed", 0, 3)


def test_a_run_that_is_alive_is_waited_for(runner, ledger, runs, clock, make_schedule, root):
    schedule = make_schedule()
    left = TICK.changed(starts=1, pid=os.getpid(), started=TICK.due, newest_start=TICK.due)
    ledger.write(left)
    lock = take_run_lock(root / "schedules")

    def end():
        if len(clock.naps) == 4:
            out = ledger.output_file(left, "out")
            out.parent.mkdir()
            out.write_text('{"run_id": "theirs", "status": "pushed", "version": "9"}\n')
            os.close(lock)

    clock.at_sleep = end
    done = runner.run(schedule, ledger, TICK)
    assert (done.status, done.run_id, done.version) == ("pushed", "theirs", "9")
    assert not runs.launches


def test_a_run_that_is_alive_has_its_time_limit(
    runner, ledger, runs, clock, make_schedule, root, monkeypatch
):
    ledger.write(TICK.changed(starts=1, pid=4711, started=TICK.due, newest_start=TICK.due))
    lock = take_run_lock(root / "schedules")
    signals = []

    def stop_it(tick, number):
        signals.append((clock.now() - START, int(number)))
        if number == 9:
            os.close(lock)

    monkeypatch.setattr("pipelines.scheduling.tick_runner._signal_left_behind", stop_it)
    done = runner.run(make_schedule(timeout_secs=300), ledger, TICK)
    assert (done.status, done.reason) == ("failed", "stopped after the time limit of 300 s")
    # One of each: a second SIGTERM would end the run before it has saved anything.
    assert signals == [(timedelta(seconds=305), 15), (timedelta(seconds=420), 9)]


def test_a_run_that_never_ends_is_given_up(runner, ledger, runs, make_schedule):
    ledger.write(TICK.changed(starts=MAX_STARTS_LEFT + 2, started=TICK.due))
    done = runner.run(make_schedule(retries=1), ledger, TICK)
    assert done.status == "failed"
    assert done.reason.startswith("started 12 times without coming to an end")
    assert not runs.launches


def test_claimed_and_not_started(runner, ledger, runs, make_schedule):
    ledger.write(TICK)
    assert runner.run(make_schedule(), ledger, TICK).status == "pushed"
    assert len(runs.launches) == 1
