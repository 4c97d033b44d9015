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


def test_memory_that_grows_by_three_bytes_a_step_after_the_first_tenth():
    steps = list(range(100, 2100, 100))
    grown = [10**9] * 2 + [10**8 + 3 * step for step in steps[2:]]
    assert speed_growth.memory_growth(steps, grown) == pytest.approx(3.0)


def test_lines_about_memory():
    one = {"steps": [10, 20, 30], "resident_bytes": [2**20, 2**21, 3 * 2**20]}
    results = {"memory": {"measured": {OURS: one}}, "memory_evaluate": {"measured": {OURS: one}}}
    start = "Memory of estimator_core: 1 MiB at the first look, 3 MiB after 30; +104,857.6 bytes a "
    assert speed_growth.memory_lines(results) == [f"{start}step.", f"{start}call of evaluate."]
    assert speed_growth.memory_lines({}) == []
