"""A user module as TFX's taxi example lays it out: preprocessing_fn derives the label, and trainer_fn."""

import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform.tf_metadata import schema_utils
from tfx_bsl.tfxio import dataset_options

import estimator_core as estimator

tf1 = tf.compat.v1

NUMERIC, VOCABULARY, LABEL = "fare", "payment_type", "tips"


def _dense(x, default):
    column = tf.SparseTensor(x.indices, x.values, [x.dense_shape[0], 1])
    return tf.squeeze(tf.sparse.to_dense(column, default), axis=1)


def preprocessing_fn(inputs):
    fare = _dense(inputs[NUMERIC], 0.0)
    return {
        "fare_xf": tft.scale_to_z_score(fare),
        "payment_type_xf": tft.compute_and_apply_vocabulary(
            _dense(inputs[VOCABULARY], ""), num_oov_buckets=1
        ),
        "tips_xf": tf.cast(_dense(inputs[LABEL], 0.0) > 0.2 * fare, tf.int64),
    }


def trainer_fn(trainer_fn_args, schema):
    args = trainer_fn_args
    transform = tft.TFTransformOutput(args.transform_output)

    def input_fn(files):
        return args.data_accessor.tf_dataset_factory(
            files,
            dataset_options.TensorFlowDatasetOptions(batch_size=32, label_key="tips_xf"),
            transform.transformed_metadata.schema,
        )

    def raw_spec():
        return schema_utils.schema_as_feature_spec(schema).feature_spec

    def serving_input_receiver_fn():
        spec = raw_spec()
        spec.pop(LABEL)
        raw = estimator.export.build_parsing_serving_input_receiver_fn(spec)()
        features = transform.transform_raw_features(raw.features)
        return estimator.export.ServingInputReceiver(features, raw.receiver_tensors)

    def eval_input_receiver_fn():
        serialized = tf1.placeholder(tf.string, [None], name="input_example_tensor")
        features = tf.io.parse_example(serialized, raw_spec())
        transformed = transform.transform_raw_features(features)
        features.update(transformed)
        return estimator.export.EvalInputReceiver(
            features=features, receiver_tensors={"examples": serialized}, labels=transformed["tips_xf"]
        )

    config = estimator.RunConfig(save_checkpoints_steps=999, keep_checkpoint_max=1, tf_random_seed=1)
    return {
        "estimator": estimator.DNNLinearCombinedClassifier(
            config=config.replace(model_dir=args.serving_model_dir),
            linear_feature_columns=[
                tf.feature_column.categorical_column_with_identity(
                    "payment_type_xf", num_buckets=4, default_value=0
                )
            ],
            dnn_feature_columns=[tf.feature_column.numeric_column("fare_xf")],
            dnn_hidden_units=[8],
            warm_start_from=args.base_model,
        ),
        "train_spec": estimator.TrainSpec(lambda: input_fn(args.train_files), max_steps=args.train_steps),
        "eval_spec": estimator.EvalSpec(
            lambda: input_fn(args.eval_files),
            steps=args.eval_steps,
            exporters=[estimator.FinalExporter("chicago-taxi", serving_input_receiver_fn)],
            name="chicago-taxi-eval",
        ),
        "eval_input_receiver_fn": eval_input_receiver_fn,
    }


def run_fn(fn_args):
    """Saves a model that expects a tip from those who pay by card, with nothing to train."""
    assert all(tf.io.gfile.glob(pattern) for pattern in fn_args.train_files)
    transform = tft.TFTransformOutput(fn_args.transform_output)
    module = tf.Module()
    module.transform = transform.transform_features_layer()
    examples = tf.TensorSpec([None], tf.string, name="examples")

    @tf.function(input_signature=[examples])
    def serve(examples):
        spec = {"payment_type": tf.io.FixedLenFeature([], tf.string, "")}
        payment_type = tf.io.parse_example(examples, spec)["payment_type"]
        return {"outputs": tf.where(payment_type == "Credit Card", 0.9, 0.1)[:, tf.newaxis]}

    @tf.function(input_signature=[examples])
    def transform_features(examples):
        return module.transform(tf.io.parse_example(examples, transform.raw_feature_spec()))

    signatures = {"serving_default": serve, "transform_features": transform_features}
    tf.saved_model.save(module, fn_args.serving_model_dir, signatures=signatures)
