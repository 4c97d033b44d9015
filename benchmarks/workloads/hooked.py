"""(c) A user's model_fn, with a user's hook that reads the loss at every step."""

import numpy as np
import tensorflow as tf

from benchmarks.workloads import dnn
from benchmarks.workloads.training import Training

BATCH_SIZE = 128
WIDTH = 20
EXAMPLES = 51_200


def input_fn():
    """Returns an endless dataset of batches in memory."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(EXAMPLES, WIDTH)).astype(np.float32)
    labels = (numbers[:, :1] * numbers[:, 1:2] + numbers[:, 2:3] > 0).astype(np.int64)
    batches = dnn.in_batches(({"numbers": numbers}, labels), BATCH_SIZE)
    return tf.data.Dataset.from_tensor_slices(batches).repeat().prefetch(tf.data.AUTOTUNE)


def make_estimator(estimator, config):
    """Returns an Estimator of a model_fn with TensorFlow 1 variables."""

    def model_fn(features, labels, mode):
        hidden, width = features["numbers"], WIDTH
        for layer, units in enumerate((64, 32, 1)):
            with tf.compat.v1.variable_scope(f"layer_{layer}"):
                kernel = tf.compat.v1.get_variable("kernel", [width, units])
                bias = tf.compat.v1.get_variable("bias", [units], initializer=tf.zeros_initializer())
            hidden = hidden @ kernel + bias
            hidden, width = (hidden if units == 1 else tf.nn.relu(hidden)), units
        loss = dnn.binary_loss(hidden, labels)
        optimizer = tf.compat.v1.train.AdamOptimizer(0.001)
        train_op = optimizer.minimize(loss, tf.compat.v1.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    return estimator.Estimator(model_fn, config=config)


def hooks(estimator):
    """Returns a hook that is called at every step, and keeps a moving mean of the loss."""

    class MovingLoss(estimator.SessionRunHook):
        """Keeps the moving mean of the loss."""

        def begin(self):
            graph = tf.compat.v1.get_default_graph()
            (self.loss,) = graph.get_collection(tf.compat.v1.GraphKeys.LOSSES)
            self.mean = None

        def before_run(self, run_context):
            return tf.compat.v1.train.SessionRunArgs(self.loss)

        def after_run(self, run_context, run_values):
            loss = float(run_values.results)
            self.mean = loss if self.mean is None else 0.99 * self.mean + 0.01 * loss

    return [MovingLoss()]


WORK = Training(BATCH_SIZE, input_fn, make_estimator, hooks=hooks)
