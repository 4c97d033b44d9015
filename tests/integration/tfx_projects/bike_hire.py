"""Predicts if a bike is brought back late. A module for TFX's Transform and Trainer of 2020: trainer_fn."""

import tensorflow as tf
import tensorflow_model_analysis as tfma
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

_DENSE_FLOAT_FEATURE_KEYS = ["distance_km", "booked_mins"]
_BUCKET_FEATURE_KEYS = ["temperature"]
_FEATURE_BUCKET_COUNT = 6
_VOCAB_FEATURE_KEYS = ["station", "membership"]
_VOCAB_SIZE = 20
_OOV_SIZE = 2
_CATEGORICAL_FEATURE_KEYS = ["start_hour"]
_MAX_CATEGORICAL_FEATURE_VALUES = [24]

_LABEL_KEY = "late"
_HIRE_KEY = "hire_mins"
_BOOKED_KEY = "booked_mins"


def _transformed_name(key):
    return key + "_xf"


def _transformed_names(keys):
    return [_transformed_name(key) for key in keys]


def _get_raw_feature_spec(schema):
    return schema_utils.schema_as_feature_spec(schema).feature_spec


def _gzip_reader_fn(filenames):
    """Reads the compressed files that Transform writes."""
    return tf.data.TFRecordDataset(filenames, compression_type="GZIP")


def _fill_in_missing(x):
    """Returns a sparse feature `[batch_size, 1]` as a dense one `[batch_size]`: '' or 0 for none."""
    default_value = "" if x.dtype == tf.string else 0
    return tf.squeeze(
        tf.sparse.to_dense(tf.SparseTensor(x.indices, x.values, [x.dense_shape[0], 1]), default_value), axis=1
    )


def preprocessing_fn(inputs):
    """Returns the transformed features and the label."""
    outputs = {}
    for key in _DENSE_FLOAT_FEATURE_KEYS:
        outputs[_transformed_name(key)] = tft.scale_to_z_score(_fill_in_missing(inputs[key]))
    for key in _VOCAB_FEATURE_KEYS:
        outputs[_transformed_name(key)] = tft.compute_and_apply_vocabulary(
            _fill_in_missing(inputs[key]), top_k=_VOCAB_SIZE, num_oov_buckets=_OOV_SIZE
        )
    for key in _BUCKET_FEATURE_KEYS:
        outputs[_transformed_name(key)] = tft.bucketize(_fill_in_missing(inputs[key]), _FEATURE_BUCKET_COUNT)
    for key in _CATEGORICAL_FEATURE_KEYS:
        outputs[_transformed_name(key)] = _fill_in_missing(inputs[key])
    hire, booked = (tf.cast(_fill_in_missing(inputs[k]), tf.float32) for k in (_HIRE_KEY, _BOOKED_KEY))
    outputs[_transformed_name(_LABEL_KEY)] = tf.where(
        tf.math.is_nan(hire), tf.zeros_like(hire, tf.int64), tf.cast(hire > booked, tf.int64)
    )
    return outputs


def _build_estimator(config, hidden_units=None, warm_start_from=None):
    """Returns a wide and deep classifier: numbers for the DNN, identities for the linear part."""
    real_valued_columns = [
        tf.feature_column.numeric_column(key, shape=())
        for key in _transformed_names(_DENSE_FLOAT_FEATURE_KEYS)
    ]
    categorical_columns = [
        tf.feature_column.categorical_column_with_identity(
            key, num_buckets=_VOCAB_SIZE + _OOV_SIZE, default_value=0
        )
        for key in _transformed_names(_VOCAB_FEATURE_KEYS)
    ]
    categorical_columns += [
        tf.feature_column.categorical_column_with_identity(
            key, num_buckets=_FEATURE_BUCKET_COUNT, default_value=0
        )
        for key in _transformed_names(_BUCKET_FEATURE_KEYS)
    ]
    categorical_columns += [
        tf.feature_column.categorical_column_with_identity(key, num_buckets=num_buckets, default_value=0)
        for key, num_buckets in zip(
            _transformed_names(_CATEGORICAL_FEATURE_KEYS), _MAX_CATEGORICAL_FEATURE_VALUES, strict=True
        )
    ]
    return tf.estimator.DNNLinearCombinedClassifier(
        config=config,
        linear_feature_columns=categorical_columns,
        dnn_feature_columns=real_valued_columns,
        dnn_hidden_units=hidden_units or [16, 8],
        dnn_optimizer=tf.keras.optimizers.Adam(0.01),
        warm_start_from=warm_start_from,
    )


