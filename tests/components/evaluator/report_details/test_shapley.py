import itertools
import math

import numpy as np
import pytest

from components.evaluator.report_details.shapley import log_odds, number_cells, shapley_values


def explain(model, rows, background):
    """Explains the rows of a model of lists of cells; returns the mean prediction too."""
    pool = [*rows, *background]
    columns = list(zip(*pool, strict=True))

    def predict(numbers):
        return np.array([model([columns[c][i] for c, i in enumerate(row)]) for row in numbers.tolist()])

    return shapley_values(predict, number_cells(columns), len(rows))


def enumerated(model, row, background):
    """Returns Shapley values by their definition: over all coalitions of columns."""
    columns = range(len(row))

    def worth(coalition):
        mixed = [[row[c] if c in coalition else other[c] for c in columns] for other in background]
        return np.mean([model(cells) for cells in mixed])

    values = []
    for column in columns:
        rest = [c for c in columns if c != column]
        value = 0.0
        for size in range(len(row)):
            weight = math.factorial(size) * math.factorial(len(row) - size - 1) / math.factorial(len(row))
            for coalition in map(set, itertools.combinations(rest, size)):
                value += weight * (worth(coalition | {column}) - worth(coalition))
        values.append(value)
    return values


def test_a_weight_times_the_distance_from_the_mean():
    """Background means: 2, 1 and 0; a missing cell counts as 0, and "Oslo" as 1."""

    def model(row):
        return 10 + 3 * (row[0] or 0) - 2 * row[1] + (row[2] == "Oslo")

    background = [[1, 0, "Rome"], [3, 2, None]]
    base, values = explain(model, [[5, 1, "Oslo"], [None, 4, "Rome"]], background)
    assert base == pytest.approx(14)
    np.testing.assert_allclose(values, [[9, 0, 1], [-6, -6, 0]])


def forest(row):
    x, y, city, z = row
    first = (4 if y > 1 else -1) if x > 0 else (2 if city == "Oslo" else 0)
    second = (3 if x > 1 else 1) if city == "Oslo" else (-2 if y > 0 else 0.5)
    return first + second + (0.25 if z is None else 0)


def test_a_forest_as_by_enumeration_of_all_coalitions():
    """The error is below 0.05 with 300 background rows, and 0 if only two columns differ."""
    draw = np.random.default_rng(5)
    cities = draw.choice(["Oslo", "Rome"], 300)
    background = [[*draw.normal(size=2), city, None] for city in cities]
    row = [1.5, 2.0, "Oslo", 7.0]
    base, (values,) = explain(forest, [row], background)
    np.testing.assert_allclose(values, enumerated(forest, row, background), atol=0.05)
    assert base + values.sum() == pytest.approx(forest(row))
    two = [[x, y, "Oslo", 7.0] for x, y, *_ in background]
    _, (values,) = explain(forest, [row], two)
    np.testing.assert_allclose(values, enumerated(forest, row, two), atol=1e-12)
    assert values[2] == values[3] == 0


def test_values_add_up_and_do_not_depend_on_the_other_rows(monkeypatch):
    def model(row):
        return math.sin(sum(row)) * row[0] - max(row)

    draw = np.random.default_rng(2)
    rows, background = draw.normal(size=(7, 9)).tolist(), draw.normal(size=(6, 9)).tolist()
    base, values = explain(model, rows, background)
    np.testing.assert_allclose(base + values.sum(axis=1), [model(row) for row in rows])
    # Two pairs of rows at a time; then one, in pieces of 5 of its 20 mixed rows, and 2 in a call.
    for name, size in (("_CELLS_AT_A_TIME", 400), ("_CELLS_AT_A_TIME", 50), ("_ROWS_IN_A_CALL", 2)):
        monkeypatch.setattr(f"components.evaluator.report_details.shapley.{name}", size)
        np.testing.assert_allclose(explain(model, rows, background)[1], values)
    np.testing.assert_allclose(explain(model, rows[3:4], background)[1], values[3:4])


def test_equal_rows_are_predicted_once():
    asked = []

    def predict(numbers):
        asked.extend(map(tuple, numbers.tolist()))
        return numbers.sum(axis=1)

    cells = number_cells([["a", "b", "b", "a"], [None, 1, 1, None]])
    assert cells.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0]]
    shapley_values(predict, cells, 1)
    assert sorted(set(asked)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len(asked) == 6  # and the two kinds of background rows


def test_log_odds_of_probabilities_that_float32_cannot_tell_from_one():
    probabilities = np.array([[1e-20, 1, 1e-10], [0.25, 0.25, 0.5], [math.nan] * 3], np.float32)
    expected = [[-20 * math.log(10), 10 * math.log(10)], [-math.log(3)] * 2, [math.nan] * 2]
    found = [log_odds(probabilities, class_id) for class_id in (0, 1)]
    np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-5)
