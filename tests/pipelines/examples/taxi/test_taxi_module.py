"""The taxi module's preprocessing_fn, run by TFT over trips with awkward values."""

import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from pipelines.examples.taxi import taxi_module
from tests.components.conftest import example


@pytest.fixture(scope="module")
def transformed(tmp_path_factory):
    floats = ("fare", "tips", "trip_miles", *taxi_module.COORDINATES)
    integers = ("trip_seconds", *taxi_module.IDENTITIES)
    spec = {
        **dict.fromkeys(floats, tf.io.VarLenFeature(tf.float32)),
        **dict.fromkeys(integers, tf.io.VarLenFeature(tf.int64)),
        **dict.fromkeys(taxi_module.CATEGORIES, tf.io.VarLenFeature(tf.string)),
    }
    nothing = {name: [] for name in spec}
    rows = [
        {**nothing, "fare": [10.0], "tips": [2.5], "trip_miles": [0.0], "trip_seconds": [60],
         "payment_type": [b"Cash"], "company": [b"A, Inc."], "trip_start_hour": [23],
         "pickup_latitude": [41.0], "dropoff_community_area": [77]},
        {**nothing, "fare": [10.0], "tips": [1.5], "trip_miles": [math.e**2 - 1],
         "payment_type": [b"Cash"], "pickup_latitude": [42.0]},
        {**nothing, "tips": [1.5]},
        {**nothing, "fare": [10.0], "payment_type": [b"Card"]},
    ]  # fmt: skip
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    with tft_beam.Context(temp_dir=str(tmp_path_factory.mktemp("tft"))):
        (data, _), _ = (rows, metadata) | tft_beam.AnalyzeAndTransformDataset(taxi_module.preprocessing_fn)
    return {name: np.stack([row[name] for row in data]) for name in data[0]}


def test_every_output_is_one_dense_number_and_the_label_a_tip_above_a_fifth_of_the_fare(transformed):
    for name, values in transformed.items():
        assert values.shape == (4, 1), name
        assert values.dtype in (np.float32, np.int64), name
        assert np.isfinite(values).all(), name
    # 2.5 > 2, 1.5 < 2, fare unknown, tips unknown.
    assert transformed["tips_xf"].ravel().tolist() == [1, 0, 0, 0]


def test_missing_values_become_means_ids_and_zeros(transformed):
    # log(1 + miles) is 0 and 2 where it is known: mean 1, deviation 1; the mean is 0.
    np.testing.assert_allclose(transformed["trip_miles_xf"].ravel(), [-1, 1, 0, 0], atol=1e-6)
    payment = transformed["payment_type_xf"].ravel()
    # By frequency: Cash twice; missing and Card once each, in an order that TFT chooses.
    assert payment[0] == payment[1] == 0
    assert sorted(payment[2:]) == [1, 2]
    company = transformed["company_xf"].ravel()
    assert company[0] == 1
    assert company[1:].tolist() == [0, 0, 0]
    assert transformed["trip_start_hour_xf"].ravel().tolist() == [23, 0, 0, 0]
    assert transformed["dropoff_community_area_xf"].ravel().tolist() == [77, 0, 0, 0]
    latitude = transformed["pickup_latitude_xf"].ravel()
    assert 1 <= latitude[0] < latitude[1] <= 10
    assert latitude[2:].tolist() == [0, 0]


class Numbered:
    """Names the kind of the examples of `files`."""

    def transformed_feature_spec(self):
        number = tf.io.FixedLenFeature([], tf.int64)
        return {"number": number, taxi_module.LABEL: number}


@pytest.fixture
def files(tmp_path):
    """Six files of 50 rows with numbers from 0 to 299."""
    for file in range(6):
        path = tmp_path / f"rows-{file}.gz"
        with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
            for number in range(50 * file, 50 * file + 50):
                writer.write(example({"number": number, taxi_module.LABEL: number}))
    return [str(tmp_path / "rows-*")]


@pytest.mark.parametrize("cached_bytes", [1 << 20, 0])
def test_training_reads_each_row_once_an_epoch_in_the_order_of_its_seed(files, monkeypatch, cached_bytes):
    monkeypatch.setattr(taxi_module, "CACHED_BYTES", cached_bytes)
    monkeypatch.setattr(taxi_module, "TRAIN_BATCH_SIZE", 100)

    def epochs(seed):
        batches = taxi_module._read(Numbered(), files, shuffle_seed=seed).take(6)
        rows = np.concatenate([features["number"] for features, _ in batches.as_numpy_iterator()])
        return rows[:300].tolist(), rows[300:].tolist()

    first, second = epochs(seed=3)
    assert sorted(first) == sorted(second) == list(range(300))
    assert first != second
    assert epochs(seed=3) == (first, second)
    assert epochs(seed=4) != (first, second)


def test_evaluation_reads_in_the_order_of_the_files(files):
    (batch,) = taxi_module._read(Numbered(), files).as_numpy_iterator()
    features, labels = batch
    assert features["number"].tolist() == labels.tolist() == list(range(300))
