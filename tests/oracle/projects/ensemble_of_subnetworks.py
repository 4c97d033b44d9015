"""An ensemble that grows: each iteration trains candidates beside the frozen ensemble and keeps one.

The Estimator is a subclass with its own `train`, and its model_fn builds on the subnetworks that the
iterations before have chosen.
"""

import json
import os

import numpy as np
import tensorflow.compat.v2 as tf

tf1 = tf.compat.v1
RNG = np.random.RandomState(31)
X = RNG.uniform(-1, 1, [72, 3]).astype(np.float32)
Y = (np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:]).astype(np.float32)
START = RNG.randn(2000).astype(np.float32)


class Subnetwork:
    """Builds a network of some layers with its own optimizer and complexity."""

    def __init__(self, depth, width, optimizer_fn):
        self.name = f"{depth}_layers_of_{width}"
        self.complexity = depth**0.5
        self._depth, self._width, self._optimizer_fn = depth, width, optimizer_fn

    def build(self, inputs, iteration):
        with tf1.variable_scope(f"iteration_{iteration}/{self.name}"):
            offset = 100 * iteration
            for index in range(self._depth):
                inputs = tf.tanh(self._dense(inputs, self._width, f"hidden_{index}", offset))
                offset += 50
            return self._dense(inputs, 1, "logits", offset), tf1.get_variable_scope().name

    def _dense(self, inputs, size, name, offset):
        shape = [int(inputs.shape[1]), size]
        start = 0.6 * START[offset : offset + shape[0] * size].reshape(shape)
        kernel = tf1.get_variable(f"{name}/kernel", initializer=start)
        return tf.matmul(inputs, kernel)

    def train_op(self, loss, scope):
        variables = tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, scope + "/")
        with tf1.variable_scope(f"train_{self.name}"):
            return self._optimizer_fn().minimize(loss, var_list=variables)


class EnsembleEstimator(tf.estimator.Estimator):
    """Trains `max_iterations` subnetworks, one after the other, in one `model_dir`."""

    def __init__(self, candidates, iteration_steps, max_iterations, config):
        self._candidates = {candidate.name: candidate for candidate in candidates}
        self._iteration_steps = iteration_steps
        self._max_iterations = max_iterations
        super().__init__(model_fn=self._model_fn_of([]), config=config)
        self.history = []

    def _assert_members_are_not_overridden(self):
        pass  # train() is overridden on purpose

    def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        for iteration in range(self._max_iterations):
            base = os.path.join(self.model_dir, f"iteration_{iteration}")
            objectives = {}
            for name in sorted(self._candidates):
                trial = tf.estimator.Estimator(
                    self._model_fn_of([*self.history, name]),
                    config=self.config.replace(model_dir=os.path.join(base, name)),
                    warm_start_from=self._warm_start(),
                )
                trial.train(input_fn, hooks, max_steps=(iteration + 1) * self._iteration_steps)
                metrics = trial.evaluate(input_fn, steps=3)
                penalty = 0.001 * self._candidates[name].complexity
                objectives[name] = float(metrics["average_loss"]) + penalty
            best = min(objectives, key=objectives.get)
            self.history.append(best)
            self._chosen = os.path.join(base, best)
            with tf.io.gfile.GFile(os.path.join(base, "architecture.json"), "w") as file:
                file.write(json.dumps({"objectives": objectives, "subnetworks": self.history}))
        return self

    def evaluate(self, input_fn, steps=None, **others):
        chosen = tf.estimator.Estimator(
            self._model_fn_of(self.history), config=self.config.replace(model_dir=self._chosen)
        )
        return chosen.evaluate(input_fn, steps=steps, **others)

    def _warm_start(self):
        if not self.history:
            return None
        last = len(self.history) - 1
        return tf.estimator.WarmStartSettings(
            self._chosen, vars_to_warm_start=f"(iteration|mixture)_[0-{last}]"
        )

    def _model_fn_of(self, names):
        def model_fn(features, labels, mode):
            logits = 0.0
            for iteration, name in enumerate(names):
                own, scope = self._candidates[name].build(features["x"], iteration)
                is_frozen = iteration < len(names) - 1
                own = tf.stop_gradient(own) if is_frozen else own
                weight = tf1.get_variable(f"mixture_{iteration}", [], initializer=tf1.ones_initializer())
                logits += weight * own
            loss = tf1.losses.mean_squared_error(labels, logits)
            metrics = {"average_loss": tf1.metrics.mean_squared_error(labels, logits)}
            train_op = None
            if mode == tf.estimator.ModeKeys.TRAIN:
                mixture = tf1.train.FtrlOptimizer(0.05, l1_regularization_strength=0.001)
                mixture_op = mixture.minimize(
                    loss, var_list=tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, "mixture")
                )
                subnetwork_op = self._candidates[names[-1]].train_op(loss, scope)
                step = tf1.train.get_global_step()
                with tf.control_dependencies([mixture_op, subnetwork_op]):
                    train_op = tf1.assign_add(step, 1)
            predictions = {"value": logits}
            return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)

        return model_fn


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(24)


def main():
    estimator = EnsembleEstimator(
        [
            Subnetwork(1, 6, lambda: tf1.train.AdamOptimizer(0.02, epsilon=1e-3)),
            Subnetwork(2, 4, lambda: tf1.train.MomentumOptimizer(0.05, 0.9)),
        ],
        iteration_steps=15,
        max_iterations=2,
        config=tf.estimator.RunConfig("ensemble", save_summary_steps=5),
    )
    estimator.train(input_fn)
    metrics = estimator.evaluate(input_fn, steps=3, name="final")
    return {"subnetworks": estimator.history, "metrics": metrics}
