"""(b) DNNLinearCombinedClassifier on the taxi example's transformed features, from TFRecords.

The features are those of pipelines/examples/taxi/taxi_module.py, computed here with NumPy: the same names,
types and sizes. The first contestant writes the file; all read it.
"""

import os
import pathlib

import numpy as np
import tensorflow as tf

from benchmarks.workloads.training import Training

BATCH_SIZE = 64
ROWS = 60_000
SHUFFLE_BUFFER_EXAMPLES = 20_000
BUCKETS = 10
OOV_BUCKETS = 2
LABEL = "tips_xf"
SKEWED = ("trip_miles", "trip_seconds", "fare")
COORDINATES = ("pickup_latitude", "pickup_longitude", "dropoff_latitude", "dropoff_longitude")
SIZES = {
    "payment_type_xf": 7 + OOV_BUCKETS,
    "company_xf": 20 + OOV_BUCKETS,
    **{f"{name}_xf": BUCKETS + 1 for name in COORDINATES},
    "trip_start_hour_xf": 24,
    "trip_start_day_xf": 8,
    "trip_start_month_xf": 13,
    "pickup_community_area_xf": 78,
    "dropoff_community_area_xf": 78,
}


def transformed(columns, label):
    """Returns features and label, arrays [rows], of the columns of generated trips."""
    features = {LABEL: label.astype(np.int64)}
    for name in SKEWED:
        logarithm = np.log1p(columns[name].astype(np.float64))
        scaled = (logarithm - np.nanmean(logarithm)) / np.nanstd(logarithm)
        features[f"{name}_xf"] = np.nan_to_num(scaled).astype(np.float32)
    for name in COORDINATES:
        values = columns[name].astype(np.float64)
        bounds = np.nanquantile(values, np.arange(1, BUCKETS) / BUCKETS)
        buckets = np.searchsorted(bounds, values, side="right") + 1
        features[f"{name}_xf"] = np.where(np.isnan(values), 0, buckets)
    for name in ("payment_type", "company"):
        texts = np.array([text or "missing" for text in columns[name]])
        _, ids, counts = np.unique(texts, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"))  # 0 is the most frequent text
        features[f"{name}_xf"] = np.minimum(ranks[ids], SIZES[f"{name}_xf"] - 1)
    for name, size in SIZES.items():
        if name not in features:
            values = np.nan_to_num(columns[name.removesuffix("_xf")].astype(np.float64))
            features[name] = np.clip(values, 0, size - 1).astype(np.int64)
    return features


def file():
    """Returns the path of the gzipped tf.Examples; writes them if they do not exist."""
    path = pathlib.Path(os.environ["SPEED_CACHE"]) / f"taxi-{ROWS}.tfrecord.gz"
    if path.exists():
        return str(path)
    from pipelines.examples.taxi import trips

    blocks = list(trips.generate(ROWS, 1))
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in trips.COLUMNS}
    values = transformed(columns, np.concatenate([block.good_tip for block in blocks]))
    part = path.with_suffix(".part")
    with tf.io.TFRecordWriter(str(part), "GZIP") as writer:
        for row in range(ROWS):
            example = tf.train.Example()
            for name, column in values.items():
                feature = example.features.feature[name]
                numbers = feature.float_list if column.dtype == np.float32 else feature.int64_list
                numbers.value.append(column[row])
            writer.write(example.SerializeToString())
    part.replace(path)
    return str(path)


def input_fn():
    """Returns an endless dataset of batches, read like in the pipeline's module."""
    spec = {name: tf.io.FixedLenFeature([1], tf.float32) for name in (f"{column}_xf" for column in SKEWED)}
    spec |= {name: tf.io.FixedLenFeature([1], tf.int64) for name in (*SIZES, LABEL)}

    def parse(serialized):
        features = tf.io.parse_example(serialized, spec)
        return features, features.pop(LABEL)

    examples = tf.data.TFRecordDataset([file()], compression_type="GZIP")
    batches = examples.shuffle(SHUFFLE_BUFFER_EXAMPLES, seed=1).repeat().batch(BATCH_SIZE)
    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def make_estimator(estimator, config):
    """Returns the model of the taxi example, without its dropout."""
    columns = tf.feature_column
    wide = [columns.categorical_column_with_identity(*item, default_value=0) for item in SIZES.items()]
    numeric = [columns.numeric_column(f"{name}_xf") for name in SKEWED]
    deep = [columns.embedding_column(column, dimension=4) for column in wide]
    # tf.estimator 2.15 needs Keras 2's optimizers from before 2.11, which Keras 3 lacks.
    has_legacy = tf.__version__.startswith("2.15.")
    optimizers = tf.keras.optimizers.legacy if has_legacy else tf.keras.optimizers
    return estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        linear_optimizer=optimizers.Ftrl(0.05),
        dnn_feature_columns=[*numeric, *deep],
        dnn_optimizer=optimizers.Adam(0.001),
        dnn_hidden_units=[64, 32],
        config=config,
    )


WORK = Training(BATCH_SIZE, input_fn, make_estimator)
