"""Curves of growth, and the slope of memory."""

import pytest

from benchmarks import speed_growth
from benchmarks.speed_works import FLOOR, OURS


def run(plot, size, contestant, secs):
    measured = {"secs": secs, "processor_secs": 10 * secs}
    return {"plot": plot, "size": list(size), "contestant": contestant, **measured}


def test_a_point_is_the_median_of_its_alternations(monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        speed_growth.charts,
        "lines",
        lambda title, labels, series: drawn.setdefault(title, (labels, series)) and "",
    )
    measured = [run("batch", (32, 20), OURS, secs) for secs in (0.5, 0.1, 0.2)]
    measured += [run("batch", (8192, 20), OURS, 2.0), run("batch", (32, 20), FLOOR, 0.01)]
    measured += [run("features", (128, 10_000), OURS, 0.25)]
    speed_growth.figures(measured, by_processor=False)
    (_, batch), (labels, features) = drawn.values()
    assert batch == {OURS: [(32, 5.0), (8192, 0.5)], FLOOR: [(32, 100.0)]}
    assert (labels, features) == (("features", "steps a second"), {OURS: [(10_000, 4.0)]})


@pytest.fixture
def calls(monkeypatch):
    """Returns the calls of `run_contestant`; the floor has the parameters that the test sets."""
    calls, parameters = [], {FLOOR: 100}

    def run_contestant(work, contestant, python, *options):
        calls.append((contestant.name, options))
        check = {"parameters": parameters[FLOOR] if contestant.name == FLOOR else 100, "loss": 0.5}
        measured = {"secs": 1.0, "processor_secs": 2.0}
        return measured | ({"check": check} if "--check" in options else {})

    monkeypatch.setattr(speed_growth, "run_contestant", run_contestant)
    return calls, parameters


def test_each_size_is_measured_by_all_in_turn(calls):
    measured = speed_growth.measure(2, "python")
    sizes = [size for item in speed_growth.SIZES.values() for size in item]
    names = [item.name for item in speed_growth.CONTESTANTS]
    assert [(tuple(run["size"]), run["contestant"]) for run in measured] == 2 * [
        (size, name) for size in sizes for name in names
    ]
    assert "check" not in measured[0]
    half = len(measured) // 2
    assert [options for _, options in calls[0][:1]] == [("--size", "32,20", "--check")]
    assert [options for _, options in calls[0][half : half + 1]] == [("--size", "32,20")]


def test_another_network_ends_it(calls):
    calls[1][FLOOR] = 99
    with pytest.raises(SystemExit, match=r"parameters: 100 of estimator_core, 99 of floor"):
        speed_growth.measure(1, "python")


def test_memory_that_grows_by_three_bytes_a_step_after_the_first_tenth():
    steps = list(range(100, 2100, 100))
    grown = [10**9] * 2 + [10**8 + 3 * step for step in steps[2:]]
    assert speed_growth.memory_growth(steps, grown) == pytest.approx(3.0)


def test_lines_about_memory():
    measured = {"steps": [10, 20, 30], "resident_bytes": [2**20, 2**21, 3 * 2**20]}
    results = {"memory": {"measured": {OURS: measured}}, "memory_evaluate": {"measured": {OURS: measured}}}
    start = "Memory of estimator_core: 1 MiB at first, 3 MiB after 30; +104,857.6 bytes a "
    assert speed_growth.memory_lines(results) == [f"{start}step.", f"{start}call of evaluate."]
    assert speed_growth.memory_lines({}) == []
