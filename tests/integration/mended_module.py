"""A user module that trains well; the test breaks the steps after the training, and mends them."""

import tensorflow as tf
import tensorflow_transform as tft

import estimator_core as estimator

SPEC = {"x": tf.io.VarLenFeature(tf.float32), "y": tf.io.VarLenFeature(tf.int64)}


def dense(column, default):
    column = tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1])
    return tf.squeeze(tf.sparse.to_dense(column, default), axis=1)


def preprocessing_fn(inputs):
    return {"x": dense(inputs["x"], 0.0), "label": dense(inputs["y"], 0)}


class CountSteps(tf.compat.v1.train.SessionRunHook):
    """Appends each step to a file."""

    def __init__(self, path):
        self._path = path

    def before_run(self, run_context):
        return tf.compat.v1.train.SessionRunArgs(tf.compat.v1.train.get_global_step())

    def after_run(self, run_context, run_values):
        with open(self._path, "a") as file:
            file.write(f"{run_values.results}\n")


def receiver(transform, spec):
    serialized = tf.compat.v1.placeholder(tf.string, [None])
    return serialized, transform.transform_raw_features(tf.io.parse_example(serialized, spec))


def serving_input_receiver_fn(transform):
    serialized, features = receiver(transform, {"x": SPEC["x"]})
    return estimator.export.ServingInputReceiver({"x": features["x"]}, {"examples": serialized})


def eval_input_receiver_fn(transform):
    serialized, features = receiver(transform, SPEC)
    labels = features.pop("label")
    return estimator.export.EvalInputReceiver(features, {"examples": serialized}, labels)


def trainer_fn(args, schema):
    transform = tft.TFTransformOutput(args.transform_output)

    def input_fn(files):
        return tf.data.TFRecordDataset(tf.io.gfile.glob(files), "GZIP").repeat().batch(8).map(split)

    def split(serialized):
        features = tf.io.parse_example(serialized, transform.transformed_feature_spec())
        return features, features.pop("label")

    return {
        "estimator": estimator.LinearClassifier(
            [tf.feature_column.numeric_column("x")],
            config=estimator.RunConfig(model_dir=args.serving_model_dir, tf_random_seed=1),
        ),
        "train_spec": estimator.TrainSpec(
            lambda: input_fn(args.train_files),
            max_steps=args.train_steps,
            hooks=[CountSteps(args.custom_config["steps"])],
        ),
        "eval_spec": estimator.EvalSpec(
            lambda: input_fn(args.eval_files),
            steps=2,
            exporters=[estimator.FinalExporter("serving", lambda: serving_input_receiver_fn(transform))],
        ),
        "eval_input_receiver_fn": lambda: eval_input_receiver_fn(transform),
    }


def plot(history):
    """Nothing of the pipeline uses this."""
    print(history)
