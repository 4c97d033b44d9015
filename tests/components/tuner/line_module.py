"""A user module: y = weight * x, by gradient descent with a learning rate that a Tuner may set."""

import os
import signal
import time
from pathlib import Path

import tensorflow as tf

import estimator_core as estimator
from components import hyperparameters
from tests.components.trainer.estimator_module import (
    eval_input_receiver_fn,
    model_fn,
    read_files,
    serving_input_receiver_fn,
)

tf1 = tf.compat.v1

DEFAULTS = {"learning_rate": 0.001, "start": 0.0}


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

    exporter = estimator.BestExporter if "best" in config else estimator.FinalExporter
    hooks = []
    if "kill" in config and fn_args.trial and fn_args.trial.number == config["kill"]["trial"]:
        hooks = [KillAt(config["kill"]["step"], Path(config["kill"]["mark"]))]
    run_config = estimator.RunConfig(fn_args.serving_model_dir, tf_random_seed=1, save_checkpoints_steps=10)
    return {
        "estimator": estimator.Estimator(model_fn, config=run_config, params=values),
        "train_spec": estimator.TrainSpec(
            lambda: read_files(fn_args.train_files, 20), max_steps=fn_args.train_steps, hooks=hooks
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: read_files(fn_args.eval_files, 20),
            steps=fn_args.eval_steps,
            start_delay_secs=0,
            throttle_secs=0,
            exporters=exporter("serving", serving_input_receiver_fn=serving_input_receiver_fn),
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }


def run_fn(fn_args):
    """Has no model: its loss is the distance of the learning rate from 0.1, and falls with each step."""
    values = hyperparameters(fn_args, DEFAULTS)
    if "pids" in fn_args.custom_config:
        (Path(fn_args.custom_config["pids"]) / str(os.getpid())).touch()
        time.sleep(300)
    for step in range(1, 4):
        if fn_args.trial and "silent" not in fn_args.custom_config:
            fn_args.trial.report({"loss": abs(values["learning_rate"] - 0.1) + 1 / step}, step)
