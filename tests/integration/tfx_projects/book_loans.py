"""Predicts the days that a book is kept. A module for TFX's Transform and Trainer of 2020: run_fn."""

import tensorflow as tf
import tensorflow_model_analysis as tfma
import tensorflow_transform as tft
from tensorflow_metadata.proto.v0 import schema_pb2
from tensorflow_transform.tf_metadata import schema_utils
from tfx.components.trainer.fn_args_utils import DataAccessor, FnArgs
from tfx.utils import io_utils, path_utils
from tfx_bsl.tfxio import dataset_options

NUMERIC_KEYS = ["pages", "borrowers_age"]
GENRE_KEY = "genre"
LABEL_KEY = "days"
LEARNING_RATE = 0.3


def transformed_name(key):
    return f"{key}_xf"


def _dense(feature, default_value):
    """Returns a sparse feature as `[batch_size]`."""
    shape = [feature.dense_shape[0], 1]
    one_each = tf.sparse.SparseTensor(feature.indices, feature.values, shape)
    return tf.squeeze(tf.sparse.to_dense(one_each, default_value), axis=1)


def preprocessing_fn(inputs):
    """Returns the transformed features and the label."""
    outputs = {
        transformed_name(key): tft.scale_to_0_1(tf.cast(_dense(inputs[key], 0), tf.float32))
        for key in NUMERIC_KEYS
    }
    outputs[transformed_name(GENRE_KEY)] = tft.compute_and_apply_vocabulary(
        _dense(inputs[GENRE_KEY], ""), vocab_filename=GENRE_KEY, num_oov_buckets=1
    )
    outputs[transformed_name(LABEL_KEY)] = tf.cast(_dense(inputs[LABEL_KEY], 0), tf.float32)
    return outputs


def build_estimator(tf_transform_output, model_dir):
    """Returns a DNN over scaled numbers and an embedded genre, of tf.compat.v1's names."""
    genre = tf.feature_column.categorical_column_with_identity(
        transformed_name(GENRE_KEY), num_buckets=tf_transform_output.vocabulary_size_by_name(GENRE_KEY) + 1
    )
    numbers = [tf.feature_column.numeric_column(transformed_name(key)) for key in NUMERIC_KEYS]
    return tf.compat.v1.estimator.DNNRegressor(
        hidden_units=[8],
        feature_columns=[*numbers, tf.feature_column.embedding_column(genre, dimension=2)],
        optimizer=tf.compat.v1.train.AdagradOptimizer(LEARNING_RATE),
        config=tf.estimator.RunConfig(
            model_dir=model_dir, save_summary_steps=50, log_step_count_steps=50, tf_random_seed=2
        ),
    )


def _input_fn(file_pattern, data_accessor: DataAccessor, tf_transform_output, num_epochs=None, batch_size=32):
    """Returns a dataset of (features, label)."""
    return data_accessor.tf_dataset_factory(
        file_pattern,
        dataset_options.TensorFlowDatasetOptions(
            batch_size=batch_size,
            num_epochs=num_epochs,
            shuffle_seed=6,
            label_key=transformed_name(LABEL_KEY),
        ),
        tf_transform_output.transformed_metadata.schema,
    )


def run_fn(fn_args: FnArgs):
    """Trains, and leaves the serving and the evaluation model where TFX wants them."""
    schema = io_utils.parse_pbtxt_file(fn_args.schema_file, schema_pb2.Schema())
    raw_feature_spec = schema_utils.schema_as_feature_spec(schema).feature_spec
    tf_transform_output = tft.TFTransformOutput(fn_args.transform_output)

    def serving_input_receiver_fn():
        spec = {key: value for key, value in raw_feature_spec.items() if key != LABEL_KEY}
        raw = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)()
        return tf.estimator.export.ServingInputReceiver(
            tf_transform_output.transform_raw_features(raw.features), raw.receiver_tensors
        )

    def eval_input_receiver_fn():
        serialized = tf.compat.v1.placeholder(tf.string, [None], name="input_example_tensor")
        raw_features = tf.io.parse_example(serialized, raw_feature_spec)
        features = tf_transform_output.transform_raw_features(raw_features)
        labels = features.pop(transformed_name(LABEL_KEY))
        return tfma.export.EvalInputReceiver(
            features=features, receiver_tensors={"examples": serialized}, labels=labels
        )

    estimator = build_estimator(tf_transform_output, path_utils.serving_model_dir(fn_args.model_run_dir))
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(
            lambda: _input_fn(fn_args.train_files, fn_args.data_accessor, tf_transform_output),
            max_steps=fn_args.train_steps,
        ),
        tf.estimator.EvalSpec(
            lambda: _input_fn(fn_args.eval_files, fn_args.data_accessor, tf_transform_output, 1),
            steps=fn_args.eval_steps,
            exporters=[tf.estimator.LatestExporter("book-loans", serving_input_receiver_fn)],
        ),
    )
    io_utils.copy_dir(path_utils.serving_model_path(fn_args.model_run_dir), fn_args.serving_model_dir)
    tfma.export.export_eval_savedmodel(
        estimator=estimator,
        export_dir_base=fn_args.eval_model_dir,
        eval_input_receiver_fn=eval_input_receiver_fn,
    )