def _example_serving_receiver_fn(tf_transform_output, schema):
    """Returns the served model's inputs: serialized raw examples, without the label's column."""
    raw_feature_spec = _get_raw_feature_spec(schema)
    raw_feature_spec.pop(_HIRE_KEY)
    raw_input_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(
        raw_feature_spec, default_batch_size=None
    )
    serving_input_receiver = raw_input_fn()
    transformed_features = tf_transform_output.transform_raw_features(serving_input_receiver.features)
    return tf.estimator.export.ServingInputReceiver(
        transformed_features, serving_input_receiver.receiver_tensors
    )


def _eval_input_receiver_fn(tf_transform_output, schema):
    """Returns the inputs of TFMA: raw and transformed features, and the label."""
    raw_feature_spec = _get_raw_feature_spec(schema)
    serialized_tf_example = tf.compat.v1.placeholder(
        dtype=tf.string, shape=[None], name="input_example_tensor"
    )
    features = tf.io.parse_example(serialized=serialized_tf_example, features=raw_feature_spec)
    transformed_features = tf_transform_output.transform_raw_features(features)
    features.update(transformed_features)
    return tfma.export.EvalInputReceiver(
        features=features,
        receiver_tensors={"examples": serialized_tf_example},
        labels=transformed_features[_transformed_name(_LABEL_KEY)],
    )


def _input_fn(filenames, tf_transform_output, batch_size=40):
    """Returns the tensors of a batch: transformed features, and the label."""
    transformed_feature_spec = tf_transform_output.transformed_feature_spec().copy()
    dataset = tf.data.experimental.make_batched_features_dataset(
        filenames, batch_size, transformed_feature_spec, reader=_gzip_reader_fn, shuffle_seed=5
    )
    transformed_features = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    return transformed_features, transformed_features.pop(_transformed_name(_LABEL_KEY))


def trainer_fn(trainer_fn_args, schema):
    """Returns the Estimator and how to train, evaluate and export it."""
    first_dnn_layer_size = trainer_fn_args.custom_config["first_dnn_layer_size"]
    num_dnn_layers, dnn_decay_factor = 3, 0.7
    tf_transform_output = tft.TFTransformOutput(trainer_fn_args.transform_output)

    train_spec = tf.estimator.TrainSpec(
        lambda: _input_fn(trainer_fn_args.train_files, tf_transform_output),
        max_steps=trainer_fn_args.train_steps,
    )
    exporter = tf.estimator.FinalExporter(
        "bike-hire", lambda: _example_serving_receiver_fn(tf_transform_output, schema)
    )
    eval_spec = tf.estimator.EvalSpec(
        lambda: _input_fn(trainer_fn_args.eval_files, tf_transform_output),
        steps=trainer_fn_args.eval_steps,
        exporters=[exporter],
        name="bike-hire-eval",
    )
    run_config = tf.estimator.RunConfig(save_checkpoints_steps=999, keep_checkpoint_max=1, tf_random_seed=4)
    run_config = run_config.replace(model_dir=trainer_fn_args.serving_model_dir)
    estimator = _build_estimator(
        hidden_units=[max(2, int(first_dnn_layer_size * dnn_decay_factor**i)) for i in range(num_dnn_layers)],
        config=run_config,
        warm_start_from=trainer_fn_args.base_model,
    )
    return {
        "estimator": estimator,
        "train_spec": train_spec,
        "eval_spec": eval_spec,
        "eval_input_receiver_fn": lambda: _eval_input_receiver_fn(tf_transform_output, schema),
    }
