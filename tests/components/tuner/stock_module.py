"""A user module for TFX's own Tuner and Trainer: as TFX's documentation has it, with KerasTuner."""

import json
from pathlib import Path

import keras_tuner
import tensorflow as tf
from tfx.components.tuner.component import TunerFnResult

from components import hyperparameters


class OneNumberTuner(keras_tuner.Tuner):
    """Searches without a model: the score of a learning rate is its distance from 0.05."""

    def run_trial(self, trial, *args, **kwargs):
        return abs(trial.hyperparameters.get("learning_rate") - 0.05)


def tuner_fn(fn_args):
    space = keras_tuner.HyperParameters()
    space.Float("learning_rate", 1e-3, 1e-1, sampling="log", default=0.01)
    space.Choice("units", [8, 16])
    objective = keras_tuner.Objective("default_objective", "min")
    oracle = keras_tuner.oracles.RandomSearchOracle(objective, max_trials=4, hyperparameters=space, seed=5)
    places = {"directory": fn_args.working_dir, "project_name": "search"}
    tuner = OneNumberTuner(oracle=oracle, hypermodel=lambda _: None, **places)
    return TunerFnResult(tuner=tuner, fit_kwargs={})


def stock_run_fn(fn_args):
    """Reads the hyperparameters as TFX's documentation does."""
    values = keras_tuner.HyperParameters.from_config(fn_args.hyperparameters)
    found = {"learning_rate": values.get("learning_rate"), "units": values.get("units")}
    _write_model(fn_args.serving_model_dir, found)


def run_fn(fn_args):
    """Reads them with our helper, in our Tuner and in our Trainer."""
    values = hyperparameters(fn_args, {"learning_rate": 0.01, "units": 8})
    if fn_args.trial:
        fn_args.trial.report({"loss": abs(values["learning_rate"] - 0.05)}, 1)
        return
    _write_model(fn_args.serving_model_dir, values)


def _write_model(directory, values):
    model = tf.Module()
    model.double = tf.function(lambda x: 2.0 * x, [tf.TensorSpec([None], tf.float32)])
    tf.saved_model.save(model, directory)
    (Path(directory) / "assets.extra").mkdir()
    (Path(directory) / "assets.extra" / "values.json").write_text(json.dumps(values))
