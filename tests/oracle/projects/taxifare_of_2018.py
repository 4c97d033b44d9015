"""Predicts taxi fares as tutorials of 2018 did, with tf.contrib: a canned model, then a model_fn."""

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(5)
MILES = RNG.uniform(0.5, 10, 60).astype(np.float32)
ZONES = RNG.choice(["center", "airport", "suburb"], 60)
FARES = (2.5 + 2 * MILES + 5 * (ZONES == "airport")).astype(np.float32)[:, None]
KERNEL = RNG.uniform(-0.3, 0.3, [2, 4]).astype(np.float32)


def input_fn(num_epochs=1):
    keys = np.arange(60, dtype=np.int64)
    features = {"miles": MILES[:, None], "zone": ZONES[:, None], "key": keys[:, None]}
    return tf.data.Dataset.from_tensor_slices((features, FARES)).repeat(num_epochs).batch(12)


def rmse(labels, predictions):
    error = tf.metrics.root_mean_squared_error(labels, predictions["predictions"])
    return {"rmse": error}


def canned(hparams):
    miles = tf.feature_column.bucketized_column(tf.feature_column.numeric_column("miles"), [2.0, 4.0, 6.0])
    optimizer = tf.contrib.estimator.clip_gradients_by_norm(
        tf.train.FtrlOptimizer(hparams.learning_rate), hparams.clip_norm
    )
    estimator = tf.estimator.LinearRegressor(
        [tf.feature_column.numeric_column("miles"), miles],
        "canned",
        optimizer=optimizer,
        config=tf.estimator.RunConfig(save_summary_steps=10),
    )
    estimator = tf.contrib.estimator.add_metrics(estimator, rmse)
    return tf.contrib.estimator.forward_features(estimator, "key")


def model_fn(features, labels, mode, params):
    table = tf.contrib.lookup.index_table_from_tensor(mapping=tf.constant(["suburb", "center", "airport"]))
    zone = tf.cast(table.lookup(features["zone"]), tf.float32)
    inputs = tf.concat([features["miles"], zone], 1)
    regularizer = tf.contrib.layers.l2_regularizer(params.l2)
    kernel = tf.get_variable("kernel", initializer=KERNEL, regularizer=regularizer)
    hidden = tf.tanh(tf.matmul(inputs, kernel))
    output = tf.get_variable("output", initializer=np.ones([4, 1], np.float32))
    fare = tf.matmul(hidden, output) + 10.0
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"fare": fare})
    loss = tf.losses.mean_squared_error(labels, fare) + tf.losses.get_regularization_loss()
    train_op = tf.contrib.layers.optimize_loss(
        loss,
        tf.train.get_global_step(),
        learning_rate=params.learning_rate,
        optimizer="Adam",
        clip_gradients=params.clip_norm,
    )
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op)


def main():
    hparams = tf.contrib.training.HParams(learning_rate=0.5, clip_norm=1.0, l2=0.01)
    hparams.parse("learning_rate=0.05,clip_norm=2.5")
    estimator = canned(hparams)
    estimator.train(lambda: input_fn(6))
    rows = list(estimator.predict(input_fn))[:5]
    own = tf.estimator.Estimator(model_fn, "own", params=hparams)
    own.train(lambda: input_fn(6))
    return {
        "canned": estimator.evaluate(input_fn),
        "keys": [row["key"].tolist() for row in rows],
        "predictions": [row["predictions"].tolist() for row in rows],
        "own": own.evaluate(input_fn),
        "fares": [row["fare"].tolist() for row in own.predict(input_fn)][:5],
    }
