import pytest

from pipelines.errors import BadInputError
from pipelines.scheduling.backfill import plan_backfill
from pipelines.scheduling.scheduler import StoppedError

BAD = {"error": "bad_input", "reason": "no column"}


@pytest.fixture
def plan(make_schedule, root, clock):
    def make(first, last, again=False, **changes):
        return plan_backfill(make_schedule(**changes), root, first, last, clock.now(), again)

    return make


@pytest.fixture
def run(scheduler):
    """Returns a function that runs a backfill and returns the spans and the statuses of its runs."""

    def run(backfill, keep_going=False):
        done = backfill.run(scheduler, keep_going)
        return [(tick.spans, run.status) for tick, run in done]

    return run


def test_spans_are_run_in_their_order(plan, run, runs, root):
    assert run(plan("8", "10")) == [("8", "pushed"), ("9", "pushed"), ("10", "pushed")]
    assert runs.spans() == ["8", "9", "10"]
    assert plan("8", "10").summary(root) == {
        "pushed": 3, "unchanged": 0, "finished": 0, "held": 0, "not_blessed": 0, "failed": 0, "left": []
    }  # fmt: skip


def test_windows_end_with_their_span(plan, run, runs):
    run(plan("9", "10", settings=("data.spans=last 2",)))
    settings = [words.command[words.command.index("--root") - 1] for words in runs.launches]
    assert settings == ["data.spans=last 2 to 9", "data.spans=last 2 to 10"]


def test_it_goes_on_where_it_was_stopped(plan, run, runs, stop, scheduler, root):
    running = plan("8", "10").run(scheduler, keep_going=False)
    assert next(running)[0].spans == "8"
    stop.request()
    with pytest.raises(StoppedError):
        next(running)
    stop.requested = False
    assert plan("8", "10").summary(root)["left"] == ["9", "10"]
    assert run(plan("8", "10")) == [("9", "pushed"), ("10", "pushed")]
    assert len(runs.launches) == 3
    assert run(plan("8", "10")) == []


def test_it_ends_at_a_failure_and_tries_that_again(plan, run, runs, root):
    runs.outcomes = ["pushed", BAD]
    assert run(plan("8", "10")) == [("8", "pushed"), ("9", "failed")]
    summary = plan("8", "10").summary(root)
    assert (summary["failed"], summary["left"]) == (1, ["10"])
    assert run(plan("8", "10")) == [("9", "pushed"), ("10", "pushed")]


def test_what_failed_again_after_its_retries_is_tried_again(plan, run, runs):
    runs.outcomes = ["failed"] * 4
    done = [run(plan("8", "8", retries=1)) for _ in range(3)]
    assert done == [[("8", "failed")], [("8", "failed")], [("8", "pushed")]]
    assert len(runs.launches) == 5


def test_it_goes_on_behind_a_failure_if_asked(plan, run, runs):
    runs.outcomes = [BAD]
    done = run(plan("8", "10"), keep_going=True)
    assert [status for _, status in done] == ["failed", "pushed", "pushed"]


def test_all_of_it_again(plan, run, runs):
    run(plan("8", "9"))
    runs.outcomes = ["pushed", BAD]
    assert len(run(plan("8", "9", again=True))) == 2
    # Ticks of one span are told apart in the records of their runs.
    assert len(set(runs.ticks())) == 4
    assert run(plan("8", "9")) == [("9", "pushed")]  # of the newer one
    assert len(set(runs.ticks())) == 4


@pytest.mark.parametrize(
    ("first", "last", "settings", "message"),
    [
        ("9", "8", (), "runs backwards"),
        ("8", "8..9", (), r"--to takes one span: a number.*'8\.\.9'"),
        ("2026-01-31", "9", (), "--from takes one span: a number"),
        ("x", "9", (), "--from x: "),
        ("7", "11", (), r"there is no span 7, 11 of .*Existing spans: 8\.\.10"),
        ("8", "8", ("data.spans=8",), "schedule backfill sets which span"),
        ("8", "10", (), "seems to be incomplete"),
    ],
)
def test_ranges_that_cannot_be(plan, tmp_path, first, last, settings, message):
    (tmp_path / "span-9" / "v1" / "b.csv.tmp").touch()
    with pytest.raises(BadInputError, match=message):
        plan(first, last, settings=settings)
