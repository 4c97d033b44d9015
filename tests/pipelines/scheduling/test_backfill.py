import shutil

import pytest

from pipelines.errors import BadInputError
from pipelines.root import Root
from pipelines.scheduling.backfill import plan_backfill
from pipelines.scheduling.tick_runner import StoppedError, TickRunner


@pytest.fixture
def runner(root, clock, stop, scheduler, runs):
    return TickRunner(Root(root), clock, stop, scheduler, start=runs.start)


@pytest.fixture
def plan(make_schedule, ledger, clock):
    def make(first, last, again=False, **changes):
        schedule = make_schedule(**changes)
        return plan_backfill(schedule, ledger.folder, first, last, clock.now(), again)

    return make


def spans_of(runs):
    return [runs.option(number, "--set") for number in range(len(runs.launches))]


def test_spans_are_run_in_their_order(plan, runner, runs):
    backfill = plan("8", "10")
    done = list(backfill.run(runner, keep_going=False))
    assert [tick.status for tick in done] == ["pushed"] * 3
    assert spans_of(runs) == ["data.spans=8", "data.spans=9", "data.spans=10"]
    assert backfill.summary() == {
        "pushed": 3, "unchanged": 0, "finished": 0, "held": 0, "not_blessed": 0, "failed": 0, "left": [],
    }  # fmt: skip


def test_windows_end_with_their_span(plan, runner, runs):
    backfill = plan("9", "10", settings=("data.spans=last 2",))
    list(backfill.run(runner, keep_going=False))
    settings = [words.command[words.command.index("--root") - 1] for words in runs.launches]
    assert settings == ["data.spans=last 2 to 9", "data.spans=last 2 to 10"]


def test_it_goes_on_where_it_was_stopped(plan, runner, runs, stop):
    running = plan("8", "10").run(runner, keep_going=False)
    assert next(running).spans == "8"
    stop.request()
    with pytest.raises(StoppedError):
        next(running)
    stop.requested = False
    again = plan("8", "10")
    assert again.begun
    assert again.summary()["left"] == ["9", "10"]
    assert [tick.spans for tick in again.run(runner, keep_going=False)] == ["9", "10"]
    assert len(runs.launches) == 3
    assert list(plan("8", "10").run(runner, keep_going=False)) == []


def test_it_ends_at_a_failure_and_tries_that_again(plan, runner, runs):
    bad = {"run_id": None, "status": "failed", "error": "bad_input", "reason": "no column"}
    runs.outcomes = ["pushed", bad]
    done = list(plan("8", "10").run(runner, keep_going=False))
    assert [tick.status for tick in done] == ["pushed", "failed"]
    summary = plan("8", "10").summary()
    assert (summary["failed"], summary["left"]) == (1, ["10"])
    done = list(plan("8", "10").run(runner, keep_going=False))
    assert [(tick.spans, tick.status) for tick in done] == [("9", "pushed"), ("10", "pushed")]


def test_it_goes_on_behind_a_failure_if_asked(plan, runner, runs):
    bad = {"run_id": None, "status": "failed", "error": "bad_input", "reason": "no column"}
    runs.outcomes = [bad]
    done = list(plan("8", "10").run(runner, keep_going=True))
    assert [tick.status for tick in done] == ["failed", "pushed", "pushed"]


def test_all_of_it_again(plan, runner, runs, clock):
    list(plan("8", "9").run(runner, keep_going=False))
    clock.pass_by(5)
    again = plan("8", "9", again=True)
    assert not again.begun
    assert len(list(again.run(runner, keep_going=False))) == 2
    # Ticks of one span are told apart in the records of their runs.
    ids = {runs.option(number, "--scheduled-by") for number in range(4)}
    assert len(ids) == 4


def test_ranges_that_cannot_be(plan, tmp_path):
    with pytest.raises(BadInputError, match="runs backwards"):
        plan("9", "8")
    with pytest.raises(BadInputError, match=r"--to takes one span: a number.*'8\.\.9'"):
        plan("8", "8..9")
    with pytest.raises(BadInputError, match="--from takes one span: a number"):
        plan("2026-01-31", "9")
    with pytest.raises(BadInputError, match=r"--from x: "):
        plan("x", "9")
    shutil.rmtree(tmp_path / "span-9")
    with pytest.raises(BadInputError, match=r"there is no span 7, 9 of .*There: 8, 10"):
        plan("7", "10")
    with pytest.raises(BadInputError, match="schedule backfill sets which span"):
        plan("8", "8", settings=("data.spans=8",))


def test_nothing_is_begun_when_a_span_cannot_be_read(plan, tmp_path, ledger):
    (tmp_path / "span-9" / "v1" / "b.csv.tmp").touch()
    with pytest.raises(BadInputError, match="is being written"):
        plan("8", "10")
    assert not (ledger.folder / "backfills").exists()
