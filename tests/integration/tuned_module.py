"""A user module whose learning rate, units and dropout a Tuner may set. It can kill itself in a trial."""

import os
import pathlib
import signal

import tensorflow as tf
import tensorflow_transform as tft

import estimator_core as estimator
from components import hyperparameters

FEATURES = {
    "x": tf.io.FixedLenFeature([1], tf.float32, 0.0),
    "z": tf.io.FixedLenFeature([1], tf.float32, 0.0),
}
LABEL = {"y": tf.io.FixedLenFeature([1], tf.int64, 0)}
DEFAULTS = {"learning_rate": 0.0003, "units": 4, "dropout": 0.0}


def preprocessing_fn(inputs):
    def dense(column, default):
        return tf.sparse.to_dense(
            tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1]), default
        )

    return {
        "x": tft.scale_to_z_score(dense(inputs["x"], 0.0)),
        "z": tft.scale_to_z_score(dense(inputs["z"], 0.0)),
        "label": dense(inputs["y"], 0),
    }


class KillAtStep(estimator.SessionRunHook):
    """Kills the process once, at a step after the first checkpoints."""

    def __init__(self, step, mark):
        self._step, self._mark = step, mark

    def begin(self):
        self._global_step = tf.compat.v1.train.get_global_step()

    def after_run(self, run_context, run_values):
        if run_context.session.run(self._global_step) >= self._step:
            self._mark.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def trainer_fn(fn_args, schema):
    del schema
    values = hyperparameters(fn_args, DEFAULTS)
    transform = tft.TFTransformOutput(fn_args.transform_output)

    def input_fn(files, epochs, seed=None):
        examples = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(files)), "GZIP")
        if seed is not None:
            examples = examples.cache().shuffle(10_000, seed=seed)

        def parse(serialized):
            features = tf.io.parse_example(serialized, transform.transformed_feature_spec())
            return features, features.pop("label")

        return examples.repeat(epochs).batch(64).map(parse)

    def receiver(spec):
        serialized = tf.compat.v1.placeholder(tf.string, [None])
        raw = tf.io.parse_example(
            serialized, {name: tf.io.VarLenFeature(kind.dtype) for name, kind in spec.items()}
        )
        return serialized, transform.transform_raw_features(raw)

    def serving_input_receiver_fn():
        serialized, features = receiver(FEATURES)
        return estimator.export.ServingInputReceiver(features, serialized)

    def eval_input_receiver_fn():
        serialized, features = receiver(FEATURES | LABEL)
        label = features.pop("label")
        return estimator.export.EvalInputReceiver(features, {"examples": serialized}, label)

    hooks = []
    kill = fn_args.custom_config.get("kill")
    if kill and fn_args.trial and fn_args.trial.number == kill["trial"]:
        mark = pathlib.Path(kill["mark"])
        hooks = [KillAtStep(kill["step"], mark)] if mark.exists() else []
    return {
        "estimator": estimator.DNNClassifier(
            hidden_units=[values["units"]],
            feature_columns=[tf.feature_column.numeric_column(name) for name in FEATURES],
            optimizer=tf.keras.optimizers.Adam(values["learning_rate"]),
            dropout=values["dropout"] or None,
            config=estimator.RunConfig(
                model_dir=fn_args.serving_model_dir, tf_random_seed=1, save_checkpoints_steps=50
            ),
        ),
        "train_spec": estimator.TrainSpec(
            lambda: input_fn(fn_args.train_files, None, 1), max_steps=fn_args.train_steps, hooks=hooks
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: input_fn(fn_args.eval_files, 1),
            steps=None,
            start_delay_secs=0,
            throttle_secs=0,
            exporters=[estimator.FinalExporter("serving", serving_input_receiver_fn)],
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }
