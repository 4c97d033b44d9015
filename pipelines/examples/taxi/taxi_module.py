"""A user's module: will the driver be tipped more than a fifth of the fare?

Copy it to begin your own. A pipeline needs two functions, TFX's classic contract:

- `preprocessing_fn`: raw columns -> what the model sees. It runs over the whole data set before
  training, and it becomes a part of the exported model, so that serving cannot drift away from
  training.
- `trainer_fn`: the Estimator, and how to train, evaluate and export it.

`taxi.toml` next to this file names the module.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core as estimator

# Raw columns, by the way they reach the model.
SKEWED_NUMERIC = ("trip_miles", "trip_seconds", "fare")  # a few are very large: take the logarithm
CATEGORIES = ("payment_type", "company")
COORDINATES = ("pickup_latitude", "pickup_longitude", "dropoff_latitude", "dropoff_longitude")
# Small whole numbers that are names rather than amounts, and one more than the highest of them.
# 0, which does not occur (but as the hour of midnight), stands for a missing value.
IDENTITIES = {
    "trip_start_hour": 24,
    "trip_start_day": 8,
    "trip_start_month": 13,
    "pickup_community_area": 78,
    "dropoff_community_area": 78,
}
# The columns that are not listed are not used: the timestamp, and the census tracts, which say
# little beyond the community areas.

# No raw column holds the label: it is derived from these two.
FARE = "fare"
TIPS = "tips"
LABEL = "tips_xf"

MISSING = "missing"
MAX_VOCABULARY_SIZE = 1000
NUM_OOV_BUCKETS = 2  # for the words that training never saw
NUM_COORDINATE_BUCKETS = 10

TRAIN_BATCH_SIZE = 64
EVAL_BATCH_SIZE = 512
SHUFFLE_BUFFER_EXAMPLES = 20_000
CACHED_BYTES = 256 << 20  # compressed; smaller training data stay in memory
FILES_AT_ONCE = 4  # of larger data
SAVE_CHECKPOINTS_STEPS = 500
DNN_HIDDEN_UNITS = [64, 32]
DNN_DROPOUT = 0.3
DNN_LEARNING_RATE = 1e-3
LINEAR_LEARNING_RATE = 0.05


def transformed_name(name: str) -> str:
    """Returns the name of a column after `preprocessing_fn`; the raw one keeps its own."""
    return f"{name}_xf"


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
    """Returns the features and the label of a batch of trips.

    Args:
        inputs: The raw columns. A column that may be missing is a `tf.SparseTensor`, so that a missing
            value is one that is not there; otherwise it is a `tf.Tensor` [batch_size, 1].

    Returns:
        Tensors of shape [batch_size, 1], named by `transformed_name`: float32 for numeric columns,
        int64 for all others. The label is int64, 0 or 1.
    """
    outputs = {}
    for name in SKEWED_NUMERIC:
        # The mean and the deviation are those of the known values; 0, the mean, fills the gaps.
        logarithm = _map_values(inputs[name], lambda value: tf.math.log1p(tf.maximum(_to_float(value), 0.0)))
        scaled = tft.scale_to_z_score(logarithm)
        outputs[transformed_name(name)] = _dense(scaled, 0.0)
    for name in CATEGORIES:
        outputs[transformed_name(name)] = tft.compute_and_apply_vocabulary(
            _dense(inputs[name], MISSING),
            top_k=MAX_VOCABULARY_SIZE,
            num_oov_buckets=NUM_OOV_BUCKETS,
            vocab_filename=name,
        )
    for name in COORDINATES:
        # Bucket 0 is for the missing ones.
        buckets = tft.bucketize(inputs[name], NUM_COORDINATE_BUCKETS)
        outputs[transformed_name(name)] = _dense(_map_values(buckets, lambda bucket: bucket + 1), 0)
    for name in IDENTITIES:
        outputs[transformed_name(name)] = _dense(inputs[name], 0)

    # A trip with an unknown fare has no good tip: a comparison with NaN is false.
    fare = _dense(_map_values(inputs[FARE], _to_float), float("nan"))
    tips = _dense(_map_values(inputs[TIPS], _to_float), 0.0)
    outputs[LABEL] = tf.cast(tips > fare * 0.2, tf.int64)
    return outputs


def trainer_fn(trainer_fn_args: Any, schema: Any) -> dict[str, Any]:
    """Returns the Estimator and what `train_and_evaluate` needs.

    Args:
        trainer_fn_args: Paths of the data and of the model, and the length of the training: `train_files`,
            `eval_files`, `transform_output`, `serving_model_dir`, `train_steps`, `eval_steps`,
            `custom_config`, ...
        schema: `Schema` of the raw columns, as SchemaGen inferred it or as you curated it.

    Returns:
        `estimator`, `train_spec`, `eval_spec`, and `eval_input_receiver_fn`, which gives the
        Evaluator features and labels from raw examples.
    """
    transform = tft.TFTransformOutput(trainer_fn_args.transform_output)
    run_config = estimator.RunConfig(
        model_dir=trainer_fn_args.serving_model_dir,
        tf_random_seed=1,
        save_checkpoints_steps=SAVE_CHECKPOINTS_STEPS,
        keep_checkpoint_max=2,
    )
    # In a cluster, each task that trains reads the data in a different order.
    seed = 1 + (run_config.global_id_in_cluster or 0)
    train_spec = estimator.TrainSpec(
        input_fn=lambda: _read(transform, trainer_fn_args.train_files, shuffle_seed=seed),
        max_steps=trainer_fn_args.train_steps,
    )
    eval_spec = estimator.EvalSpec(
        input_fn=lambda: _read(transform, trainer_fn_args.eval_files),
        steps=trainer_fn_args.eval_steps,
        exporters=[estimator.FinalExporter("taxi", lambda: serving_input_receiver_fn(transform, schema))],
        name="taxi",
    )
    return {
        "estimator": build_estimator(transform, run_config),
        "train_spec": train_spec,
        "eval_spec": eval_spec,
        "eval_input_receiver_fn": lambda: eval_input_receiver_fn(transform, schema),
    }


def build_estimator(transform: tft.TFTransformOutput, config: estimator.RunConfig) -> estimator.Estimator:
    """Returns a wide and deep model: memorizes single categories, generalizes over the rest.

    Source: Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016.
    """
    columns = tf.feature_column
    sizes = {
        **{name: transform.vocabulary_size_by_name(name) + NUM_OOV_BUCKETS for name in CATEGORIES},
        **dict.fromkeys(COORDINATES, NUM_COORDINATE_BUCKETS + 1),
        **IDENTITIES,
    }
    # An area that a taxi has never seen is a missing one.
    wide = [
        columns.categorical_column_with_identity(transformed_name(name), size, default_value=0)
        for name, size in sizes.items()
    ]
    numeric = [columns.numeric_column(transformed_name(name)) for name in SKEWED_NUMERIC]
    deep = [columns.embedding_column(column, dimension=4) for column in wide]
    return estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide,
        linear_optimizer=tf.keras.optimizers.Ftrl(LINEAR_LEARNING_RATE),
        dnn_feature_columns=[*numeric, *deep],
        dnn_optimizer=tf.keras.optimizers.Adam(DNN_LEARNING_RATE),
        dnn_hidden_units=DNN_HIDDEN_UNITS,
        dnn_dropout=DNN_DROPOUT,
        config=config,
    )


def serving_input_receiver_fn(
    transform: tft.TFTransformOutput, schema: Any
) -> estimator.export.ServingInputReceiver:
    """Returns the inputs of the served model: raw tf.Examples or columns, without the tips."""
    raw_feature_spec = _raw_feature_spec(schema)
    del raw_feature_spec[TIPS]
    receiver = estimator.export.build_rows_serving_input_receiver_fn(raw_feature_spec)()
    features = transform.transform_raw_features(receiver.features, drop_unused_features=True)
    return receiver.with_features(features)


def eval_input_receiver_fn(
    transform: tft.TFTransformOutput, schema: Any
) -> estimator.export.EvalInputReceiver:
    """Returns the features and the label that the Evaluator computes from raw tf.Examples."""
    receiver = estimator.export.build_parsing_serving_input_receiver_fn(_raw_feature_spec(schema))()
    features = transform.transform_raw_features(receiver.features, drop_unused_features=True)
    label = features.pop(LABEL)
    return estimator.export.EvalInputReceiver(features, receiver.receiver_tensors, label)


def _read(
    transform: tft.TFTransformOutput, file_patterns: list[str], shuffle_seed: int | None = None
) -> tf.data.Dataset:
    """Returns batches of (features, label) from Transform's gzipped TFRecords.

    To train, they are shuffled and repeat without end; without a seed they come once, in order.
    """
    training = shuffle_seed is not None
    paths = sorted(tf.io.gfile.glob(file_patterns))
    fits_in_memory = sum(tf.io.gfile.stat(path).length for path in paths) <= CACHED_BYTES
    at_once = FILES_AT_ONCE if training and not fits_in_memory else None
    examples = tf.data.TFRecordDataset(paths, compression_type="GZIP", num_parallel_reads=at_once)
    if training:
        if fits_in_memory:
            examples = examples.cache()  # they are unpacked once
        examples = examples.shuffle(SHUFFLE_BUFFER_EXAMPLES, seed=shuffle_seed).repeat()
    feature_spec = transform.transformed_feature_spec()

    def parse(serialized: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        # A whole batch is many times faster than example by example.
        features = tf.io.parse_example(serialized, feature_spec)
        return features, features.pop(LABEL)

    batches = examples.batch(TRAIN_BATCH_SIZE if training else EVAL_BATCH_SIZE)
    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def _raw_feature_spec(schema: Any) -> dict[str, Any]:
    """Returns how to parse the raw tf.Examples that the schema describes."""
    return dict(schema_utils.schema_as_feature_spec(schema).feature_spec)


def _dense(column: Any, default: Any) -> tf.Tensor:
    """Returns the column as a tensor [batch_size, 1] with `default` where it is missing."""
    if not isinstance(column, tf.SparseTensor):
        return column
    # Its second dimension is 0 when the whole batch is missing.
    shape = [column.dense_shape[0], 1]
    column = tf.SparseTensor(column.indices, column.values, shape)
    return tf.sparse.to_dense(column, tf.cast(default, column.dtype))


def _to_float(values: tf.Tensor) -> tf.Tensor:
    """Returns whole or broken numbers as float32."""
    return tf.cast(values, tf.float32)


def _map_values(column: Any, function: Callable[[tf.Tensor], tf.Tensor]) -> Any:
    """Applies `function` to the values of a column, which stays sparse or dense."""
    if isinstance(column, tf.SparseTensor):
        return tf.SparseTensor(column.indices, function(column.values), column.dense_shape)
    return function(column)
