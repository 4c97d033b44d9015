"""A user module: y = weight * x, by gradient descent with a learning rate that a Tuner may set."""

import os
import signal
import time
from pathlib import Path

import tensorflow as tf

import estimator_core as estimator
from components import hyperparameters

tf1 = tf.compat.v1

FEATURES = {"x": tf.io.FixedLenFeature([1], tf.float32)}
LABEL = {"y": tf.io.FixedLenFeature([1], tf.float32)}
DEFAULTS = {"learning_rate": 0.001, "start": 0.0}


def _model_fn(features, labels, mode, params):
    weight = tf1.get_variable("weight", initializer=[[float(params["start"])]])
    predictions = {"predictions": tf.matmul(features["x"], weight)}
    if mode == estimator.ModeKeys.PREDICT:
        output = estimator.export.PredictOutput(predictions)
        return estimator.EstimatorSpec(
            mode, predictions=predictions, export_outputs={"serving_default": output}
        )
    loss = tf.reduce_mean(tf.square(predictions["predictions"] - labels))
    train_op = tf1.train.GradientDescentOptimizer(params["learning_rate"]).minimize(
        loss, global_step=tf1.train.get_global_step()
    )
    return estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


class KillAt(tf1.train.SessionRunHook):
    """Kills the process at a step, once."""

    def __init__(self, step, mark):
        self._step, self._mark = step, mark

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(tf1.train.get_global_step())

    def after_run(self, run_context, run_values):
        if run_values.results >= self._step and not self._mark.exists():
            self._mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


def trainer_fn(fn_args, schema):
    values = hyperparameters(fn_args, DEFAULTS)
    config = fn_args.custom_config
    if "log" in config:
        trial = fn_args.trial.number if fn_args.trial else "final"
        with Path(config["log"]).open("a") as file:
            file.write(f"{trial} {values['learning_rate']:.6g}\n")
    if config.get("broken_above", 1e9) < values["learning_rate"]:
        raise ArithmeticError("too fast")

    def input_fn(files):
        paths = sorted(path for pattern in files for path in tf.io.gfile.glob(pattern))
        dataset = tf.data.TFRecordDataset(paths, "GZIP").repeat().batch(20)
        return dataset.map(lambda e: _split(tf.io.parse_example(e, {**FEATURES, **LABEL})))

    def eval_input_receiver_fn():
        serialized = tf1.placeholder(tf.string, [None])
        parsed = tf.io.parse_example(serialized, {**FEATURES, **LABEL})
        return estimator.export.EvalInputReceiver(
            features={"x": parsed["x"]}, receiver_tensors={"examples": serialized}, labels=parsed["y"]
        )

    exporter = estimator.BestExporter if "best" in config else estimator.FinalExporter
    hooks = []
    if "kill" in config and fn_args.trial and fn_args.trial.number == config["kill"]["trial"]:
        hooks = [KillAt(config["kill"]["step"], Path(config["kill"]["mark"]))]
    return {
        "estimator": estimator.Estimator(
            _model_fn,
            config=estimator.RunConfig(
                model_dir=fn_args.serving_model_dir, save_checkpoints_steps=10, tf_random_seed=1
            ),
            params=values,
        ),
        "train_spec": estimator.TrainSpec(
            lambda: input_fn(fn_args.train_files), max_steps=fn_args.train_steps, hooks=hooks
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: input_fn(fn_args.eval_files),
            steps=fn_args.eval_steps,
            start_delay_secs=0,
            throttle_secs=0,
            exporters=exporter(
                "serving",
                serving_input_receiver_fn=estimator.export.build_parsing_serving_input_receiver_fn(FEATURES),
            ),
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }


def _split(parsed):
    return parsed, parsed.pop("y")


def run_fn(fn_args):
    """Has no model: its loss is the distance of the learning rate from 0.1, and falls with each step."""
    values = hyperparameters(fn_args, DEFAULTS)
    if "pids" in fn_args.custom_config:
        (Path(fn_args.custom_config["pids"]) / str(os.getpid())).touch()
        time.sleep(300)
    for step in range(1, 4):
        if fn_args.trial and "silent" not in fn_args.custom_config:
            fn_args.trial.report({"loss": abs(values["learning_rate"] - 0.1) + 1 / step}, step)
