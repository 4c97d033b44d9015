"""The text of the report."""

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
