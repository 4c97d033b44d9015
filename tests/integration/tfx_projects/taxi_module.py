"""A module file of TFX 1.x: preprocessing_fn, trainer_fn and run_fn, with Estimators and tfma."""

import json
import os

import tensorflow as tf
import tensorflow_model_analysis as tfma
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils

LABEL = "tips"


def _dense(x, default):
    return tf.squeeze(
        tf.sparse.to_dense(tf.SparseTensor(x.indices, x.values, [x.dense_shape[0], 1]), default), axis=1
    )


def preprocessing_fn(inputs):
    fare = _dense(inputs["fare"], 0.0)
    return {
        "fare_xf": tft.scale_to_z_score(fare),
        "payment_type_xf": tft.compute_and_apply_vocabulary(
            _dense(inputs["payment_type"], ""), num_oov_buckets=1
        ),
        "tips_xf": tf.cast(_dense(inputs[LABEL], 0.0) > 0.2 * fare, tf.int64),
    }


def _raw_spec(schema):
    return schema_utils.schema_as_feature_spec(schema).feature_spec


def _serving_receiver_fn(tft_output, schema):
    spec = _raw_spec(schema)
    spec.pop(LABEL)
    raw = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)()
    return tf.estimator.export.ServingInputReceiver(
        tft_output.transform_raw_features(raw.features), raw.receiver_tensors
    )


def _eval_receiver_fn(tft_output, schema):
    serialized = tf.compat.v1.placeholder(tf.string, [None], name="input_example_tensor")
    features = tf.io.parse_example(serialized, _raw_spec(schema))
    transformed = tft_output.transform_raw_features(features)
    labels = transformed["tips_xf"]
    features.update(transformed)
    return tfma.export.EvalInputReceiver(
        features=features, receiver_tensors={"examples": serialized}, labels=labels
    )


def _input_fn(files, tft_output, batch_size=32):
    dataset = tf.data.experimental.make_batched_features_dataset(
        files,
        batch_size,
        tft_output.transformed_feature_spec().copy(),
        reader=lambda names: tf.data.TFRecordDataset(names, compression_type="GZIP"),
        shuffle_seed=7,
    )
    return dataset.map(lambda features: (features, features.pop("tips_xf")))


def _estimator(model_dir, base_model, config):
    payment = tf.feature_column.categorical_column_with_identity("payment_type_xf", 4, default_value=0)
    return tf.estimator.DNNLinearCombinedClassifier(
        config=tf.estimator.RunConfig(save_checkpoints_steps=999, keep_checkpoint_max=1).replace(
            model_dir=model_dir
        ),
        linear_feature_columns=[payment],
        dnn_feature_columns=[
            tf.feature_column.numeric_column("fare_xf"),
            tf.feature_column.indicator_column(payment),
        ],
        dnn_hidden_units=(config or {}).get("hidden_units", [8]),
        dnn_optimizer="Adam",
        warm_start_from=base_model,
    )


def _note_call(function, args):
    """Writes what the Trainer called, and with what, for the test."""
    call = {"function": function, "base_model": args.base_model, "config": args.custom_config}
    with open("calls.jsonl", "a") as file:
        print(json.dumps(call), file=file)


def trainer_fn(trainer_fn_args, schema):
    _note_call("trainer_fn", trainer_fn_args)
    tft_output = tft.TFTransformOutput(trainer_fn_args.transform_output)
    exporter = tf.estimator.FinalExporter("taxi", lambda: _serving_receiver_fn(tft_output, schema))
    return {
        "estimator": _estimator(
            trainer_fn_args.serving_model_dir, trainer_fn_args.base_model, trainer_fn_args.custom_config
        ),
        "train_spec": tf.estimator.TrainSpec(
            lambda: _input_fn(trainer_fn_args.train_files, tft_output), max_steps=trainer_fn_args.train_steps
        ),
        "eval_spec": tf.estimator.EvalSpec(
            lambda: _input_fn(trainer_fn_args.eval_files, tft_output),
            steps=trainer_fn_args.eval_steps,
            exporters=[exporter],
            name="taxi-eval",
        ),
        "eval_input_receiver_fn": lambda: _eval_receiver_fn(tft_output, schema),
    }


def run_fn(fn_args):
    _note_call("run_fn", fn_args)
    tft_output = tft.TFTransformOutput(fn_args.transform_output)
    schema = tft_output.raw_metadata.schema
    estimator = _estimator(
        os.path.join(fn_args.model_run_dir, "run_fn"), fn_args.base_model, fn_args.custom_config
    )
    estimator.train(lambda: _input_fn(fn_args.train_files, tft_output), max_steps=fn_args.train_steps)
    exported = estimator.export_saved_model(
        fn_args.serving_model_dir, lambda: _serving_receiver_fn(tft_output, schema)
    )
    tfma.export.export_eval_savedmodel(
        estimator, fn_args.eval_model_dir, lambda: _eval_receiver_fn(tft_output, schema)
    )
    print("exported", exported)
