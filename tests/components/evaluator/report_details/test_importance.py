import itertools

import numpy as np
import pytest
import tensorflow as tf

from components.evaluator.report_details.importance import (
    MAX_SECS,
    Row,
    permutation_importance,
    read_sample,
)


def example(**features):
    made = tf.train.Example()
    for name, value in features.items():
        feature = made.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif value is not None:
            feature.float_list.value.append(value)
    return made.SerializeToString()


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
    rows = [parse(row) for row in serialized]
    return np.array([3 * row["x"][0] + row["y"][0] for row in rows])


@pytest.fixture
def rows():
    draw = np.random.default_rng(7)
    return [example(x=float(x), y=float(y), z=1.0) for x, y in draw.normal(size=(400, 2))]


def importance(rows, clock=lambda: 0.0):
    labels = predict_sum(rows)
    return permutation_importance(
        np.array(rows, object),
        predict_sum,
        lambda predictions: (predictions - labels) ** 2,
        np.zeros(len(rows)),
        clock,
    )


def test_the_loss_grows_by_twice_the_variance(rows):
    """With another row's x, the squared error of a x is a^2 times 2 var(x); var(x) is 1: 18 and 2."""
    found = importance(rows)
    first, second, third = found["features"]
    assert [one["feature"] for one in (first, second, third)] == ["x", "y", "z"]
    assert first["growth"] == pytest.approx(18, rel=0.15)
    assert second["growth"] == pytest.approx(2, rel=0.15)
    assert third["growth"] == third["low"] == third["high"] == 0  # the model does not look at it
    assert first["low"] < first["growth"] < first["high"]
    assert (found["num_rows"], found["left_out"], found["loss"]) == (400, [], 0)
    assert importance(rows) == found


def test_what_there_is_no_time_for_is_said():
    rows = [example(**{f"f{number}": 1.0 for number in range(300)}, x=1.0, y=2.0)] * 400
    ticks = itertools.count(step=MAX_SECS / 4)
    found = importance(rows, lambda: next(ticks))
    assert len(found["features"]) + len(found["left_out"]) == 302
    assert found["left_out"]
    assert found["features"]


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
