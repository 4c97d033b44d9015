"""Piecewise-linear calibration of each feature, kept monotonic by a projection after each step.

Lattice libraries have canned Estimators of their own, whose optimizer is a name, an object or a
function, and heads of both generations.
"""

import numpy as np
import tensorflow.compat.v2 as tf
from tensorflow_estimator.python.estimator.canned import head as head_lib
from tensorflow_estimator.python.estimator.canned import optimizers

tf1 = tf.compat.v1
RNG = np.random.RandomState(61)
X = RNG.uniform(0, 1, [80, 3]).astype(np.float32)
Y = (np.sqrt(X[:, :1]) - X[:, 1:2] ** 2 + 0.1 * RNG.randn(80, 1)).astype(np.float32)
FEATURES = ("price", "age", "noise")


class FeatureConfig:
    """Settings of one feature's calibrator."""

    def __init__(self, name, num_keypoints=5, monotonicity=0):
        self.name, self.num_keypoints, self.monotonicity = name, num_keypoints, monotonicity


def keypoint_weights(values, keypoints):
    """Returns `[batch_size, keypoints]`: the share of each keypoint in a value between two of them."""
    widths = np.diff(keypoints).astype(np.float32)
    return tf.clip_by_value((values - keypoints[:-1].astype(np.float32)) / widths, 0.0, 1.0)


def calibrate(features, configs):
    """Returns the calibrated features, and the projections that keep them monotonic."""
    outputs, projections = [], []
    for config in configs:
        keypoints = np.linspace(0, 1, config.num_keypoints)
        with tf1.variable_scope(f"calibration_{config.name}"):
            steps = tf1.get_variable(
                "steps",
                [config.num_keypoints - 1, 1],
                initializer=tf1.constant_initializer((config.monotonicity or 0.5) * 0.2),
            )
            bias = tf1.get_variable("bias", [1], initializer=tf1.zeros_initializer())
        outputs.append(tf.matmul(keypoint_weights(features[config.name], keypoints), steps) + bias)
        if config.monotonicity:
            projections.append((steps, config.monotonicity))
    return tf.concat(outputs, 1), projections


def project(projections):
    ops = []
    for variable, sign in projections:
        ops.append(tf1.assign(variable, sign * tf.maximum(sign * variable, 0.0)))
    return tf.group(*ops)


class ProjectionHook(tf1.train.SessionRunHook):
    """Projects after every second step, as a hook of the first generation did."""

    def __init__(self):
        self.op = None

    def after_create_session(self, session, coord):
        self._count = 0

    def after_run(self, run_context, run_values):
        self._count += 1
        if self._count % 2 == 0:
            run_context.session.run(self.op)


class CalibratedEstimator(tf.estimator.Estimator):
    """A calibrated linear model with a head of either generation."""

    def __init__(self, feature_configs, head, optimizer, is_first_generation, model_dir):
        def model_fn(features, labels, mode, config):
            calibrated, projections = calibrate(features, feature_configs)
            kernel = tf1.get_variable("linear", [3, 1], initializer=tf1.constant_initializer(0.6))
            logits = tf.matmul(calibrated, kernel)
            given = {"features": features, "mode": mode, "labels": labels, "logits": logits}
            if not is_first_generation:
                own = optimizers.get_optimizer_instance_v2(optimizer, learning_rate=0.02)
                own.iterations = tf1.train.get_or_create_global_step()
                return head.create_estimator_spec(
                    optimizer=own,
                    trainable_variables=tf1.trainable_variables(),
                    update_ops=tf1.get_collection(tf1.GraphKeys.UPDATE_OPS),
                    **given,
                )
            own = optimizers.get_optimizer_instance(optimizer, learning_rate=0.02)
            spec = head.create_estimator_spec(
                train_op_fn=lambda loss: own.minimize(loss, tf1.train.get_global_step()), **given
            )
            hook = ProjectionHook()
            hook.op = project(projections)
            return spec._replace(training_hooks=[*spec.training_hooks, hook])

        super().__init__(model_fn, config=tf.estimator.RunConfig(model_dir, save_summary_steps=2))


def input_fn(epochs, batch_size=16):
    features = {name: X[:, i : i + 1] for i, name in enumerate(FEATURES)}
    return tf.data.Dataset.from_tensor_slices((features, Y)).repeat(epochs).batch(batch_size)


def main():
    configs = [
        FeatureConfig("price", monotonicity=1),
        FeatureConfig("age", num_keypoints=4, monotonicity=-1),
        FeatureConfig("noise", num_keypoints=3),
    ]
    seen = {}
    for name, optimizer in (
        ("object", tf1.train.FtrlOptimizer(0.05, l2_regularization_strength=0.01)),
        ("function", lambda: tf1.train.RMSPropOptimizer(0.01, epsilon=1e-3)),
        ("name", "Adagrad"),
        ("second_generation", "Adam"),
    ):
        is_first = name != "second_generation"
        head = head_lib._regression_head() if is_first else tf.estimator.RegressionHead()
        estimator = CalibratedEstimator(configs, head, optimizer, is_first, name)
        estimator.train(lambda: input_fn(None), steps=13)
        metrics = estimator.evaluate(lambda: input_fn(1, 30))
        steps = estimator.get_variable_value("calibration_age/steps").ravel().tolist()
        predictions = [float(row["predictions"][0]) for row in estimator.predict(lambda: input_fn(1))]
        seen[name] = {"metrics": metrics, "age": steps, "predictions": predictions[:5]}
    return seen
