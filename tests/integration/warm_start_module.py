"""A user module whose Estimator starts from the model that it is given."""

import tensorflow as tf
import tensorflow_transform as tft

import estimator_core as estimator

FEATURES = {"x": tf.io.FixedLenFeature([1], tf.float32, 0.0)}
LABEL = {"y": tf.io.FixedLenFeature([1], tf.int64, 0)}


def preprocessing_fn(inputs):
    def dense(column, default):
        return tf.sparse.to_dense(
            tf.SparseTensor(column.indices, column.values, [column.dense_shape[0], 1]), default
        )

    return {"x": dense(inputs["x"], 0.0), "label": dense(inputs["y"], 0)}


def trainer_fn(fn_args, schema):
    del schema
    transform = tft.TFTransformOutput(fn_args.transform_output)

    def input_fn(files, epochs):
        examples = tf.data.TFRecordDataset(tf.io.gfile.glob(files), "GZIP").repeat(epochs).batch(32)

        def parse(serialized):
            features = tf.io.parse_example(serialized, transform.transformed_feature_spec())
            return features, features.pop("label")

        return examples.map(parse)

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

    return {
        "estimator": estimator.LinearClassifier(
            feature_columns=[tf.feature_column.numeric_column("x")],
            optimizer=tf.compat.v1.train.GradientDescentOptimizer(fn_args.custom_config["learning_rate"]),
            model_dir=fn_args.serving_model_dir,
            warm_start_from=fn_args.base_model,
        ),
        "train_spec": estimator.TrainSpec(lambda: input_fn(fn_args.train_files, None), max_steps=40),
        "eval_spec": estimator.EvalSpec(
            lambda: input_fn(fn_args.eval_files, 1),
            exporters=[estimator.FinalExporter("serving", serving_input_receiver_fn)],
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }
