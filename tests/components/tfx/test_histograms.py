import importlib.util

import numpy as np
import pyarrow as pa
import pytest
from tensorflow_data_validation.utils import quantiles_util
from tfx_bsl import sketches

from components.tfx import histograms

NORMAL = np.random.default_rng(seed=1).normal(size=500)


@pytest.fixture(scope="module")
def stock():
    """Returns TFDV's module without our functions."""
    spec = importlib.util.spec_from_file_location("stock_quantiles", quantiles_util.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "values",
    [
        NORMAL,
        np.round(NORMAL, 1),
        np.repeat([0.0, 1.0], [30, 500]),
        [3.0],
        [2.0, 2.0],
        [-1e30, 0.0, 1e-30, 7.0],
        np.exp(9 * NORMAL),
        [1.0, np.inf, -np.inf, 2.0],
        [-1.7e308, 0.0, 1.7e308],
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # TFDV's, of the widest range
def test_histograms_are_those_of_tfdv(stock, values):
    values = np.asarray(values)
    sketch = sketches.QuantilesSketch(0.01, 2**32, 1)
    sketch.AddValues(pa.array(values))
    quantiles, counts = (
        array.flatten().to_numpy(zero_copy_only=False)
        for array in sketch.GetQuantilesAndCumulativeWeights(1_000)
    )
    finite = values[np.isfinite(values)]
    numbers = (quantiles, counts, finite.min(), finite.max(), 10, (values == np.inf).sum())
    assert quantiles_util.generate_equi_width_histogram is not stock.generate_equi_width_histogram
    ours, theirs = (
        (
            module.generate_equi_width_histogram(*numbers),
            module.generate_quantiles_histogram(*module.rebin_quantiles(quantiles, counts, 100)),
        )
        for module in (quantiles_util, stock)
    )
    assert ours == theirs
    assert len(ours[1].buckets) == 10


def test_a_histogram_of_four_numbers():
    # A tenth of a bin of quantiles from 1 to 3 is below 1.2; a point is in the interval that it ends.
    low, high = np.array([1.0, 3.0]), np.array([3.0, 3.0])
    assert histograms.overlaps(low, high, 1.0, 1.2, True) == pytest.approx([0.1, 0.0])
    assert histograms.overlaps(low, high, 2.8, 3.0, False) == pytest.approx([0.1, 1.0])
    assert histograms.overlaps(low, high, 3.0, 3.2, False) == pytest.approx([0.0, 0.0])
