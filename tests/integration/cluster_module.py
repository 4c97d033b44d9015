"""A user module whose hook reports to the tests on each task of a cluster, and fails on request."""

import json
import os
import time
from pathlib import Path

import tensorflow as tf

import estimator_core as estimator
from tests.integration import mended_module

tf1 = tf.compat.v1
preprocessing_fn = mended_module.preprocessing_fn


def task_name():
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "the", "index": "run"})
    return f"{task['type']}-{task['index']}"


class Trace(tf1.train.SessionRunHook):
    """Appends each step of a task to its file in a folder; fails in the worker if there is a file `fail`.

    While there is a file `slow`, a step takes a while.
    """

    def __init__(self, folder):
        self._folder = Path(folder)

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(tf1.train.get_global_step())

    def after_run(self, run_context, run_values):
        with (self._folder / f"steps.{task_name()}").open("a") as file:
            file.write(f"{run_values.results}\n")
        if (self._folder / "fail").exists() and task_name() == "worker-0":
            raise ArithmeticError("the price of row 7 is missing")
        if (self._folder / "slow").exists():
            time.sleep(0.1)


def trainer_fn(args, schema):
    folder = args.custom_config["folder"]
    Path(folder, f"pid.{task_name()}.{os.getpid()}").touch()
    made = mended_module.trainer_fn(args, schema)
    config = estimator.RunConfig(
        model_dir=args.serving_model_dir,
        tf_random_seed=1,
        save_checkpoints_steps=1000,
        experimental_max_worker_delay_secs=0,
    )
    return {
        **made,
        "estimator": estimator.LinearClassifier([tf.feature_column.numeric_column("x")], config=config),
        "train_spec": made["train_spec"]._replace(hooks=[Trace(folder)]),
    }
