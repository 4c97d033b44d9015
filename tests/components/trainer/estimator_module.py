"""A user module with TFX's classic contract: y = weight * x, fitted by gradient descent."""

import os
from pathlib import Path

import tensorflow as tf

import estimator_core as estimator
from components.interruption import interruption

tf1 = tf.compat.v1

FEATURES = {"x": tf.io.FixedLenFeature([1], tf.float32)}
LABEL = {"y": tf.io.FixedLenFeature([1], tf.float32)}


def model_fn(features, labels, mode):
    weight = tf1.get_variable("weight", initializer=[[0.0]])
    predictions = {"predictions": tf.matmul(features["x"], weight)}
    if mode == estimator.ModeKeys.PREDICT:
        output = estimator.export.PredictOutput(predictions)
        return estimator.EstimatorSpec(
            mode, predictions=predictions, export_outputs={"serving_default": output}
        )
    loss = tf.reduce_mean(tf.square(predictions["predictions"] - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


class RecordSteps(tf1.train.SessionRunHook):
    """Appends each step to a file, and dies at step 60 while a file `die` lies next to it.

    With a file `signal` there, a signal comes then, whose exception is dropped.
    """

    def __init__(self, path):
        self._path = path

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(tf1.train.get_global_step())

    def after_run(self, run_context, run_values):
        with self._path.open("a") as file:
            file.write(f"{run_values.results}\n")
        if run_values.results >= 60 and (self._path.parent / "die").exists():
            raise KeyboardInterrupt
        if run_values.results >= 60 and (self._path.parent / "signal").exists():
            interruption.reason = "SIGTERM"


def trainer_fn(trainer_fn_args, schema):
    assert {feature.name for feature in schema.feature} == {"x", "y"}
    args = trainer_fn_args

    def input_fn(files):
        paths = [path for pattern in files for path in tf.io.gfile.glob(pattern)]
        dataset = tf.data.TFRecordDataset(paths, "GZIP").repeat().batch(8)
        return dataset.map(lambda e: split(tf.io.parse_example(e, {**FEATURES, **LABEL})))

    def split(parsed):
        return parsed, parsed.pop("y")

    def eval_input_receiver_fn():
        serialized = tf1.placeholder(tf.string, [None])
        parsed = tf.io.parse_example(serialized, {**FEATURES, **LABEL})
        return estimator.export.EvalInputReceiver(
            features={"x": parsed["x"]}, receiver_tensors={"examples": serialized}, labels=parsed["y"]
        )

    hooks = []
    if "record" in args.custom_config:
        hooks = [RecordSteps(Path(args.custom_config["record"]))]
    config = estimator.RunConfig(save_checkpoints_steps=25)
    return {
        "estimator": estimator.Estimator(
            model_fn,
            config=config.replace(model_dir=args.serving_model_dir),
            warm_start_from=args.warm_start_from,
        ),
        "train_spec": estimator.TrainSpec(
            lambda: input_fn(args.train_files), max_steps=args.train_steps, hooks=hooks
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: input_fn(args.eval_files),
            steps=args.eval_steps,
            start_delay_secs=0 if "no_delay" in args.custom_config else 120,
            exporters=estimator.FinalExporter(
                "serving", estimator.export.build_parsing_serving_input_receiver_fn(FEATURES)
            ),
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }


def run_fn(fn_args):
    """The generic contract: writes a SavedModel by itself, and a text of its arguments."""
    model = tf.Module()
    model.fn_args = None

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def double(x):
        return 2.0 * x

    model.double = double
    tf.saved_model.save(model, fn_args.serving_model_dir)
    told = {
        "train_steps": fn_args.train_steps,
        "eval_steps": fn_args.eval_steps,
        "base_model": fn_args.base_model,
        "hyperparameters": fn_args.hyperparameters,
        "custom_config": fn_args.custom_config,
    }
    Path(os.path.join(fn_args.model_run_dir, "told.txt")).write_text(repr(told))
