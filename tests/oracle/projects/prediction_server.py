"""Serves requests from one endless `predict`: its generator waits for the next request."""

import queue

import numpy as np
import tensorflow.compat.v1 as tf

RNG = np.random.RandomState(7)
X = RNG.randn(40, 2).astype(np.float32)
Y = (X @ [[1.5], [-1.0]] + 0.25).astype(np.float32)


class Server:
    """Answers a request by the running `predict` of an Estimator."""

    def __init__(self, estimator):
        self._requests = queue.Queue()
        self.graphs = 0
        self._predictions = estimator.predict(self._input_fn)

    def _input_fn(self):
        self.graphs += 1
        data = tf.data.Dataset.from_generator(
            lambda: iter(self._requests.get, None), tf.float32, tf.TensorShape([2])
        )
        return data.map(lambda x: {"x": x}).batch(1)

    def __call__(self, row):
        self._requests.put(row.tolist())
        return next(self._predictions)["y"].tolist()

    def close(self):
        self._requests.put(None)
        return next(self._predictions, "closed")


def model_fn(features, labels, mode):
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], w) + b
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": y})
    loss = tf.losses.mean_squared_error(labels, y)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    estimator = tf.estimator.Estimator(model_fn, "model")
    estimator.train(lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(3).batch(10))
    server = Server(estimator)
    first = [server(row) for row in X[:3]]
    estimator.train(lambda: tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(10))
    same = [server(row) for row in X[:3]]  # the weights of the first request
    other = Server(estimator)
    newer = [other(row) for row in X[:3]]
    ends = [other.close(), server.close()]  # in this order: in 2.15, each has its graph on a stack
    graphs = [server.graphs, other.graphs]
    return {"first": first, "same": same, "newer": newer, "graphs": graphs, "ends": ends}
