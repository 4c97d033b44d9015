"""The electricity that a house needs on a day: a Keras model, trained by `fit` in a `run_fn`.

`run_fn` is TFX's generic contract: it may train a model in any way, and writes a SavedModel. With it
go no checkpoints to continue from and no evaluation model; the Evaluator asks `serving_default`.
"""

import keras
import tensorflow as tf
import tensorflow_transform as tft

NUMBERS = ["temperature", "residents"]
WORDS = ["heating", "weekend"]
LABEL = "kwh"
BATCH_SIZE = 64


def preprocessing_fn(inputs):
    """Returns features and label `[batch_size, 1]`: numbers with mean 0 and deviation 1, ids of words."""
    outputs = {name: tft.scale_to_z_score(tf.cast(inputs[name], tf.float32)) for name in NUMBERS}
    for name in WORDS:
        outputs[name] = tft.compute_and_apply_vocabulary(inputs[name], num_oov_buckets=1, vocab_filename=name)
    return {**outputs, LABEL: inputs[LABEL]}


def build_model(num_words):
    """Returns the compiled model. `num_words` has the size of the vocabulary of each of `WORDS`."""
    inputs = {name: keras.Input([1], name=name) for name in NUMBERS}
    inputs |= {name: keras.Input([1], name=name, dtype="int64") for name in WORDS}
    words = [keras.layers.Flatten()(keras.layers.Embedding(num_words[n], 3)(inputs[n])) for n in WORDS]
    hidden = keras.layers.Concatenate()([*(inputs[name] for name in NUMBERS), *words])
    hidden = keras.layers.Dense(32, activation="relu")(hidden)
    hidden = keras.layers.Dense(16, activation="relu")(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=[keras.metrics.RootMeanSquaredError()])
    return model


def run_fn(fn_args):
    """Trains the model and saves it to `fn_args.serving_model_dir`."""
    keras.utils.set_random_seed(1)
    transform = tft.TFTransformOutput(fn_args.transform_output)
    # One more id than words in the training data, for words that it did not have.
    model = build_model({name: transform.vocabulary_size_by_name(name) + 1 for name in WORDS})
    model.fit(
        read(fn_args.train_files, transform, shuffle=True).repeat(),
        steps_per_epoch=fn_args.train_steps,
        validation_data=read(fn_args.eval_files, transform),
        callbacks=[keras.callbacks.TensorBoard(fn_args.model_run_dir)],
        verbose=2,
    )
    save(model, transform, fn_args.serving_model_dir)


def read(files, transform, shuffle=False):
    """Returns batches of (features, label) from the gzipped TFRecords that Transform wrote."""
    spec = transform.transformed_feature_spec()

    def parse(serialized):
        features = tf.io.parse_example(serialized, spec)
        return features, features.pop(LABEL)

    records = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(files)), "GZIP")
    records = records.shuffle(10_000, seed=1) if shuffle else records
    return records.batch(BATCH_SIZE).map(parse)


def save(model, transform, folder):
    """Writes the SavedModel: preprocessing and model, for tf.Examples and for columns as tensors."""
    columns = transform.raw_feature_spec()
    del columns[LABEL]
    served = tf.Module()
    served.model = model
    served.transform = transform.transform_features_layer()  # tracked, so that vocabularies are saved

    def predict(raw):
        return {"predictions": model(served.transform(raw))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
    def serve_examples(examples):
        return predict(tf.io.parse_example(examples, columns))

    @tf.function
    def serve_rows(**rows):
        return predict({name: tf.expand_dims(row, axis=1) for name, row in rows.items()})

    specs = {name: tf.TensorSpec([None], kind.dtype, name=name) for name, kind in columns.items()}
    signatures = {
        "serving_default": serve_examples,
        "serving_rows": serve_rows.get_concrete_function(**specs),
    }
    tf.saved_model.save(served, folder, signatures)
