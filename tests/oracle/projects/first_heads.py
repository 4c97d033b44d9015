"""Click and amount of one visit, with the heads of TensorFlow 1's canned Estimators.

Click-through libraries took these heads by their private names, and derived their own from `_Head`.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow_estimator.python.estimator.canned import head as head_lib
from tensorflow_estimator.python.estimator.canned import optimizers

tf.disable_v2_behavior()

RNG = np.random.RandomState(23)
X = RNG.uniform(-1, 1, [60, 4]).astype(np.float32)
CLICK = (X[:, :1] - X[:, 1:2] + 0.4 * RNG.randn(60, 1) > 0).astype(np.float32)
AMOUNT = (2 * X[:, 2:3] + 0.5 * X[:, :1] + 0.2 * RNG.randn(60, 1)).astype(np.float32)
KIND = RNG.randint(0, 3, [60, 1])
WEIGHT = RNG.choice([0.5, 1.0, 2.0], [60, 1]).astype(np.float32)
KERNEL = (0.5 * RNG.randn(4, 6)).astype(np.float32)
OUTPUT = (0.5 * RNG.randn(6, 3)).astype(np.float32)


class ClampedHead(head_lib._Head):
    """A regression head of the project's own: it clamps the logits of the head inside."""

    def __init__(self, inner, limit):
        self._inner = inner
        self._limit = limit

    @property
    def name(self):
        return "clamped"

    @property
    def logits_dimension(self):
        return self._inner.logits_dimension

    def _clamped(self, logits):
        return self._limit * tf.tanh(logits / self._limit)

    def create_loss(self, features, mode, logits, labels):
        return self._inner.create_loss(features, mode, self._clamped(logits), labels)

    def create_estimator_spec(self, features, mode, logits, labels=None, **others):
        return self._inner.create_estimator_spec(
            features=features, mode=mode, logits=self._clamped(logits), labels=labels, **others
        )


def heads_of(kind):
    if kind == "click":
        return head_lib._binary_logistic_head_with_sigmoid_cross_entropy_loss(
            weight_column="weight", thresholds=(0.3, 0.6), name="click"
        )
    if kind == "kind":
        return head_lib._multi_class_head_with_softmax_cross_entropy_loss(
            3, loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE, name="kind"
        )
    return ClampedHead(head_lib._regression_head(weight_column="weight"), 2.5)


def model_fn(features, labels, mode, params):
    head = heads_of(params["kind"])
    kernel = tf.get_variable("kernel", initializer=KERNEL)
    output = tf.get_variable("output", initializer=OUTPUT[:, : head.logits_dimension])
    bias = tf.get_variable("bias", [head.logits_dimension], initializer=tf.zeros_initializer())
    logits = tf.matmul(tf.tanh(tf.matmul(features["x"], kernel)), output) + bias
    optimizer = optimizers.get_optimizer_instance(params["optimizer"], params["learning_rate"])

    def train_op_fn(loss):
        return optimizer.minimize(loss, global_step=tf.train.get_global_step())

    spec = head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        logits=logits,
        train_op_fn=train_op_fn,
        regularization_losses=[params["l2"] * tf.nn.l2_loss(output)],
    )
    if mode == tf.estimator.ModeKeys.EVAL:
        unreduced = head.create_loss(features, mode, logits, labels).unreduced_loss
        more = {"largest_loss": tf.metrics.mean(tf.reduce_max(unreduced))}
        spec = spec._replace(eval_metric_ops={**spec.eval_metric_ops, **more})
    return spec


def main():
    seen = {}
    for kind, labels, optimizer in (
        ("click", CLICK, "Adagrad"),
        ("kind", KIND, "Ftrl"),
        ("amount", AMOUNT, lambda: tf.train.MomentumOptimizer(0.001, 0.8)),
    ):
        features = {"x": X, "weight": WEIGHT}
        estimator = tf.estimator.Estimator(
            model_fn,
            config=tf.estimator.RunConfig(kind, save_summary_steps=2),
            params={"kind": kind, "optimizer": optimizer, "learning_rate": 0.05, "l2": 0.01},
        )
        inputs = tf.estimator.inputs.numpy_input_fn
        estimator.train(inputs(features, labels, 15, num_epochs=5, shuffle=False))
        seen[kind] = estimator.evaluate(inputs(features, labels, 25, shuffle=False))
        receiver_fn = tf.estimator.export.build_raw_serving_input_receiver_fn(
            {"x": tf.placeholder(tf.float32, [None, 4], name="x_raw")}
        )
        estimator.export_saved_model(f"{kind}_export", receiver_fn)
    return seen
