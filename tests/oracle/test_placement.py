"""Variables and tables are on the parameter servers that tf.estimator 2.15 puts them on."""

import importlib
import json

import pytest

from tests.oracle import placement

with placement.PATH.open() as file:
    EXPECTED = json.load(file)


@pytest.mark.parametrize("name", sorted(placement.PROGRAMS))
def test_the_placement_is_that_of_the_reference(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", json.dumps(placement.TF_CONFIG))
    is_v1, _ = placement.PROGRAMS[name]
    e = importlib.import_module("estimator_core.v1" if is_v1 else "estimator_core")
    assert placement.placement(name, e, str(tmp_path)) == EXPECTED[name]


def test_the_programs_show_what_they_are_for():
    assert max(map(len, [set(EXPECTED[name]["variables"].values()) for name in EXPECTED])) == 3
    assert any("part_1" in name for name in EXPECTED["dnn_linear_combined_v1"]["variables"])
    assert any("part_2" in name for name in EXPECTED["small_slices_v1"]["variables"])
