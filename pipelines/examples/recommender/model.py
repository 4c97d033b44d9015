"""The stars that a user would give a film: a factorization with embeddings.

Rating = middle + kindness of the user + quality of the film + taste of the user * kind of the film. The last
two are vectors that the training finds. Source: Koren et al., "Matrix Factorization Techniques", 2009.
"""

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core as estimator
from estimator_core import experimental

IDS = ["user", "film"]
LABEL = "rating"
DIMENSION = 4  # of the vectors
MIDDLE = 3.0  # of 1 to 5 stars; otherwise the averages of users would hold a part of it
BATCH_SIZE = 128


def preprocessing_fn(inputs):
    """Returns the id of each user and film, int64, and the rating, float32: all `[batch_size, 1]`."""
    outputs = {
        # The last id is for those that are not in the data. It is never trained: a new user gets about
        # the film's average rating.
        name: tft.compute_and_apply_vocabulary(inputs[name], num_oov_buckets=1, vocab_filename=name)
        for name in IDS
    }
    return {**outputs, LABEL: tf.cast(inputs[LABEL], tf.float32)}


def build_estimator(sizes, config):
    """Returns the Estimator. `sizes` has the number of ids of each of `IDS`."""
    ids = [tf.feature_column.categorical_column_with_identity(name, sizes[name]) for name in IDS]
    small = tf.compat.v1.truncated_normal_initializer(stddev=0.1)
    vectors = [tf.feature_column.embedding_column(column, DIMENSION, initializer=small) for column in ids]

    def taste(features, mode):
        user, film = (experimental.input_layer(features, [vector]) for vector in vectors)
        return MIDDLE + tf.reduce_sum(user * film, axis=1, keepdims=True)

    averages = experimental.linear_logit_fn_builder(1, ids)
    parts = [(averages, "Adam", 0.01), (taste, "Adam", 0.01)]
    return estimator.Estimator(experimental.compose(estimator.RegressionHead(), parts), config=config)


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
        asked = {name: raw_columns[name] for name in IDS}
        receiver = estimator.export.build_rows_serving_input_receiver_fn(asked)()
        return receiver.with_features(transform.transform_raw_features(receiver.features))

    def eval_input_receiver_fn():
        receiver = estimator.export.build_parsing_serving_input_receiver_fn(raw_columns)()
        features = transform.transform_raw_features(receiver.features)
        label = features.pop(LABEL)
        return estimator.export.EvalInputReceiver(features, receiver.receiver_tensors, label)

    config = estimator.RunConfig(model_dir=trainer_fn_args.serving_model_dir, tf_random_seed=1)
    sizes = {name: transform.vocabulary_size_by_name(name) + 1 for name in IDS}
    return {
        "estimator": build_estimator(sizes, config),
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
