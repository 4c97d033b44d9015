"""A user module with TFX's classic contract: y = weight * x, fitted by gradient descent."""

import os
from pathlib import Path

import tensorflow as tf

import estimator_core as estimator
from components.interruption import interruption

tf1 = tf.compat.v1

FEATURES = {"x": tf.io.FixedLenFeature([1], tf.float32)}
LABEL = {"y": tf.io.FixedLenFeature([1], tf.float32)}


def model_fn(features, labels, mode, params):
    weight = tf1.get_variable("weight", initializer=[[float(params.get("start", 0.0))]])
    predictions = {"predictions": tf.matmul(features["x"], weight)}
    if mode == estimator.ModeKeys.PREDICT:
        output = estimator.export.PredictOutput(predictions)
        return estimator.EstimatorSpec(
            mode, predictions=predictions, export_outputs={"serving_default": output}
        )
    loss = tf.reduce_mean(tf.square(predictions["predictions"] - labels))
    optimizer = tf1.train.GradientDescentOptimizer(params.get("learning_rate", 0.1))
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


def read_files(files, batch_size):
    """Reads the rows of files again and again."""
    paths = sorted(path for pattern in files for path in tf.io.gfile.glob(pattern))
    dataset = tf.data.TFRecordDataset(paths, "GZIP").repeat().batch(batch_size)
    return dataset.map(lambda e: _split(tf.io.parse_example(e, {**FEATURES, **LABEL})))


def _split(parsed):
    return parsed, parsed.pop("y")


def eval_input_receiver_fn():
    serialized = tf1.placeholder(tf.string, [None])
    features, labels = _split(tf.io.parse_example(serialized, {**FEATURES, **LABEL}))
    return estimator.export.EvalInputReceiver(
        features=features, receiver_tensors={"examples": serialized}, labels=labels
    )


serving_input_receiver_fn = estimator.export.build_parsing_serving_input_receiver_fn(FEATURES)


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
    record = args.custom_config.get("record")
    hooks = [RecordSteps(Path(record))] if record else []
    config = estimator.RunConfig(args.serving_model_dir, save_checkpoints_steps=25)
    return {
        "estimator": estimator.Estimator(
            model_fn, config=config, params={}, warm_start_from=args.warm_start_from
        ),
        "train_spec": estimator.TrainSpec(
            lambda: read_files(args.train_files, 8), max_steps=args.train_steps, hooks=hooks
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: read_files(args.eval_files, 8),
            steps=args.eval_steps,
            start_delay_secs=0 if "no_delay" in args.custom_config else 120,
            exporters=estimator.FinalExporter("serving", serving_input_receiver_fn),
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
    names = ("train_steps", "eval_steps", "base_model", "hyperparameters", "custom_config")
    told = {name: getattr(fn_args, name) for name in names}
    Path(os.path.join(fn_args.model_run_dir, "told.txt")).write_text(repr(told))
