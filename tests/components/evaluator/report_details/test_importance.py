import itertools

import numpy as np
import pytest
import tensorflow as tf

from components.evaluator.gate.labelled_predictions import LabelledPredictions, losses
from components.evaluator.report_details.importance import (
    MAX_SECS,
    Row,
    permutation_importance,
    read_sample,
    worst_errors,
)
from tests.components.conftest import example as make_example


def example(**features):
    return make_example(features)


def parse(serialized):
    return {
        name: list(feature.float_list.value or feature.bytes_list.value)
        for name, feature in tf.train.Example.FromString(serialized).features.feature.items()
    }


def test_a_row_is_what_it_was_but_for_one_feature():
    long = "ü" * 200  # its length takes two bytes
    first, second = Row.parse(example(x=1.5, name=long)), Row.parse(example(x=2.5, y=4.0))
    assert parse(first.serialize()) == {"x": [1.5], "name": [long.encode()]}
    assert parse(first.serialize("x", second)) == {"x": [2.5], "name": [long.encode()]}
    assert parse(first.serialize("name", second)) == {"x": [1.5]}  # missing there
    assert parse(first.serialize("y", second)) == {"x": [1.5], "name": [long.encode()], "y": [4.0]}


def predict_sum(serialized):
    """A model: 3 x + y."""
    return np.array([3 * row["x"][0] + row["y"][0] for row in map(parse, serialized)])


def importance(rows, clock=lambda: 0.0, predict=predict_sum, classes=None, usual=None, weights=None):
    labels = predict(rows)
    return permutation_importance(
        np.array(rows, object),
        predict,
        lambda indices, predictions: (predictions - labels[indices]) ** 2,
        np.zeros(len(rows)) if usual is None else usual,
        np.zeros(len(rows), np.int64) if classes is None else np.array(classes),
        clock,
        weights,
    )


def test_the_loss_grows_by_twice_the_variance():
    """With another row's x, the squared error of a x is a^2 times 2 var(x); var(x) is 1: 18 and 2."""
    draw = np.random.default_rng(7)
    rows = [example(x=float(x), y=float(y), z=1.0) for x, y in draw.normal(size=(400, 2))]
    found = importance(rows)
    first, second, third = found["features"]
    assert [one["feature"] for one in (first, second, third)] == ["x", "y", "z"]
    assert first["growth"] == pytest.approx(18, rel=0.15)
    assert second["growth"] == pytest.approx(2, rel=0.15)
    assert third["growth"] == third["low"] == third["high"] == 0  # the model does not look at it
    assert first["low"] < first["growth"] < first["high"]
    assert (found["num_rows"], found["left_out"], found["loss"]) == (400, [], 0)
    assert importance(rows) == found


def test_examples_of_weight_0_do_not_count():
    """x varies in the first half alone: there its growth is 18, and over all rows half of that."""
    draw = np.random.default_rng(7)
    x = np.concatenate([draw.normal(size=300), np.zeros(300)])
    rows = [example(x=float(value), y=0.0) for value in x]
    usual, weights = np.repeat([1.0, 5.0], 300), np.repeat([2.0, 0.0], 300)
    found, other = (importance(rows, usual=usual, weights=chosen) for chosen in (weights, None))
    assert (found["loss"], other["loss"]) == (1, 3)
    growth = [values["features"][0]["growth"] for values in (found, other)]
    assert growth[0] > 1.3 * growth[1]


def test_what_there_is_no_time_for_is_said():
    rows = [example(**{f"f{number}": 1.0 for number in range(100)}, x=1.0, y=2.0)] * 400
    ticks = itertools.count(step=MAX_SECS / 4)
    found = importance(rows, lambda: next(ticks), lambda serialized: np.zeros(len(serialized)))
    assert len(found["features"]) + len(found["left_out"]) == 102
    assert found["left_out"]
    assert found["features"]
    assert found["num_rows"] == 256


class Clock:
    """A clock that a prediction moves on: a thousandth of MAX_SECS for each example."""

    secs = 0.0

    def __call__(self):
        return self.secs

    def predict(self, serialized):
        self.secs += len(serialized) * MAX_SECS / 1_000
        return np.array([parse(row).get("x", [0.0])[0] for row in serialized])


def test_there_are_as_many_rows_as_the_time_allows():
    """Two features: 256 rows take 512 predictions, and 244 of 1,000 remain for each of them."""
    clock = Clock()
    draw = np.random.default_rng(3)
    rows = [example(x=float(x), y=0.0) for x in draw.normal(size=2_000)]
    clock.secs = -2.0 * MAX_SECS  # the labels of all rows, in `importance`
    assert importance(rows, clock, clock.predict)["num_rows"] == 500


