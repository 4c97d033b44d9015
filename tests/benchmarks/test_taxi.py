"""The taxi example's features as the bench computes them: names, sizes and types of the module's."""

import numpy as np
import tensorflow as tf

from benchmarks.workloads import taxi
from pipelines.examples.taxi import trips


def test_the_features_are_those_of_the_module():
    # It imports TensorFlow Transform, which makes tf.keras that of Keras 2 for all tests if it comes first.
    from pipelines.examples.taxi import taxi_module

    assert taxi.LABEL == taxi_module.LABEL
    assert taxi.BATCH_SIZE == taxi_module.TRAIN_BATCH_SIZE
    categories = {**taxi_module.IDENTITIES, **dict.fromkeys(taxi_module.COORDINATES, 11)}
    for name, size in categories.items():
        assert taxi.SIZES[f"{name}_xf"] == size
    named = (*categories, *taxi_module.CATEGORIES)
    assert sorted(taxi.SIZES) == sorted(taxi_module.transformed_name(name) for name in named)
    assert set(taxi.SKEWED) == set(taxi_module.SKEWED_NUMERIC)


def test_values_are_in_the_range_of_their_columns():
    (block,) = trips.generate(3000, 5)
    values = taxi.transformed(block.columns, block.good_tip)
    for name, size in taxi.SIZES.items():
        assert values[name].dtype == np.int64
        assert values[name].min() >= 0
        assert values[name].max() < size
        assert len(np.unique(values[name])) > 3
    for name in taxi.SKEWED:
        column = values[f"{name}_xf"]
        assert column.dtype == np.float32
        assert abs(column.mean()) < 0.01
        assert 0.9 < column.std() <= 1.01
    assert values[taxi.LABEL].tolist() == block.good_tip.astype(int).tolist()


def test_what_is_written_is_read(monkeypatch, tmp_path):
    monkeypatch.setenv("SPEED_CACHE", str(tmp_path))
    monkeypatch.setattr(taxi, "ROWS", 100)
    features, labels = next(iter(taxi.input_fn()))
    assert set(features) == {f"{name}_xf" for name in taxi.SKEWED} | set(taxi.SIZES)
    assert {(value.shape, value.dtype) for value in features.values()} == {
        ((64, 1), tf.float32),
        ((64, 1), tf.int64),
    }
    assert labels.shape == (64, 1)
    written = (tmp_path / "taxi-100.tfrecord.gz").stat().st_mtime_ns
    taxi.file()
    assert (tmp_path / "taxi-100.tfrecord.gz").stat().st_mtime_ns == written
