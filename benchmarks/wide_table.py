"""A table of many numeric columns, and the modules that read it: stock TFX's Keras model, and its features.

A tenth of the columns (at least four) follow a hidden number, and the label is whether it is above 0. The
other columns are noise. One cell in fifty is empty.
"""

import pathlib
from typing import Any

import numpy as np

LABEL = "label"
BATCH_SIZE = 64


def write_csv(path: pathlib.Path, num_rows: int, num_columns: int, seed: int) -> None:
    """Writes the table: `num_columns` columns of numbers, and the label."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=num_rows)
    numbers = random.normal(size=(num_rows, num_columns))
    numbers[:, : max(4, num_columns // 10)] += hidden[:, None]
    missing = random.random(numbers.shape) < 0.02
    with path.open("w") as stream:
        print(*(f"x{column}" for column in range(num_columns)), LABEL, sep=",", file=stream)
        for row, gaps, value in zip(numbers, missing, hidden, strict=True):
            cells = ("" if gap else f"{cell:.4f}" for cell, gap in zip(row, gaps, strict=True))
            print(*cells, int(value > 0), sep=",", file=stream)


def preprocessing_fn(inputs: dict[str, Any]) -> dict[str, Any]:
    """Returns the z-scores of all columns, 0 for an empty cell, and the label."""
    import tensorflow as tf
    import tensorflow_transform as tft

    outputs = {}
    for name, values in inputs.items():
        if name == LABEL:
            dense = tf.sparse.to_dense(values) if isinstance(values, tf.SparseTensor) else values
            outputs[name] = tf.reshape(dense, [-1, 1])
            continue
        if isinstance(values, tf.SparseTensor):
            scores = tft.scale_to_z_score(values)
            shape = tf.stack([values.dense_shape[0], 1])
            outputs[name] = tf.sparse.to_dense(tf.SparseTensor(scores.indices, scores.values, shape))
        else:
            outputs[name] = tft.scale_to_z_score(values)
    return outputs


def run_fn(fn_args: Any) -> None:
    """Trains logistic regression in Keras, and saves it with the signatures that TFMA uses."""
    import keras
    import tensorflow as tf
    import tensorflow_transform as tft
    from tfx_bsl.public import tfxio

    transform = tft.TFTransformOutput(fn_args.transform_output)
    names = sorted(set(transform.transformed_feature_spec()) - {LABEL})

    def read(files: list[str]) -> tf.data.Dataset:
        options = tfxio.TensorFlowDatasetOptions(batch_size=BATCH_SIZE, label_key=LABEL)
        schema = transform.transformed_metadata.schema
        return fn_args.data_accessor.tf_dataset_factory(files, options, schema).repeat()

    inputs = {name: keras.Input((1,), name=name) for name in names}
    joined = keras.layers.Concatenate()([inputs[name] for name in names])
    model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(joined))
    model.compile(optimizer="adam", loss="binary_crossentropy")
    model.fit(read(fn_args.train_files), steps_per_epoch=fn_args.train_steps, verbose=0)
    model.tft_layer = transform.transform_features_layer()
    raw_spec = transform.raw_feature_spec()
    of_model = {name: value for name, value in raw_spec.items() if name != LABEL}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"outputs": model(model.tft_layer(tf.io.parse_example(serialized, of_model)))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def transform_features(serialized: tf.Tensor) -> dict[str, tf.Tensor]:
        return model.tft_layer(tf.io.parse_example(serialized, raw_spec))

    signatures = {"serving_default": serve, "transform_features": transform_features}
    tf.saved_model.save(model, fn_args.serving_model_dir, signatures=signatures)