def test_rare_classes_are_preferred_and_weighted():
    """Of 5,000 rows, 50 are positive and have x = 1; the model looks at x for positive rows only.

    The loss of a positive row grows by 1 if it gets the x of another class, as 99 of 100 do: 0.0099 in all.
    The classes share the sample as the roots of their sizes do, 7 to 70: about 45 of 500 rows are positive.
    """

    def predict(serialized):
        clock.secs += len(serialized) * MAX_SECS / 1_000
        cells = [parse(row) for row in serialized]
        return np.array([row["x"][0] * row["is_positive"][0] for row in cells])

    clock = Clock()
    classes = [int(number % 100 == 0) for number in range(5_000)]
    rows = [example(x=float(one), is_positive=float(one)) for one in classes]
    clock.secs = -5.0 * MAX_SECS
    found = importance(rows, clock, predict, classes)
    assert found["num_rows"] == 500
    x = next(one for one in found["features"] if one["feature"] == "x")
    assert x["growth"] == pytest.approx(0.0099, abs=0.0004)
    assert 0 < x["low"] < x["growth"]


def test_the_sample_is_bounded_and_from_all_files(tmp_path):
    for number in range(3):
        with tf.io.TFRecordWriter(str(tmp_path / f"{number}.gz"), "GZIP") as writer:
            for row in range(40):
                writer.write(example(x=float(100 * number + row)))
    paths = sorted(map(str, tmp_path.iterdir()))
    found = [parse(row)["x"][0] for row in read_sample(paths, 12)]
    assert found == [0, 4, 8, 12, 100, 104, 108, 112, 200, 204, 208, 212]
    assert len(read_sample(paths, 500)) == 120
    assert len(read_sample([], 500)) == 0


def errors(rows, labels, predict, problem_type, weights=None, classes=(), clock=lambda: 0.0):
    predictions = predict(rows)
    labelled = LabelledPredictions.from_batch(np.array(labels), {"": predictions}, weights, problem_type)
    row_losses = losses(labelled, labelled.answers[""])
    serialized = np.array(rows, object)
    return worst_errors(serialized, predictions, labelled, row_losses, predict, classes, clock)


def test_the_largest_errors_of_numbers_by_hand():
    """Compared with the first 16 of 20 rows: the mean of x is 7.5 and of y 1; the model is 3 x + y."""
    rows = [example(x=float(number), y=1.0, note="ü" * 70) for number in range(18)]
    rows += [example(x=9.5, y=-3.0), example(x=7.5, y=2.0, note=None)]
    labels = predict_sum(rows)
    labels[[3, 18, 19]] += [100, -2, 5]
    weights = np.ones(20)
    weights[3] = 0
    first, second, third, *_ = errors(rows, labels, predict_sum, "regression", weights)
    assert (first["loss"], first["label"], first["prediction"]) == (25, 29.5, 24.5)
    assert first["contributions"] == [{"column": "y", "cell": "2", "value": pytest.approx(1)}]
    assert second["contributions"] == [
        {"column": "x", "cell": "9.5", "value": pytest.approx(6)},
        {"column": "y", "cell": "-3", "value": pytest.approx(-4)},
    ]
    assert third["loss"] == 0
    ticks = itertools.count()
    found = errors(rows, labels, predict_sum, "regression", clock=lambda: next(ticks))
    assert [bool(error["contributions"]) for error in found] == [True, False, False, False, False]
    assert found[0]["loss"] == 10_000
    wide = [example(x=float(row), y=0.0, **{f"f{number}": 1.0 for number in range(299)}) for row in range(3)]
    assert [one["contributions"] for one in errors(wide, [9, 9, 9], predict_sum, "regression")] == [[]] * 3


@pytest.mark.parametrize(
    ("problem_type", "explained", "sign"), [("binary", "yes", 1), ("multi-class", "no", -1)]
)
def test_the_largest_errors_of_classes_in_log_odds(problem_type, explained, sign):
    """The log-odds of yes are x; those of the right class are lowest in the last row, with a label of yes."""

    def predict(serialized):
        x = np.array([parse(row).get("x", [0.0])[0] for row in serialized])
        yes = 1 / (1 + np.exp(-x))
        return yes if problem_type == "binary" else np.stack([1 - yes, yes], axis=1)

    rows = [example(x=float(number)) for number in range(-8, 8)] + [example(city="Oslo")] * 4
    rows += [example(x=-3.0, city="Oslo")]
    labels = [0] * 8 + [1] * 13
    (first, second, *_) = errors(rows, labels, predict, problem_type, classes=["no", "yes"])
    assert (first["label"], first["explained"]) == ("yes", explained)
    assert first["probability"] == pytest.approx(1 / (1 + np.exp(3)))
    (contribution,) = first["contributions"]  # none of the city
    assert contribution == {"column": "x", "cell": "-3", "value": pytest.approx(sign * -2.5)}
    assert second["loss"] == pytest.approx(np.log(2))
