"""The arithmetic of the table of speeds, with figures that can be worked out by hand."""

import dataclasses

import pytest

from benchmarks import speed_table
from benchmarks.speed_table import Ratios, Run
from benchmarks.speed_works import BEST_KERAS, FLOOR, OURS, REFERENCE, Contestant, Work

WORK = Work(
    "x",
    "a work",
    "dnn",
    "step",
    (
        Contestant(OURS, "ours"),
        Contestant(REFERENCE, "reference"),
        Contestant("Keras fit, slow", "keras"),
        Contestant("Keras fit, fast", "keras"),
        Contestant(FLOOR, "floor"),
    ),
    {REFERENCE: 3.0, BEST_KERAS: 1.2},
    untrained_loss=0.7,
)
# Contestant -> (seconds, processor seconds) in each of three alternations.
MEASURED = {
    OURS: [(1.0, 2.0), (2.0, 2.0), (4.0, 2.5)],
    REFERENCE: [(2.0, 6.0), (8.0, 8.0), (12.0, 5.0)],  # ratios 2, 4, 3 and 3, 4, 2
    "Keras fit, slow": [(9.0, 1.0), (9.0, 1.0), (9.0, 1.0)],
    "Keras fit, fast": [(1.0, 3.0), (2.0, 3.0), (2.0, 3.0)],  # ratios 1, 1, 0.5 and 1.5, 1.5, 1.2
}
RUNS = [Run(name, *runs[number]) for number in range(3) for name, runs in MEASURED.items()]


def test_a_ratio_is_of_the_same_alternation_and_the_median_counts():
    # Medians of each alone would say 8 / 2 = 4.
    assert Ratios.of([1.0, 2.0, 4.0], [2.0, 8.0, 12.0]) == Ratios(3.0, 2.0, 4.0)


@pytest.mark.parametrize("its", [[], [1.0, 2.0]])
def test_a_ratio_needs_as_many_of_both(its):
    with pytest.raises(ValueError, match=rf"Received: 1 of ours, {len(its)} of it"):
        Ratios.of([1.0], its)


def test_the_rows_of_a_work():
    rows = {row.peer: row for row in speed_table.table_rows(WORK, RUNS, by_processor=False)}
    assert list(rows) == [REFERENCE, "Keras fit, slow", "Keras fit, fast (its best)"]
    row = rows[REFERENCE]
    assert (row.ours, row.its) == ((2.0, 2.0), (8.0, 6.0))
    assert row.time == Ratios(3.0, 2.0, 4.0)
    assert row.processor == Ratios(3.0, 2.0, 4.0)
    assert row.is_met(by_processor=False) is True
    best = rows["Keras fit, fast (its best)"]
    assert best.target == 1.2
    assert best.time == Ratios(1.0, 0.5, 1.0)
    assert best.is_met(by_processor=False) is False
    assert best.is_met(by_processor=True) is True
    assert rows["Keras fit, slow"].is_met(by_processor=False) is None


def test_the_best_of_keras_depends_on_what_is_judged_by():
    rows = speed_table.table_rows(WORK, RUNS, by_processor=True)
    assert [row.target for row in rows] == [3.0, 1.2, None]


def test_the_first_row_of_a_work_names_it():
    rows = speed_table.table_rows(WORK, RUNS, by_processor=False)
    other = speed_table.table_rows(dataclasses.replace(WORK, letter="y"), RUNS[:2], False)
    ratios = "3.00x (2.00-4.00)"
    first, second, *_, last = speed_table.lines([*rows, *other], by_processor=False)
    assert first == [
        "(x) a work",
        "tf.estimator 2.15",
        "2 / 2 s per step",
        "8 / 6 s",
        ratios,
        ratios,
        "3x, met",
    ]
    assert (second[0], second[2], second[6]) == ("", "", "")
    assert last[0] == "(y) a work"


def test_the_table_has_the_works_that_were_measured():
    runs = [vars(run) for run in RUNS]
    rows = speed_table.table([WORK], {"x": {"measured": runs}, "memory": {}}, by_processor=False)
    assert [row.work.letter for row in rows] == ["x"] * 3
    assert speed_table.table([WORK], {}, by_processor=False) == []


def test_durations_have_three_digits():
    secs = [12.3456, 1.0, 0.0012345, 0.000_056_78]
    assert [speed_table.duration(duration) for duration in secs] == ["12.3 s", "1 s", "1.23 ms", "56.8 us"]


def test_markdown_has_a_line_for_each_row():
    text = speed_table.markdown([[name] * len(speed_table.HEADER) for name in "ab"])
    lines = text.splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {len(speed_table.HEADER) + 1}
    assert lines[2].startswith("| a | a |")


SAME = {"batch_size": 128, "variables": 8, "parameters": 12_193, "steps": 2300, "loss": 0.3}


def test_the_same_work_is_the_same():
    # The median of the losses is 0.3: 0.045 more or less is allowed.
    checks = {OURS: SAME, REFERENCE: {**SAME, "loss": 0.34}, "Keras fit": {**SAME, "loss": 0.26}}
    assert speed_table.differences(WORK, checks) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"batch_size": 64}, "batch_size: 128 of estimator_core, 64 of tf.estimator 2.15"),
        ({"variables": 9}, "variables: 8 of estimator_core, 9 of tf.estimator 2.15"),
        ({"steps": 2299}, "steps: 2300 of estimator_core, 2299 of tf.estimator 2.15"),
        ({"names": ["loss"]}, "names: None of estimator_core, ['loss'] of tf.estimator 2.15"),
        ({"loss": 0.35}, "loss: 0.35 of tf.estimator 2.15, with a median of 0.3"),
        ({"loss": float("nan")}, "loss: nan of tf.estimator 2.15, with a median of 0.3"),
    ],
)
def test_what_differs_is_said(changed, said):
    checks = {OURS: SAME, REFERENCE: {**SAME, **changed}, "Keras fit": SAME}
    assert said in speed_table.differences(WORK, checks)


def test_small_losses_may_differ_by_a_share_of_the_untrained_one():
    # 0.15 * 0.7 / 3 = 0.035.
    checks = {OURS: {**SAME, "loss": 0.01}, "Keras fit": {**SAME, "loss": 0.01}}
    assert speed_table.differences(WORK, {**checks, REFERENCE: {**SAME, "loss": 0.044}}) == []
    assert len(speed_table.differences(WORK, {**checks, REFERENCE: {**SAME, "loss": 0.046}})) == 1


def test_losses_of_models_that_learn_nothing_say_nothing():
    checks = {name: {**SAME, "loss": 0.69} for name in (OURS, REFERENCE)}
    differences = speed_table.differences(WORK, checks)
    assert [text.partition(" of ")[0] for text in differences] == ["loss: 0.69", "loss: 0.69"]
