"""A program like those of mesh-tensorflow: TPUEstimator from TensorFlow's private module, with its
own Saver and CheckpointSaverHook, whose listener copies slices of a variable together."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.tpu import tpu_config, tpu_estimator

RNG = np.random.RandomState(29)
X = RNG.randn(72, 4).astype(np.float32)
Y = np.tanh(X @ RNG.randn(4, 2)).astype(np.float32)
SLICES = [(0.3 * RNG.randn(2, 2)).astype(np.float32) for _ in range(2)]
seen = []


class Lowering:
    """The slices of a variable, its whole, and the copies between them."""

    def __init__(self):
        trained = [tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES]  # not saved
        self.slices = [
            tf.get_variable(f"slice_{i}", initializer=value, collections=trained, use_resource=True)
            for i, value in enumerate(SLICES)
        ]
        self.whole = tf.get_variable(
            "whole", [4, 2], initializer=tf.zeros_initializer(), trainable=False, use_resource=True
        )
        self.to_whole = tf.assign(self.whole, tf.concat(self.slices, 0))
        parts = tf.split(self.whole, 2)
        pairs = zip(self.slices, parts)  # noqa: B905 - Python 3.9
        self.to_slices = tf.group([tf.assign(piece, part) for piece, part in pairs])


class CopyListener(tf.train.CheckpointSaverListener):
    """Copies the slices to the whole before it is saved."""

    def __init__(self, lowering):
        self._lowering = lowering

    def begin(self):
        seen.append("begin")

    def before_save(self, session, global_step_value):
        session.run(self._lowering.to_whole)
        seen.append(["before_save", int(global_step_value)])

    def after_save(self, session, global_step_value):
        seen.append(["after_save", int(global_step_value)])

    def end(self, session, global_step_value):
        seen.append(["end", int(global_step_value)])


class RestoreHook(tf.train.SessionRunHook):
    """Copies the restored whole to the slices."""

    def __init__(self, lowering):
        self._lowering = lowering

    def after_create_session(self, session, coord):
        if session.run(tf.train.get_global_step()):
            session.run(self._lowering.to_slices)
            seen.append("copied")


def model_fn(features, labels, mode, params):
    lowering = Lowering()
    outputs = tf.matmul(features["x"], tf.concat(lowering.slices, 0))
    loss = tf.reduce_mean((tf.tanh(outputs) - labels) ** 2)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = (lambda outputs: {"mean": tf.metrics.mean(outputs)}, [outputs])
        hooks = [RestoreHook(lowering)]
        return tpu_estimator.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics, evaluation_hooks=hooks)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.2).minimize(loss, step)
    saver = tf.train.Saver([step, lowering.whole], max_to_keep=2, sharded=True)
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    saver_hook = tf.train.CheckpointSaverHook(
        params["model_dir"], save_steps=6, saver=saver, listeners=[CopyListener(lowering)]
    )
    return tpu_estimator.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, training_hooks=[RestoreHook(lowering), saver_hook]
    )


def input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(({"x": X}, Y))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def main():
    config = tpu_config.RunConfig(model_dir="model", save_checkpoints_steps=None, save_checkpoints_secs=None)
    estimator = tpu_estimator.TPUEstimator(
        model_fn,
        config=config,
        params={"model_dir": "model"},
        use_tpu=False,
        train_batch_size=12,
        eval_batch_size=24,
    )
    estimator.train(input_fn, max_steps=15)
    estimator.train(input_fn, max_steps=20)
    whole = estimator.get_variable_value("whole").tolist()
    return {"seen": seen, "whole": whole, "checkpoint": estimator.latest_checkpoint()}
