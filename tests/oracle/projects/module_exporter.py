"""Exports a module by its own Exporter, which builds the graph again and restores it in a session
with the Estimator's private settings."""

import os

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(13)
X = RNG.randn(64, 4).astype(np.float32)
Y = np.argmax(X[:, :3], 1)
KERNEL = RNG.uniform(-0.2, 0.2, [4, 5]).astype(np.float32)
OUTPUT = RNG.uniform(-0.2, 0.2, [5, 3]).astype(np.float32)


def embed(x):
    return tf.tanh(tf.matmul(x, tf.get_variable("module/kernel", initializer=KERNEL)))


def model_fn(features, labels, mode, params):
    embedding = embed(features["x"])
    logits = tf.matmul(embedding, tf.get_variable("output", initializer=OUTPUT))
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"embedding": embedding, "class": tf.argmax(logits, 1)}
        return tf.estimator.EstimatorSpec(mode, predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
    optimizer = tf.train.AdagradOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, None, loss, train_op, metrics)


class ModuleExporter(tf.estimator.Exporter):
    """Writes the part of the model below "module/" after each evaluation, and keeps the newest."""

    def __init__(self, name, exports_to_keep):
        self._name = name
        self._exports_to_keep = exports_to_keep
        self.written = []

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [None, 4], "x")
            outputs = embed(x)
            with tf.Session(config=estimator._session_config) as session:
                tf.train.Saver(tf.global_variables("module/")).restore(session, checkpoint_path)
                step = int(checkpoint_path.rsplit("-", 1)[1])
                path = os.path.join(export_path, f"step_{step:04}")
                tf.saved_model.simple_save(session, path, {"x": x}, {"embedding": outputs})
        self.written.append([path, is_the_final_export, sorted(eval_result)])
        for old in sorted(tf.gfile.ListDirectory(export_path))[: -self._exports_to_keep]:
            tf.gfile.DeleteRecursively(os.path.join(export_path, old))
        return path


def input_fn(num_epochs=1):
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(num_epochs).batch(16)


def main():
    config = tf.estimator.RunConfig("model", save_checkpoints_steps=6)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"learning_rate": 0.3})
    exporter = ModuleExporter("hub", exports_to_keep=2)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(6), max_steps=24),
        tf.estimator.EvalSpec(input_fn, steps=None, exporters=exporter, throttle_secs=0),
    )
    with tf.Graph().as_default(), tf.Session() as session:
        path = exporter.written[-1][0]
        signature = tf.saved_model.loader.load(session, ["serve"], path).signature_def
        names = signature["serving_default"]
        embedding = session.run(names.outputs["embedding"].name, {names.inputs["x"].name: X[:3]}).tolist()
    written = [[os.path.relpath(each[0]), *each[1:]] for each in exporter.written]
    return {"written": written, "embedding": embedding, "metrics": estimator.evaluate(input_fn)}
