"""Tests of `project_name.py`: `python -m unittest`."""

import tempfile
import unittest

import tensorflow as tf
import tensorflow_transform.beam as tft_beam
from project_name import preprocessing_fn
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

COLUMNS = {
    "fare": tf.io.VarLenFeature(tf.float32),
    "tips": tf.io.VarLenFeature(tf.float32),
    "trip_miles": tf.io.VarLenFeature(tf.float32),
    "trip_seconds": tf.io.VarLenFeature(tf.int64),
    "payment_type": tf.io.VarLenFeature(tf.string),
    "company": tf.io.VarLenFeature(tf.string),
}


def transform(*trips):
    """Returns the rows that `preprocessing_fn` makes of trips, in which columns may be missing."""
    nothing = {name: [] for name in COLUMNS}
    rows = [nothing | {name: [value] for name, value in trip.items()} for trip in trips]
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(COLUMNS))
    with tempfile.TemporaryDirectory() as folder, tft_beam.Context(temp_dir=folder):
        (data, _), _ = (rows, metadata) | tft_beam.AnalyzeAndTransformDataset(preprocessing_fn)
    return data


class PreprocessingTest(unittest.TestCase):
    """The features and the label."""

    def test_a_good_tip_is_more_than_a_fifth_of_the_fare(self):
        """2.5 is more than 2, 1.5 is not, and a missing tip is none."""
        rows = transform({"fare": 10.0, "tips": 2.5}, {"fare": 10.0, "tips": 1.5}, {"fare": 10.0})
        self.assertEqual([row["good_tip"].item() for row in rows], [1, 0, 0])

    def test_a_missing_category_is_a_category(self):
        """The most frequent one has the number 0."""
        rows = transform({"company": "A"}, {"company": "A"}, {})
        self.assertEqual([row["company"].item() for row in rows], [0, 0, 1])


if __name__ == "__main__":
    unittest.main()
