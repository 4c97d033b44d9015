"""Will a pump fail within a week? A `model_fn` as one writes it for TPUs, in a TPUEstimator.

A TPU takes numbers only, in batches of a fixed size, so words would become ids in `preprocessing_fn`.
"""

import keras
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

import estimator_core as estimator

NUMBERS = ["celsius", "vibration_mm", "pressure_bar"]
LABEL = "fails"
BATCH_SIZE = 128  # of all shards together


def preprocessing_fn(inputs):
    """Returns numbers with mean 0 and deviation 1, and the label: float32 `[batch_size, 1]`."""
    outputs = {name: tft.scale_to_z_score(inputs[name]) for name in NUMBERS}
    return {**outputs, LABEL: tf.cast(inputs[LABEL], tf.float32)}


def model_fn(features, labels, mode, params):
    """Returns the TPUEstimatorSpec of a shard. The features are `[params["batch_size"], 1]`."""
    hidden = tf.concat([features[name] for name in NUMBERS], axis=1)
    for units in (32, 16):
        hidden = keras.layers.Dense(units, activation="relu", name=f"hidden_{units}")(hidden)
    logits = keras.layers.Dense(1, name="logits")(hidden)
    predictions = {"probability": tf.sigmoid(logits)}
    if mode == estimator.ModeKeys.PREDICT:
        return estimator.tpu.TPUEstimatorSpec(mode, predictions)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    if mode == estimator.ModeKeys.EVAL:
        tensors = {"labels": labels, "probability": predictions["probability"]}
        return estimator.tpu.TPUEstimatorSpec(mode, predictions, loss, eval_metrics=(metric_fn, tensors))
    optimizer = tf.compat.v1.train.AdamOptimizer(params["learning_rate"])
    if params["use_tpu"]:
        # Each shard has its part of the batch, and takes the mean of all gradients.
        optimizer = estimator.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
    return estimator.tpu.TPUEstimatorSpec(mode, predictions, loss, train_op)


def metric_fn(labels, probability):
    """Returns the metrics. It runs on the host, with the batches of all shards together."""
    return {"auc": tf.compat.v1.metrics.auc(labels, probability)}


def build_estimator(num_shards, model_dir):
    """Returns the TPUEstimator, on one device if there are no shards."""
    on_tpu = estimator.tpu.TPUConfig(iterations_per_loop=50, num_shards=num_shards or None)
    return estimator.tpu.TPUEstimator(
        model_fn,
        config=estimator.tpu.RunConfig(on_tpu, model_dir=model_dir, tf_random_seed=1),
        params={"learning_rate": 0.01},
        use_tpu=num_shards > 0,
        train_batch_size=BATCH_SIZE,
        eval_batch_size=BATCH_SIZE,
        predict_batch_size=BATCH_SIZE,
    )


def trainer_fn(trainer_fn_args, schema):
    """Returns the Estimator, and how to train, evaluate and export it."""
    transform = tft.TFTransformOutput(trainer_fn_args.transform_output)
    raw_columns = schema_utils.schema_as_feature_spec(schema).feature_spec

    def read(files, params, training):
        return tf.data.experimental.make_batched_features_dataset(
            files,
            params["batch_size"],  # that of all shards, or of one: TPUEstimator knows
            transform.transformed_feature_spec(),
            reader=lambda names: tf.data.TFRecordDataset(names, compression_type="GZIP"),
            num_epochs=None if training else 1,
            shuffle=training,
            shuffle_seed=1,
            label_key=LABEL,
            drop_final_batch=True,
        )

    def serving_input_receiver_fn():
        receiver = estimator.export.build_rows_serving_input_receiver_fn(
            {name: raw_columns[name] for name in NUMBERS}
        )()
        return receiver.with_features(transform.transform_raw_features(receiver.features))

    def eval_input_receiver_fn():
        receiver = estimator.export.build_parsing_serving_input_receiver_fn(raw_columns)()
        features = transform.transform_raw_features(receiver.features)
        label = features.pop(LABEL)
        return estimator.export.EvalInputReceiver(features, receiver.receiver_tensors, label)

    num_shards = trainer_fn_args.custom_config["num_shards"]
    return {
        "estimator": build_estimator(num_shards, trainer_fn_args.serving_model_dir),
        "train_spec": estimator.TrainSpec(
            lambda params: read(trainer_fn_args.train_files, params, training=True),
            max_steps=trainer_fn_args.train_steps,
        ),
        "eval_spec": estimator.EvalSpec(
            lambda params: read(trainer_fn_args.eval_files, params, training=False),
            steps=trainer_fn_args.eval_steps,
            exporters=[estimator.FinalExporter("model", serving_input_receiver_fn)],
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }
