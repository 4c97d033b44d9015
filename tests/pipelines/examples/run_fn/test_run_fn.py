"""The parts of the example: data, and a model that learns them. tests/integration runs all of it."""

import keras
import numpy as np
import pytest

from pipelines.examples.run_fn import generate, model
from tests.pipelines.examples.generated import columns, ids, parts, scaled


@pytest.mark.more
def test_the_model_comes_close_to_the_noise(tmp_path):
    data = columns(generate.write_csv, tmp_path, rows=2_000)
    features = {name: scaled(data[name].astype(float)) for name in model.NUMBERS}
    features |= {name: ids(data[name]) for name in model.WORDS}
    train, held_out = parts(features, data[model.LABEL].astype(np.float32)[:, None], 1_500)
    keras.utils.set_random_seed(1)
    built = model.build_model({"heating": 4, "weekend": 3})
    built.fit(*train, batch_size=model.BATCH_SIZE, epochs=15, verbose=0)
    error = built.evaluate(*held_out, return_dict=True, verbose=0)["root_mean_squared_error"]
    # The deviation of the noise is 1.5 kWh. Of 500 rows, it has a standard error of 1.5 / sqrt(1000) = 0.05.
    assert generate.NOISE == 1.5
    assert 1.35 < error < 2.5
    assert held_out[1].std() > 7  # the error of the mean


def test_the_same_seed_gives_the_same_data(tmp_path):
    first, again, other = (tmp_path / name for name in ("1.csv", "2.csv", "3.csv"))
    generate.write_csv(first, rows=20, seed=1)
    generate.write_csv(again, rows=20, seed=1)
    generate.write_csv(other, rows=20, seed=2)
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()
