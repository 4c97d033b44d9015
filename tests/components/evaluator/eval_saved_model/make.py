"""Writes model.tar.xz, with an EvalSavedModel, and metrics.json, with its metrics by the TFMA of that time.

    python3.10 -m venv reference
    reference/bin/pip install tensorflow==2.15.1 tensorflow-model-analysis==0.46.0 apache-beam==2.56.0 dill
    reference/bin/python tests/components/evaluator/eval_saved_model/make.py

The archive holds the folder of a Model artifact: `Format-TFMA/<timestamp>` and `Format-Serving`.
"""

import json
import shutil
import tempfile
from pathlib import Path

import tensorflow as tf
import tensorflow_model_analysis as tfma

tf1 = tf.compat.v1
HERE = Path(__file__).parent
CITIES = ("Oslo", "Rome", "Lima")
ROWS = [
    {
        "x": (37 * i % 101) / 50 - 1,
        "city": CITIES[i % 3],
        "hour": 7 + i % 2,
        "weight": 1.0 + i % 4,
        "label": int(37 * i % 101 + 53 * i % 67 > 80),
    }
    for i in range(48)
]
SPEC = {
    "x": tf.io.FixedLenFeature([], tf.float32),
    "city": tf.io.FixedLenFeature([], tf.string),
    "hour": tf.io.FixedLenFeature([], tf.int64),
    "weight": tf.io.FixedLenFeature([], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def model_fn(features, labels, mode):
    """Logistic regression on x and the city."""
    cities = tf.cast(tf.equal(features["city"][:, tf.newaxis], CITIES), tf.float32)
    inputs = tf.concat([features["x"][:, tf.newaxis], cities], axis=1)
    kernel = tf1.get_variable("kernel", [4, 1], initializer=tf1.zeros_initializer())
    logits = tf.matmul(inputs, kernel)
    logistic = tf.sigmoid(logits)
    predictions = {"logistic": logistic, "probabilities": tf.concat([1 - logistic, logistic], 1)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        output = tf.estimator.export.PredictOutput(predictions)
        return tf.estimator.EstimatorSpec(mode, predictions, export_outputs={"serving_default": output})
    labels = tf.cast(labels[:, tf.newaxis], tf.float32)
    weights = features["weight"][:, tf.newaxis]
    loss = tf1.losses.sigmoid_cross_entropy(labels, logits, weights)
    classes = tf.cast(logistic > 0.5, tf.float32)
    return tf.estimator.EstimatorSpec(
        mode,
        predictions,
        loss,
        tf1.train.AdamOptimizer(0.1).minimize(loss, tf1.train.get_global_step()),
        eval_metric_ops={"accuracy": tf1.metrics.accuracy(labels, classes, weights)},
    )


def mean_error(features, predictions):
    """A metric that the team added to the Estimator."""
    error = tf.abs(tf.cast(features["label"], tf.float32)[:, tf.newaxis] - predictions["logistic"])
    return {"error/mean": tf1.metrics.mean(error)}


def input_fn():
    """All rows in one batch, again and again."""
    features = {name: tf.constant([row[name] for row in ROWS]) for name in SPEC}
    return tf.data.Dataset.from_tensors((features, features["label"])).repeat()


def eval_input_receiver_fn():
    """Serialized tf.Examples."""
    serialized = tf1.placeholder(tf.string, [None], name="input_example_tensor")
    features = tf.io.parse_example(serialized, SPEC)
    return tfma.export.EvalInputReceiver(
        features=features, labels=features["label"], receiver_tensors={"examples": serialized}
    )


def write_model(folder):
    """Trains and exports the models of a Model artifact."""
    estimator = tf.estimator.Estimator(model_fn, str(folder / "run"))
    estimator = tf.estimator.add_metrics(estimator, mean_error)
    estimator.train(input_fn, steps=20)
    tfma.export.export_eval_savedmodel(
        estimator=estimator,
        export_dir_base=str(folder / "model" / "Format-TFMA"),
        eval_input_receiver_fn=eval_input_receiver_fn,
    )
    parsing = {name: SPEC[name] for name in ("x", "city")}
    served = estimator.export_saved_model(
        str(folder / "served"), tf.estimator.export.build_parsing_serving_input_receiver_fn(parsing)
    )
    shutil.move(served.decode(), folder / "model" / "Format-Serving")
    shutil.make_archive(str(HERE / "model"), "xztar", folder / "model")


def feature(value):
    """Returns a value as a feature of a tf.Example."""
    if isinstance(value, str):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def write_metrics(folder):
    """Evaluates the model with TFMA, by slice."""
    data = str(folder / "data.tfrecord")
    with tf.io.TFRecordWriter(data) as writer:
        for row in ROWS:
            features = {name: feature(value) for name, value in row.items()}
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    config = tfma.EvalConfig(
        model_specs=[tfma.ModelSpec(signature_name="eval", label_key="label", example_weight_key="weight")],
        slicing_specs=[
            tfma.SlicingSpec(),
            tfma.SlicingSpec(feature_keys=["city"]),
            tfma.SlicingSpec(feature_keys=["city", "hour"]),
            tfma.SlicingSpec(feature_values={"hour": "8"}),
        ],
        metrics_specs=[
            tfma.MetricsSpec(
                metrics=[
                    tfma.MetricConfig(class_name=name)
                    for name in ("ExampleCount", "AUC", "BinaryAccuracy", "MeanPrediction")
                ]
            )
        ],
    )
    (model,) = (folder / "model" / "Format-TFMA").iterdir()
    result = tfma.run_model_analysis(
        tfma.default_eval_shared_model(str(model), eval_config=config, tags=["eval"]),
        config,
        data_location=data,
        output_path=str(folder / "result"),
    )
    metrics = {}
    for slice_key, by_output in result.slicing_metrics:
        columns = "_X_".join(name for name, _ in slice_key)
        name = f"{columns}:{'_X_'.join(str(value) for _, value in slice_key)}" if slice_key else "Overall"
        values = by_output[""][""]
        metrics[name] = {
            key: values[key]["doubleValue"]
            for key in sorted(values)
            if not key.startswith("post_export_metrics/")  # counts that TFMA added by itself
        }
    path = HERE / "metrics.json"
    path.write_text(json.dumps({"rows": ROWS, "metrics": metrics}, indent=1, sort_keys=True) + "\n")


with tempfile.TemporaryDirectory() as name:
    write_model(Path(name))
    write_metrics(Path(name))
