"""TPU chips and their grids, and the text of the report."""

import pytest

from estimator_core.tpu.check.report import ModeReport, topology_named


def test_what_does_not_fit_is_said_and_no_success():
    topology = topology_named("v5e:2x2")
    memory = {"arguments": 12 << 30, "outputs": 10 << 30, "aliases": 9 << 30, "temporaries": 4 << 30}
    mode = ModeReport("train", topology, memory=memory, flops=197e9, bytes_accessed=819e6)
    assert mode.memory_bytes == (12 + 10 - 9 + 4) << 30
    assert not mode.fits
    assert "TOO MUCH" in str(mode)
    assert mode.step_secs == pytest.approx(1e-3)  # both are, of 197 teraflops and 819 GB/s


def test_a_topology_is_named_by_a_chip_and_its_grid():
    assert topology_named("v5e:2x4").num_cores == 8
    assert topology_named("v4:2x2x1").num_cores == 8  # two cores a chip
    assert topology_named("v5p:2x2x1").num_cores == 4
    assert topology_named("v3:2x2").chip.memory_bytes == 16 * 2**30
    for name in ("v5e", "v5e:2", "v1:2x2", "2x2"):
        with pytest.raises(ValueError, match="topology must be a chip and its grid"):
            topology_named(name)
