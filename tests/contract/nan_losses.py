"""Trainings in which the loss of one step is NaN, in each way of running and by several optimizers."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from estimator_core import tpu
from estimator_core.graphs.loop_runner import LoopRunner
from estimator_core.graphs.step_runner import StepRunner
from estimator_core.hooks.nan_loss import NanLossHook
from estimator_core.hooks.training_progress import ProgressHook

OPTIMIZERS = {
    "sgd": lambda: tf1.train.GradientDescentOptimizer(0.1),
    "adam": lambda: tf1.train.AdamOptimizer(0.1),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.1),
    "keras_adam": lambda: keras.optimizers.Adam(0.1),
    "keras_ftrl": lambda: keras.optimizers.Ftrl(0.1),
}
BATCHES_OF_A_STEP = {"one_device": 1, "compiled": 1, "two_replicas": 2, "four_shards": 1}
WAYS = tuple(BATCHES_OF_A_STEP)


def model_fn(features, labels, mode, params):
    """A weight, and the squared error of weight * x."""
    weight = tf1.get_variable("weight", initializer=[0.5])
    return est.RegressionHead().create_estimator_spec(
        features,
        mode,
        logits=features["x"] * weight,
        labels=labels,
        optimizer=OPTIMIZERS[params["optimizer"]](),
        trainable_variables=[weight],
    )


def additive_model_fn(features, labels, mode, params):
    """A weight, and the loss weight + mean(x), whose gradient is 1 even if x is infinite."""
    loss = tf1.get_variable("weight", initializer=100.0) + tf.reduce_mean(features["x"])
    train_op = tf1.train.GradientDescentOptimizer(0.125).minimize(loss, tf1.train.get_global_step())
    return est.EstimatorSpec(mode, loss=loss, train_op=train_op)


class NanInput:
    """Batches of four rows; one number of one batch is NaN.

    Args:
      way: One of WAYS. The last of the batches of a step has the NaN.
      value: The number in place of NaN.

    Attributes:
      step: The step whose loss is to be NaN.
    """

    def __init__(self, way, value=np.nan):
        self._batches = BATCHES_OF_A_STEP[way]
        self._value = value
        self.step = None

    def __call__(self, input_context=None):
        def rows(index):
            x = np.ones([4, 1], np.float32)
            if self.step is not None and index == self.step * self._batches - 1:
                x[2] = self._value
            return x

        def batch(index):
            x = tf.numpy_function(rows, [index], tf.float32)
            x.set_shape([4, 1])
            return {"x": x}, tf.ones([4, 1])

        options = tf.data.Options()
        options.autotune.enabled = False  # tf.data would read ahead
        return tf.data.Dataset.range(10**6).map(batch).with_options(options)


def make_estimator(way, optimizer, steps_per_session_run, model_dir, model_fn=model_fn, **settings):
    """Returns an Estimator that trains in one of WAYS by one of OPTIMIZERS.

    Args:
      way: One of WAYS.
      optimizer: One of OPTIMIZERS.
      steps_per_session_run: Setting of `RunConfig`; for shards, the steps of a loop: those of one second
        with "auto".
      model_dir: Directory of checkpoints.
      model_fn: The model_fn.
      settings: Further settings of `RunConfig`.
    """
    if way == "two_replicas":
        settings["train_distribute"] = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
    config = est.RunConfig(
        model_dir=str(model_dir),
        steps_per_session_run=1 if way == "four_shards" else steps_per_session_run,
        jit_compile=way == "compiled",
        **settings,
    )
    estimator = est.Estimator(model_fn, config=config, params={"optimizer": optimizer})
    if way != "four_shards":
        return estimator
    loop = "1s" if steps_per_session_run == "auto" else steps_per_session_run
    tpu_config = tpu.TPUConfig(num_shards=4, iterations_per_loop=loop)
    return tpu.to_tpu_estimator(estimator, train_batch_size=4, config=tpu_config)


class ManyTrainings:
    """The same training again and again, in one graph and one session; the loss of another step is NaN.

    Each begins as in a new session: `advance` finds another one.

    Args:
      way: One of WAYS.
      estimator: Estimator that `make_estimator` returned for this way.
    """

    def __init__(self, way, estimator):
        self._input = NanInput(way)
        self._program = estimator.build_program("train", self._input)
        self._session = None

    def error_of(self, step, last_step=200):
        """Returns the error of a training to `last_step` whose loss is NaN at `step`; None without one."""
        self._input.step = step
        program, spec = self._program, self._program.spec
        with program.scope():
            starts = _StartsOnce(program.inputs.hooks, self._session is None)
            nan_loss = NanLossHook(spec.loss)
            progress = ProgressHook(spec.loss, 100)
            stop = tf1.train.StopAtStepHook(last_step=last_step)
            kind = StepRunner if program.execution.loop_size is None else LoopRunner
            runner = kind(program, [nan_loss, starts, progress, stop])
            if self._session is None and program.step.prepare:
                self._prepare_once()
            try:
                with tf1.train.MonitoredSession(self, hooks=runner.hooks) as session:
                    while not session.should_stop():
                        runner(session)
                        nan_loss.raise_if_found()
            except est.NanLossDuringTrainingError as error:
                return error
        return None

    def _prepare_once(self):
        """Has a loop added to the graph by the first training alone."""
        prepare, found = self._program.step.prepare, []

        def prepared():
            if not found:
                found.append(prepare())
            return found[0]

        step = self._program.step._replace(prepare=prepared)
        self._program = dataclasses.replace(self._program, step=step)

    def create_session(self):
        """Returns the one session, at the beginning of a training, as a `SessionCreator` does."""
        if self._session is None:
            self._session = self._program.session_creator().create_session()
        else:
            scaffold = self._program.spec.scaffold
            self._session.run([scaffold.init_op, scaffold.local_init_op])
        return _AsNew(self._session)

    def close(self):
        self._session.close()


class _AsNew:
    """A wrapper of a session that does not close it."""

    def __init__(self, session):
        self._session = session

    def __getattr__(self, name):
        return getattr(self._session, name)

    def close(self):
        pass


class _StartsOnce(est.SessionRunHook):
    """Starts the input; its operations are in the graph after the first time."""

    def __init__(self, hooks, is_first):
        self._hooks, self._is_first = hooks, is_first

    def begin(self):
        for hook in self._hooks if self._is_first else ():
            hook.begin()

    def after_create_session(self, session, coord):
        for hook in self._hooks:
            hook.after_create_session(session, coord)
