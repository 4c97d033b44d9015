"""The wide and deep taxi model in stock TFX: Keras, trained by a `run_fn`.

Same features, layers, batch size and steps as `pipelines.examples.taxi.taxi_module`, with which it
shares `preprocessing_fn`.
"""

from typing import Any

import keras
import tensorflow as tf
import tensorflow_transform as tft
from tfx_bsl.public import tfxio

from pipelines.examples.taxi import taxi_module

preprocessing_fn = taxi_module.preprocessing_fn


def run_fn(fn_args: Any) -> None:
    """Trains the Keras model and saves it with the signatures that TFMA and TF Serving use."""
    transform = tft.TFTransformOutput(fn_args.transform_output)
    model = build_model(transform)
    model.fit(
        _read(fn_args, fn_args.train_files, transform, taxi_module.TRAIN_BATCH_SIZE),
        steps_per_epoch=fn_args.train_steps,
        validation_data=_read(fn_args, fn_args.eval_files, transform, taxi_module.EVAL_BATCH_SIZE),
        # As many steps as one pass over 5,000 examples takes; the dataset repeats.
        validation_steps=min(fn_args.eval_steps, 10),
        callbacks=[keras.callbacks.TensorBoard(fn_args.model_run_dir, update_freq="epoch")],
        verbose=0,
    )
    model.tft_layer = transform.transform_features_layer()

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        spec = transform.raw_feature_spec()
        del spec[taxi_module.TIPS]
        features = model.tft_layer(tf.io.parse_example(serialized, spec))
        return {"outputs": model(_of_model(features))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        return model.tft_layer(tf.io.parse_example(serialized, transform.raw_feature_spec()))

    tf.saved_model.save(
        model,
        fn_args.serving_model_dir,
        signatures={"serving_default": serve, "transform_features": transform_features},
    )


def build_model(transform: tft.TFTransformOutput) -> keras.Model:
    """Returns the compiled model: a DNN over numbers and embeddings plus a linear part."""
    sizes = {
        **{
            name: transform.vocabulary_size_by_name(name) + taxi_module.NUM_OOV_BUCKETS
            for name in taxi_module.CATEGORIES
        },
        **dict.fromkeys(taxi_module.COORDINATES, taxi_module.NUM_COORDINATE_BUCKETS + 1),
        **taxi_module.IDENTITIES,
    }
    inputs, deep, wide = {}, [], []
    for name in taxi_module.SKEWED_NUMERIC:
        key = taxi_module.transformed_name(name)
        inputs[key] = keras.Input((1,), name=key, dtype="float32")
        deep.append(inputs[key])
    for name, size in sizes.items():
        key = taxi_module.transformed_name(name)
        inputs[key] = keras.Input((1,), name=key, dtype="int64")
        deep.append(keras.layers.Flatten()(keras.layers.Embedding(size, 4)(inputs[key])))
        wide.append(keras.layers.Flatten()(keras.layers.Embedding(size, 1)(inputs[key])))
    hidden = keras.layers.Concatenate()(deep)
    for units in taxi_module.DNN_HIDDEN_UNITS:
        hidden = keras.layers.Dense(units, activation="relu")(hidden)
        hidden = keras.layers.Dropout(taxi_module.DNN_DROPOUT)(hidden)
    logit = keras.layers.Add()([keras.layers.Dense(1)(hidden), *wide])
    model = keras.Model(inputs, keras.layers.Activation("sigmoid")(logit))
    model.compile(
        optimizer=keras.optimizers.Adam(taxi_module.DNN_LEARNING_RATE),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


def _read(
    fn_args: Any, files: list[str], transform: tft.TFTransformOutput, batch_size: int
) -> tf.data.Dataset:
    """Returns batches of (features, label), read like in TFX's own examples."""
    options = tfxio.TensorFlowDatasetOptions(batch_size=batch_size, label_key=taxi_module.LABEL)
    dataset = fn_args.data_accessor.tf_dataset_factory(files, options, transform.transformed_metadata.schema)
    return dataset.map(lambda features, label: (_of_model(features), label)).repeat()


def _of_model(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns the features without the label."""
    return {name: value for name, value in features.items() if name != taxi_module.LABEL}
