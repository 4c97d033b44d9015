"""Trains a small network to step 400, with checkpoints every 40 steps, and dies in the middle if asked to.

python killed_training.py MODEL_DIR STEPS_PER_SESSION_RUN [BATCH]

The process kills itself when batch BATCH of its input is read. Batches are read when a step asks for them.
A checkpoint is written beside training: the process dies when that of step 160 is the newest one.
"""

import os
import pathlib
import signal
import sys
import time

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import estimator_core as est

LAST = 400


def model_fn(features, labels, mode):
    """A layer, momentum, and a rate that decays with the global step."""
    hidden = tf.tanh(features["x"] @ tf1.get_variable("hidden", [4, 8]))
    y = hidden @ tf1.get_variable("out", [8, 1])
    loss = tf.reduce_mean(tf.square(y[:, 0] - labels))
    step = tf1.train.get_or_create_global_step()
    rate = tf1.train.exponential_decay(0.1, step, 50, 0.9)
    train_op = tf1.train.MomentumOptimizer(rate, 0.9).minimize(loss, global_step=step)
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


def wait_for_checkpoint(model_dir, step):
    """Returns when the newest checkpoint is of `step`, or after a minute."""
    end = time.monotonic() + 60
    path = os.path.join(model_dir, f"model.ckpt-{step}")
    while tf.train.latest_checkpoint(model_dir) != path and time.monotonic() < end:
        time.sleep(0.05)


def input_fn_that_dies_at(batch, model_dir):
    """Returns an input_fn; None never dies."""

    def input_fn():
        x = np.random.default_rng(3).normal(size=[600, 16, 4]).astype(np.float32)
        y = x.sum(axis=2)

        def read(index):
            if index == batch:
                wait_for_checkpoint(model_dir, 160)
                os.kill(os.getpid(), signal.SIGKILL)
            return x[index], y[index]

        def shaped(index):
            features, labels = tf.numpy_function(read, [index], [tf.float32, tf.float32])
            features.set_shape([16, 4])
            labels.set_shape([16])
            return {"x": features}, labels

        options = tf.data.Options()
        options.autotune.enabled = False  # tf.data would read ahead
        return tf.data.Dataset.range(600).map(shaped).with_options(options)

    return input_fn


def train(model_dir, steps_per_session_run, last=LAST, dies_at=None):
    """Trains from the checkpoint in the model_dir to step `last`."""
    config = est.RunConfig(
        model_dir=str(model_dir),
        tf_random_seed=5,
        save_checkpoints_steps=40,
        keep_checkpoint_max=0,
        steps_per_session_run=steps_per_session_run,
    )
    input_fn = input_fn_that_dies_at(dies_at, str(model_dir))
    est.Estimator(model_fn, config=config).train(input_fn, max_steps=last)


if __name__ == "__main__":
    folder, steps, *batch = sys.argv[1:]
    tf1.logging.set_verbosity(tf1.logging.INFO)
    train(folder, steps if steps == "auto" else int(steps), dies_at=int(batch[0]) if batch else None)
