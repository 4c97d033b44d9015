"""The steps at which a TPUEstimator logs its loss on shards; for the values: `test_iterations_per_loop`."""

import pytest

from estimator_core import tpu
from estimator_core.tpu.hooks import log_every_n_loops, log_every_n_steps


@pytest.mark.parametrize(("iterations", "loops"), [(2, 15), (7, 5), ("7", 5), (100, 1), ("5m", 1)])
def test_a_line_comes_every_so_many_loops(iterations, loops):
    """Every ceil(30 / iterations) loops; every loop if loops take a given time."""
    config = tpu.RunConfig(tpu.TPUConfig(iterations), log_step_count_steps=30)
    assert log_every_n_loops(config, log_every_n_steps(config)) == loops
