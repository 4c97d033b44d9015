"""A generator and a discriminator in one model_fn for TPUs; `main(use_tpu=True)` runs it on shards."""

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(17)
REAL = (RNG.randn(64, 2) * [0.5, 0.2] + [1.0, -0.5]).astype(np.float32)
NOISE = RNG.uniform(-1, 1, [64, 3]).astype(np.float32)
WEIGHTS = {
    "generator/hidden": (0.4 * RNG.randn(3, 6)).astype(np.float32),
    "generator/output": (0.4 * RNG.randn(6, 2)).astype(np.float32),
    "discriminator/hidden": (0.4 * RNG.randn(2, 8)).astype(np.float32),
    "discriminator/output": (0.4 * RNG.randn(8, 1)).astype(np.float32),
}


def layer(inputs, name, activation=None):
    kernel = tf.get_variable(f"{name}/kernel", initializer=WEIGHTS[name])
    bias = tf.get_variable(f"{name}/bias", [kernel.shape[1]], initializer=tf.zeros_initializer())
    outputs = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    return activation(outputs) if activation else outputs


def generator(noise):
    return layer(layer(noise, "generator/hidden", tf.tanh), "generator/output")


def discriminator(points):
    with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        return layer(layer(points, "discriminator/hidden", tf.tanh), "discriminator/output")


def cross_entropy(logits, label):
    labels = label * tf.ones_like(logits)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def metric_fn(real_logits, fake_logits, fake):
    is_right = tf.concat([real_logits > 0, fake_logits < 0], 0)
    return {
        "discriminator_accuracy": tf.metrics.mean(tf.cast(is_right, tf.float32)),
        "mean_x": tf.metrics.mean(fake[:, 0]),
        "mean_y": tf.metrics.mean(fake[:, 1]),
    }


def model_fn(features, labels, mode, params):
    fake = generator(features["noise"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"points": fake})
    real_logits, fake_logits = discriminator(features["real"]), discriminator(fake)
    discriminator_loss = cross_entropy(real_logits, 0.9) + cross_entropy(fake_logits, 0.0)
    generator_loss = cross_entropy(fake_logits, 1.0)
    if mode == tf.estimator.ModeKeys.EVAL:
        tensors = {"real_logits": real_logits, "fake_logits": fake_logits, "fake": fake}
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=discriminator_loss, eval_metrics=(metric_fn, tensors)
        )
    discriminator_optimizer = tf.train.AdamOptimizer(params["learning_rate"], beta1=0.5)
    generator_optimizer = tf.train.AdamOptimizer(params["learning_rate"] / 2, beta1=0.5)
    if params["use_tpu"]:
        discriminator_optimizer = tf.tpu.CrossShardOptimizer(discriminator_optimizer)
        generator_optimizer = tf.tpu.CrossShardOptimizer(generator_optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        discriminator_step = discriminator_optimizer.minimize(
            discriminator_loss, var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "discriminator")
        )
        generator_gradients = generator_optimizer.compute_gradients(
            generator_loss, tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, "generator")
        )
    with tf.control_dependencies([discriminator_step]):
        train_op = generator_optimizer.apply_gradients(
            generator_gradients, tf.train.get_or_create_global_step()
        )
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=discriminator_loss, train_op=train_op)


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(({"noise": NOISE, "real": REAL}, np.zeros(64)))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def main(use_tpu=False):
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=tf.estimator.tpu.RunConfig(
            tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=5, num_shards=4),
            model_dir="model",
            save_checkpoints_steps=10,
        ),
        params={"learning_rate": 0.02},
        use_tpu=use_tpu,
        train_batch_size=16,
        eval_batch_size=32,
        predict_batch_size=8,
    )
    seen = []
    for max_steps in (10, 25):
        estimator.train(input_fn, max_steps=max_steps)
        seen.append(estimator.evaluate(input_fn, steps=2))
    points = [
        row["points"].tolist()
        for row in estimator.predict(lambda params: input_fn(params).take(2), yield_single_examples=True)
    ]
    weights = {name: estimator.get_variable_value(f"{name}/kernel").tolist() for name in WEIGHTS}
    return {"evaluations": seen, "points": points, "weights": weights}
