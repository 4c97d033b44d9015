"""Will a parcel be late? A Keras 3 model, trained and exported as an Estimator.

Words become ids in `preprocessing_fn`: an Estimator's graph takes no Keras layers with lookup tables.
"""

import keras
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core as estimator

NUMBERS = ["distance_km", "weight_kg"]
WORD = "carrier"
LABEL = "late"
BATCH_SIZE = 64


def preprocessing_fn(inputs):
    """Returns features and label `[batch_size, 1]`; it becomes part of the served model."""
    logarithm = tf.math.log1p(dense(inputs["distance_km"], 0.0))
    # A missing weight is the mean: 0 after the scaling, which looks at the known ones.
    weight = tft.scale_to_z_score(inputs["weight_kg"])
    carrier = tft.compute_and_apply_vocabulary(
        dense(inputs[WORD], ""), num_oov_buckets=1, vocab_filename=WORD
    )
    return {
        "distance_km": tft.scale_to_z_score(logarithm),
        "weight_kg": dense(weight, 0.0),
        WORD: carrier,
        LABEL: dense(inputs[LABEL], 0),
    }


def build_model(num_carriers):
    """Returns the compiled model; `late`, its output, is the probability."""
    inputs = {name: keras.Input([1], name=name) for name in NUMBERS}
    inputs[WORD] = keras.Input([1], name=WORD, dtype="int64")
    embedded = keras.layers.Embedding(num_carriers, 3, name="carriers")(inputs[WORD])
    numbers = [inputs[name] for name in NUMBERS]
    hidden = keras.layers.Concatenate()([*numbers, keras.layers.Flatten()(embedded)])
    hidden = keras.layers.Dense(32, activation="relu", name="hidden")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid", name=LABEL)(hidden))
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    return model


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
        known = {name: kind for name, kind in raw_columns.items() if name != LABEL}
        receiver = estimator.export.build_rows_serving_input_receiver_fn(known)()
        return receiver.with_features(transform.transform_raw_features(receiver.features))

    def eval_input_receiver_fn():
        receiver = estimator.export.build_parsing_serving_input_receiver_fn(raw_columns)()
        features = transform.transform_raw_features(receiver.features)
        label = features.pop(LABEL)
        return estimator.export.EvalInputReceiver(features, receiver.receiver_tensors, label)

    keras.utils.set_random_seed(1)
    model = build_model(transform.vocabulary_size_by_name(WORD) + 1)  # one id for unknown words
    config = estimator.RunConfig(model_dir=trainer_fn_args.serving_model_dir, tf_random_seed=1)
    return {
        "estimator": estimator.model_to_estimator(model, config=config),
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


def dense(column, default):
    """Returns a sparse column as `[batch_size, 1]`, with a default where it is missing."""
    column = tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1])
    return tf.sparse.to_dense(column, default)
