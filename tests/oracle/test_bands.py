"""The committed bands, their measurement, and refused bands."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from tests.oracle import bands, variant
from tests.oracle.bands import TOLERANCES, Tolerance
from tests.oracle.generate_model_dirs import STEPS_AFTER
from tests.oracle.programs import MODEL_DIRS, PROGRAMS, SCENARIOS
from tests.oracle.programs.program import STEPS

BANDS = bands.read()
DIRECTORIES = [f"model_dirs/{name}" for name in MODEL_DIRS]


def test_everything_has_a_band():
    assert set(BANDS) == {*PROGRAMS, *SCENARIOS, *DIRECTORIES}


@pytest.mark.parametrize("name", [*sorted(PROGRAMS), *DIRECTORIES])
def test_a_band_was_measured(name):
    band = BANDS[name]
    is_program = name in PROGRAMS
    assert set(band) == {"losses", "metrics"} | ({"predictions", "final_norms"} if is_program else set())
    assert len(band["losses"]) == (STEPS if is_program else STEPS_AFTER)
    # Weights that were moved show in some loss and in their own length.
    assert max(band["losses"]) > 0.0
    assert not is_program or band["final_norms"] > 0.0


@pytest.mark.parametrize("name", sorted(BANDS))
def test_band_is_within_the_limit(name):
    assert bands.refusal(name, BANDS[name]) is None


def test_deviation_is_relative_down_to_a_floor():
    tolerance = Tolerance(1e-4, 1e-6)  # the floor is 0.01
    assert tolerance.deviation(2.0002, 2.0) == pytest.approx(1e-4)
    assert tolerance.deviation(-2.0002, -2.0) == pytest.approx(1e-4)
    assert tolerance.deviation(0.0010005, 0.001) == pytest.approx(5e-7 / 0.01)
    assert tolerance.deviation(1e-6, 0.0) == pytest.approx(1e-4)


def test_deviation_of_numbers_that_no_band_can_hold():
    pairs = [(1e-30, 0.0), (math.nan, 1.0), (1.0, math.nan), (1.0, math.inf)]
    assert [Tolerance(1e-5).deviation(*pair) for pair in pairs] == [math.inf] * 4
    assert Tolerance(1e-5).deviation(math.nan, math.nan) == 0.0
    assert Tolerance(1e-5).deviation(math.inf, math.inf) == 0.0


def test_band_is_the_largest_deviation_of_all_runs():
    expected = {"losses": [2.0, 4.0], "metrics": {"a": 10.0, "b": 0.0}}
    runs = [
        {"losses": [2.02, 4.0], "metrics": {"a": 10.0, "b": 0.5}},
        {"losses": [2.01, 4.1], "metrics": {"a": 11.0, "b": 0.0}},
    ]
    # 0.02 / 2 and 0.1 / 4; of the metrics 0.5 / 0.1, where 0.1 is the floor, not 1 / 10.
    assert bands.band_of(runs, expected) == {"losses": [0.01, 0.025], "metrics": 5.0}


@pytest.mark.parametrize(
    ("seen", "where"),
    [
        ({"a": [1.0, "y"], "b": 3}, r"n.a\[1\]: 'y' instead of 'x'"),
        ({"a": [1.0, "x"], "b": 4}, r"n.b: 4 instead of 3"),
        ({"a": [1.0], "b": 3}, r"n.a: \[1.0\] instead of"),
        ({"a": [1.0, "x"]}, r"n: "),
        ({"a": [1, "x"], "b": 3}, r"n.a\[0\]: 1 instead of 1.5"),
    ],
)
def test_anything_but_a_fraction_has_no_band(seen, where):
    with pytest.raises(bands.DifferentError, match=where):
        list(bands.deviations(TOLERANCES["numbers"], seen, {"a": [1.5, "x"], "b": 3}, "n"))


def test_refusal_names_program_step_band_limit_and_fix():
    losses = [1e-9] * STEPS
    losses[54] = 3e-6
    band = {"losses": losses, "metrics": 0.0, "predictions": 2e-5, "final_norms": 0.0}
    reason = bands.refusal("some_program", band)
    assert reason.startswith("some_program: losses of step 55 moves by 3.0e-06")
    assert "limit is 2.5e-06" in reason
    assert "smaller learning rate" in reason
    losses[54] = 2.5e-6
    assert bands.refusal("some_program", band) is None
    band["predictions"] = 2.6e-5
    assert "predictions moves by 2.6e-05" in bands.refusal("some_program", band)


def test_write_keeps_one_line_for_each_name(tmp_path, monkeypatch):
    monkeypatch.setattr(bands, "PATH", tmp_path / "bands.json")
    written = {"b": {"losses": [1e-7, 0.0]}, "a": {"numbers": 2.5e-8}}
    bands.write(written)
    assert bands.read() == written
    assert [line[:3] for line in bands.PATH.read_text().splitlines()] == ["{", '"a"', '"b"', "}"]


def test_table_begins_with_the_largest_share_of_a_tolerance():
    lines = bands.table({"calm": {"losses": [1e-8, 2e-8]}, "wild": {"predictions": 5e-6}})
    assert [line.split() for line in lines[1:]] == [
        ["wild", "predictions", "5.0e-06", "5.0%"],
        ["calm", "losses", "2", "2.0e-08", "0.2%"],
    ]


def test_last_bit_hook_moves_each_weight_to_a_neighbour_before_each_step():
    values = np.array([0.7, -3.0, 0.0, 1e-20, 5.0], np.float32)
    with tf.Graph().as_default():
        resource = tf1.get_variable("resource", initializer=values, use_resource=True)
        other = tf1.get_variable("other", initializer=values, use_resource=False)
        constant = tf1.get_variable("constant", initializer=values, trainable=False)
        hook = variant.LastBitHook(seed=3)
        with tf1.train.MonitoredSession(hooks=[hook]) as session:
            seen = [session.run([resource, other, constant]) for _ in range(2)]
    moved = np.array([True, True, False, True, True])
    for run, before in zip(seen, [[values] * 3, seen[0]], strict=True):
        for index in range(2):
            bits = run[index].view(np.int32) - before[index].view(np.int32)
            np.testing.assert_array_equal(np.abs(bits), moved)
        np.testing.assert_array_equal(run[2], values)
    differences = np.concatenate([run[index] - values for run in seen for index in range(2)])
    assert differences.min() < 0.0 < differences.max()  # both directions occur


def test_last_bit_hook_needs_weights():
    with tf.Graph().as_default():
        tf1.get_variable("constant", initializer=1.0, trainable=False)
        with pytest.raises(ValueError, match="no trainable variables"):
            variant.LastBitHook(seed=3).begin()


def test_bands_file_has_two_digits():
    for band in json.loads(bands.PATH.read_text()).values():
        for value in band.values():
            for number in value if isinstance(value, list) else [value]:
                assert number == float(f"{number:.1e}")
