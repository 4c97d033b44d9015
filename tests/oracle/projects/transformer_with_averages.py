"""A small transformer, exported when it is best, and as the average of its last checkpoints."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(19)
WORDS, SIZE, LENGTH = 12, 6, 5
TOKENS = RNG.randint(1, WORDS, [96, LENGTH])
LABELS = (TOKENS[:, 0] > TOKENS[:, -1]).astype(np.int32)
INITIAL = {
    name: (0.5 * RNG.randn(*shape)).astype(np.float32)
    for name, shape in {
        "embedding": [WORDS, SIZE],
        "position": [LENGTH, SIZE],
        "query": [SIZE, SIZE],
        "key": [SIZE, SIZE],
        "value": [SIZE, SIZE],
        "feed": [SIZE, 8],
        "back": [8, SIZE],
        "output": [SIZE, 2],
    }.items()
}


def weights(name):
    return tf.get_variable(f"transformer/{name}", initializer=INITIAL[name])


def normalized(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.rsqrt(variance + 0.1)


def model_fn(features, labels, mode, params):
    x = tf.nn.embedding_lookup(weights("embedding"), features["tokens"]) + weights("position")
    query, key, value = (tf.tensordot(x, weights(name), 1) for name in ("query", "key", "value"))
    attention = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / SIZE**0.5)
    x = normalized(x + tf.matmul(attention, value))
    hidden = tf.tanh(tf.tensordot(x, weights("feed"), 1))
    x = normalized(x + tf.tensordot(hidden, weights("back"), 1))
    logits = tf.matmul(tf.reduce_mean(x, 1), weights("output"))
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"probabilities": tf.nn.softmax(logits)})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_or_create_global_step()
    rate = params["rate"] * tf.minimum(1.0, tf.cast(step + 1, tf.float32) / params["warmup"])
    tf.summary.scalar("learning_rate", rate)
    optimizer = tf.train.AdamOptimizer(rate, beta2=0.98, epsilon=1e-3)
    train_op = optimizer.minimize(loss, step)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)


class AverageExporter(tf.estimator.Exporter):
    """Writes a checkpoint with the mean of the last checkpoints, at the end."""

    name = "average"

    def __init__(self, number):
        self._number = number

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        if not is_the_final_export:
            return None
        state = tf.train.get_checkpoint_state(estimator.model_dir)
        readers = [
            tf.train.load_checkpoint(path) for path in list(state.all_model_checkpoint_paths)[-self._number :]
        ]
        names = sorted(n for n in estimator.get_variable_names() if n.startswith("transformer/"))
        names = [name for name in names if "Adam" not in name]
        with tf.Graph().as_default(), tf.Session() as session:
            for name in names:
                mean = np.mean([reader.get_tensor(name) for reader in readers], 0)
                tf.get_variable(name, initializer=mean)
            session.run(tf.global_variables_initializer())
            tf.gfile.MakeDirs(export_path)
            path = os.path.join(export_path, "averaged.ckpt")
            return tf.train.Saver().save(session, path, 0, write_meta_graph=False)


def input_fn(num_epochs=1):
    data = tf.data.Dataset.from_tensor_slices(({"tokens": TOKENS}, LABELS))
    return data.repeat(num_epochs).batch(32)


def serving_input_receiver_fn():
    tokens = tf.placeholder(tf.int64, [None, LENGTH], "tokens")
    return tf.estimator.export.ServingInputReceiver({"tokens": tokens}, {"tokens": tokens})


def main():
    config = tf.estimator.RunConfig("model", save_checkpoints_steps=5, save_summary_steps=5)
    params = {"rate": 0.01, "warmup": 8}
    estimator = tf.estimator.Estimator(model_fn, config=config, params=params)
    exporters = [
        tf.estimator.BestExporter("best", serving_input_receiver_fn, exports_to_keep=2),
        AverageExporter(3),
    ]
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(12), max_steps=30),
        tf.estimator.EvalSpec(input_fn, steps=None, exporters=exporters, throttle_secs=0),
    )
    averaged = tf.train.load_checkpoint("model/export/average/averaged.ckpt-0")
    rows = list(estimator.predict(input_fn))[:4]
    return {
        "average": averaged.get_tensor("transformer/query").tolist(),
        "metrics": estimator.evaluate(input_fn),
        "probabilities": [row["probabilities"].tolist() for row in rows],
    }
