"""TPU chips and their grids."""

import pytest

from estimator_core.tpu.check.report import topology_named


def test_a_topology_is_named_by_a_chip_and_its_grid():
    assert topology_named("v5e:2x4").num_cores == 8
    assert topology_named("v4:2x2x1").num_cores == 8  # two cores a chip
    assert topology_named("v5p:2x2x1").num_cores == 4
    assert topology_named("v3:2x2").chip.memory_bytes == 16 * 2**30
    for name in ("v5e", "v5e:2", "v1:2x2", "2x2"):
        with pytest.raises(ValueError, match="topology must be a chip and its grid"):
            topology_named(name)
