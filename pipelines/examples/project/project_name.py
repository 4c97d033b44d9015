"""The model of this project: will the driver be tipped more than a fifth of the fare?

The pipeline calls `preprocessing_fn` and `trainer_fn`.
"""

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core as estimator

NUMBERS = ["fare", "trip_miles", "trip_seconds"]
CATEGORIES = ["payment_type", "company"]
TIPS = "tips"  # the raw column that the label is made of
LABEL = "good_tip"
BATCH_SIZE = 64


def preprocessing_fn(inputs):
    """Returns features and label. It sees all rows before the training, and becomes part of the model."""
    outputs = {}
    for name in NUMBERS:
        outputs[name] = tft.scale_to_z_score(tf.math.log1p(tf.maximum(dense(inputs[name], 0), 0)))
    for name in CATEGORIES:
        outputs[name] = tft.compute_and_apply_vocabulary(
            dense(inputs[name], "missing"), num_oov_buckets=1, vocab_filename=name
        )
    fifth = 0.2 * dense(inputs["fare"], 0)
    outputs[LABEL] = tf.cast(dense(inputs[TIPS], 0) > fifth, tf.int64)
    return outputs


def trainer_fn(trainer_fn_args, schema):
    """Returns the Estimator, and how to train, evaluate and export it."""
    transform = tft.TFTransformOutput(trainer_fn_args.transform_output)
    raw_columns = schema_utils.schema_as_feature_spec(schema).feature_spec

    def read(files, training):
        return tf.data.experimental.make_batched_features_dataset(
            files,
            BATCH_SIZE,
            transform.transformed_feature_spec(),
            reader=lambda names: tf.data.TFRecordDataset(names, compression_type="GZIP"),
            num_epochs=None if training else 1,
            shuffle=training,
            shuffle_seed=1,
            label_key=LABEL,
        )

    def serving_input_receiver_fn():
        without_tips = {name: kind for name, kind in raw_columns.items() if name != TIPS}
        receiver = estimator.export.build_rows_serving_input_receiver_fn(without_tips)()
        return receiver.with_features(transformed(receiver))

    def eval_input_receiver_fn():
        receiver = estimator.export.build_parsing_serving_input_receiver_fn(raw_columns)()
        features = transformed(receiver)
        label = features.pop(LABEL)
        return estimator.export.EvalInputReceiver(features, receiver.receiver_tensors, label)

    def transformed(receiver):
        return transform.transform_raw_features(receiver.features, drop_unused_features=True)

    return {
        "estimator": build_estimator(transform, trainer_fn_args.serving_model_dir),
        "train_spec": estimator.TrainSpec(
            lambda: read(trainer_fn_args.train_files, training=True), max_steps=trainer_fn_args.train_steps
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: read(trainer_fn_args.eval_files, training=False),
            steps=trainer_fn_args.eval_steps,
            exporters=[estimator.FinalExporter("model", serving_input_receiver_fn)],
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }


def build_estimator(transform, model_dir):
    """Returns a wide and deep model."""
    words = [
        tf.feature_column.categorical_column_with_identity(name, transform.vocabulary_size_by_name(name) + 1)
        for name in CATEGORIES
    ]
    numbers = [tf.feature_column.numeric_column(name) for name in NUMBERS]
    embedded = [tf.feature_column.embedding_column(column, dimension=4) for column in words]
    return estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=words,
        dnn_feature_columns=numbers + embedded,
        dnn_hidden_units=[32, 16],
        dnn_optimizer="Adam",
        config=estimator.RunConfig(model_dir=model_dir, tf_random_seed=1),
    )


def dense(column, default):
    """Returns a column as float32 or string [batch_size, 1], with a default where it is missing."""
    if isinstance(column, tf.SparseTensor):
        column = tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1])
        column = tf.sparse.to_dense(column, tf.cast(default, column.dtype))
    return column if column.dtype == tf.string else tf.cast(column, tf.float32)
