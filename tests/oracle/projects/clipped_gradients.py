"""Logistic regression with clipped, noisy gradients of microbatches, in a head of the project's own.

Projects for differential privacy have such heads: the optimizer needs the losses of the examples, so
they build the spec themselves, with the helpers of the heads' module.
"""

import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib
from tensorflow_estimator.python.estimator.canned import prediction_keys
from tensorflow_estimator.python.estimator.export import export_output
from tensorflow_estimator.python.estimator.head import base_head
from tensorflow_estimator.python.estimator.mode_keys import ModeKeys

tf1 = tf.compat.v1
KEYS = prediction_keys.PredictionKeys
RNG = np.random.RandomState(11)
X = RNG.uniform(-1, 1, [48, 5]).astype(np.float32)
Y = (X @ np.array([1.5, -2, 1, 0.5, -1], np.float32) + 0.3 * RNG.randn(48) > 0.1).astype(np.int64)
NOISE = RNG.randn(64, 6).astype(np.float32)


class ClippedGradientDescent(tf1.train.GradientDescentOptimizer):
    """Descends the mean of the microbatches' gradients, each clipped, plus noise."""

    def __init__(self, learning_rate, num_microbatches, clip_norm, noise_multiplier):
        super().__init__(learning_rate)
        self._num_microbatches = num_microbatches
        self._clip_norm = clip_norm
        self._noise_multiplier = noise_multiplier

    def compute_gradients(self, loss, var_list=None, **unused):
        variables = var_list or tf1.trainable_variables()
        sums = [0.0] * len(variables)
        for losses in tf.unstack(tf.reshape(loss, [self._num_microbatches, -1])):
            gradients = tf.gradients(tf.reduce_mean(losses), variables)
            clipped, _ = tf.clip_by_global_norm(gradients, self._clip_norm)
            sums = [total + gradient for total, gradient in zip(sums, clipped, strict=True)]
        noise = tf.gather(NOISE, tf1.train.get_global_step())
        parts = tf.split(noise, [int(np.prod(variable.shape)) for variable in variables])
        scale = self._noise_multiplier * self._clip_norm
        return [
            ((total + scale * tf.reshape(part, variable.shape)) / self._num_microbatches, variable)
            for total, part, variable in zip(sums, parts, variables, strict=True)
        ]


class PrivateHead(base_head.Head):
    """A binary head whose train op sees one loss for each example."""

    name = "private"
    logits_dimension = 1
    loss_reduction = "sum_over_batch_size"  # the value of tf.keras.losses.Reduction.SUM_OVER_BATCH_SIZE

    def _losses(self, labels, logits):
        logits = base_head.check_logits_final_dim(logits, self.logits_dimension)
        labels = tf.cast(tf.reshape(labels, [-1, 1]), tf.float32)
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def loss(self, labels, logits, features=None, mode=None, regularization_losses=None):
        return tf.reduce_mean(self._losses(labels, logits)) + tf.add_n(regularization_losses or [0.0])

    def predictions(self, logits, keys=None):
        logistic = tf.sigmoid(logits)
        probabilities = tf.concat([1 - logistic, logistic], -1)
        return {KEYS.LOGITS: logits, KEYS.LOGISTIC: logistic, KEYS.PROBABILITIES: probabilities}

    def metrics(self, regularization_losses=None):
        return {"mean_loss": tf.keras.metrics.Mean("mean_loss"), "hits": tf.keras.metrics.Mean("hits")}

    def update_metrics(self, eval_metrics, features, logits, labels, mode=None, regularization_losses=None):
        eval_metrics["mean_loss"].update_state(self._losses(labels, logits))
        hits = tf.equal(tf.reshape(labels, [-1, 1]) > 0, logits > 0)
        eval_metrics["hits"].update_state(tf.cast(hits, tf.float32))
        return eval_metrics

    def _create_tpu_estimator_spec(
        self,
        features,
        mode,
        logits,
        labels=None,
        optimizer=None,
        trainable_variables=None,
        train_op_fn=None,
        update_ops=None,
        regularization_losses=None,
    ):
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            classes = base_head.classification_output(
                scores=predictions[KEYS.PROBABILITIES], n_classes=2, label_vocabulary=["no", "yes"]
            )
            outputs = {
                base_head.DEFAULT_SERVING_KEY: classes,
                base_head.CLASSIFY_SERVING_KEY: classes,
                base_head.REGRESS_SERVING_KEY: export_output.RegressionOutput(
                    value=predictions[KEYS.LOGISTIC]
                ),
                base_head.PREDICT_SERVING_KEY: export_output.PredictOutput(predictions),
            }
            return model_fn_lib._TPUEstimatorSpec(mode=mode, predictions=predictions, export_outputs=outputs)
        loss = self.loss(labels, logits, features, mode, regularization_losses)
        if mode == ModeKeys.EVAL:
            arguments = {
                "eval_metrics": self.metrics(regularization_losses),
                "features": features,
                "logits": logits,
                "labels": labels,
            }
            return model_fn_lib._TPUEstimatorSpec(
                mode=mode,
                predictions=predictions,
                loss=loss,
                eval_metrics=base_head.create_eval_metrics_tuple(self.update_metrics, arguments),
            )
        train_op = base_head.create_estimator_spec_train_op(
            head_name=self.name,
            optimizer=optimizer,
            train_op_fn=train_op_fn,
            trainable_variables=trainable_variables,
            update_ops=update_ops,
            regularized_training_loss=self._losses(labels, logits),
            loss_reduction=self.loss_reduction,
        )
        base_head.create_estimator_spec_summary(loss, regularization_losses, self._summary_key)
        return model_fn_lib._TPUEstimatorSpec(
            mode=mode, predictions=predictions, loss=loss, train_op=train_op
        )


def model_fn(features, labels, mode, params):
    head = PrivateHead()
    weights = tf1.get_variable("weights", [5, 1], initializer=tf1.zeros_initializer())
    bias = tf1.get_variable("bias", [1], initializer=tf1.constant_initializer(0.1))
    optimizer = ClippedGradientDescent(params["learning_rate"], 4, 0.3, 0.5)
    return head.create_estimator_spec(
        features=features,
        mode=mode,
        labels=labels,
        logits=tf.matmul(features["x"], weights) + bias,
        train_op_fn=lambda losses: optimizer.minimize(losses, tf1.train.get_global_step()),
    )


def main():
    config = tf.estimator.RunConfig("model", save_summary_steps=1)
    estimator = tf.estimator.Estimator(model_fn, config=config, params={"learning_rate": 0.8})
    data = tf1.estimator.inputs.numpy_input_fn({"x": X}, Y, 16, num_epochs=None, shuffle=False)
    estimator.train(data, steps=12)
    metrics = estimator.evaluate(
        tf1.estimator.inputs.numpy_input_fn({"x": X}, Y, 20, shuffle=False), name="all"
    )
    estimator.export_saved_model(
        "export",
        tf.estimator.export.build_parsing_serving_input_receiver_fn(
            {"x": tf.io.FixedLenFeature([5], tf.float32)}
        ),
    )
    return metrics
