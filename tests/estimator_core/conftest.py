"""A model small enough to follow by hand: one weight, squared error, gradient descent."""

import functools
import json
import os

import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core import shard_programs
from tests.estimator_core.programs import weight_model_fn


@pytest.fixture
def make_estimator(tmp_path):
    """Returns a function that makes the Estimator of that model in a directory of the test's."""

    def make(**config):
        return est.Estimator(
            weight_model_fn,
            config=est.RunConfig(model_dir=str(tmp_path / "model"), **config),
            params={"learning_rate": 0.25},
        )

    return make


@pytest.fixture
def as_task(monkeypatch):
    """Sets TF_CONFIG for a task of a cluster."""

    def set_task(kind, index=0, tasks=None):
        task = {"type": kind, "index": index}
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": tasks, "task": task}))

    return set_task


@pytest.fixture
def graph():
    """A fresh graph, the current one."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def session(graph):
    """A session of the fresh graph."""
    with tf1.Session() as session:
        yield session


@pytest.fixture
def input_fn():
    """One batch for ever: x = [1, 1], labels = [2, 2].

    The gradient of the loss is 2 (w - 2), so a step with learning rate 0.25 halves the distance of
    w to 2: after n steps w = 2 - 2 / 2^n.
    """

    def make():
        return tf.data.Dataset.from_tensors(({"x": [1.0, 1.0]}, [2.0, 2.0])).repeat()

    return make


@pytest.fixture
def eval_input_fn():
    """Two batches of different size: x = [1, 2] and x = [3], labels all 0."""

    def make():
        features = {"x": tf.constant([1.0, 2.0, 3.0])}
        return tf.data.Dataset.from_tensor_slices((features, tf.zeros([3]))).batch(2)

    return make


@pytest.fixture
def beside(make_estimator, input_fn, eval_input_fn):
    """An Estimator, and an input_fn that trains on beside it, so that the newest checkpoint is deleted."""
    estimator = make_estimator(keep_checkpoint_max=1).train(input_fn, steps=2)
    trainer = make_estimator(keep_checkpoint_max=1)
    calls = []

    def training_input_fn():
        calls.append(estimator.latest_checkpoint())
        if len(calls) < 3:
            trainer.train(input_fn, steps=1)
            assert not os.path.exists(f"{calls[-1]}.index")
        return eval_input_fn()

    return estimator, training_input_fn


@pytest.fixture
def make_sharded(tmp_path):
    """Makes a TPUEstimator of `shard_programs`, or of another model_fn, in a directory of its own."""
    return functools.partial(shard_programs.estimator, tmp_path / "model")
