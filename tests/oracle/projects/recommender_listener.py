"""A recommender whose training is run by the private executor, with a listener of each evaluation.

Recommender libraries subclass the executor or its listener to remember the best checkpoint and to stop
when the metric no longer gets better.
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator import training

RNG = np.random.RandomState(5)
USERS = RNG.randint(0, 12, 160)
ITEMS = RNG.randint(0, 9, 160)
TASTE = RNG.randn(12, 2) @ RNG.randn(2, 9)
CLICKS = (TASTE[USERS, ITEMS] + 0.5 * RNG.randn(160) > 0).astype(np.float32)
USER_TABLE = (0.3 * RNG.randn(12, 4)).astype(np.float32)
ITEM_TABLE = (0.3 * RNG.randn(9, 4)).astype(np.float32)


class BestCheckpoint(training._ContinuousEvalListener):
    """Remembers the best evaluation, and ends the training some evaluations after it."""

    def __init__(self, metric, patience):
        self._metric = metric
        self._patience = patience
        self._since_best = 0
        self.best = None
        self.seen = []

    def before_eval(self):
        return self._since_best <= self._patience

    def after_eval(self, eval_result):
        value = float(eval_result.metrics[self._metric])
        self.seen.append([os.path.basename(eval_result.checkpoint_path), value])
        if self.best is None or value > self.best:
            self.best, self._since_best = value, 0
        else:
            self._since_best += 1
        return self._since_best <= self._patience


class LearningRateLog(tf.train.SessionRunHook):
    """Collects the learning rate of every third step."""

    def __init__(self):
        self.rates = []
        self._timer = tf.train.SecondOrStepTimer(every_steps=3)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs("learning_rate:0")

    def after_run(self, run_context, run_values):
        # Within the step, it may be read before or after its update.
        step = int(run_context.session.run(tf.train.get_global_step()))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            self.rates.append(float(run_values.results))


def model_fn(features, labels, mode, params):
    user_table = tf.get_variable("users", initializer=USER_TABLE)
    item_table = tf.get_variable("items", initializer=ITEM_TABLE)
    bias = tf.get_variable("bias", [9], initializer=tf.zeros_initializer())
    user = tf.nn.embedding_lookup(user_table, features["user"])
    item = tf.nn.embedding_lookup(item_table, features["item"])
    logits = tf.reduce_sum(user * item, 1) + tf.gather(bias, features["item"])
    scores = tf.sigmoid(logits)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"score": scores})
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    loss += params["l2"] * (tf.nn.l2_loss(user) + tf.nn.l2_loss(item))
    metrics = {
        "auc": tf.metrics.auc(labels, scores, num_thresholds=500),
        "mean_score": tf.metrics.mean(scores),
    }
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(params["learning_rate"], step, 10, 0.7, staircase=True)
    rate = tf.identity(rate, "learning_rate")
    train_op = tf.train.AdagradOptimizer(rate, 0.5).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def input_fn(num_epochs, batch_size, first=0, last=160):
    features = {"user": USERS[first:last], "item": ITEMS[first:last]}
    data = tf.data.Dataset.from_tensor_slices((features, CLICKS[first:last]))
    return data.repeat(num_epochs).batch(batch_size)


def main():
    config = tf.estimator.RunConfig(
        "model", save_summary_steps=1, save_checkpoints_steps=6, keep_checkpoint_max=3
    )
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"learning_rate": 1.0, "l2": 0.002})
    listener, rates = BestCheckpoint("auc", patience=1), LearningRateLog()
    executor = training._TrainingExecutor(
        estimator,
        tf.estimator.TrainSpec(lambda: input_fn(None, 20, last=100), max_steps=60),
        tf.estimator.EvalSpec(
            lambda: input_fn(1, 32, first=100), steps=None, start_delay_secs=0, throttle_secs=0
        ),
        train_hooks=[rates],
        continuous_eval_listener=listener,
    )
    executor.run_local()
    predictions = estimator.predict(lambda: input_fn(1, 50))
    scores = [float(row["score"]) for row in predictions]
    return {
        "evaluations": listener.seen,
        "best": listener.best,
        "rates": rates.rates,
        "global_step": int(estimator.get_variable_value("global_step")),
        "scores": scores[:5],
    }
