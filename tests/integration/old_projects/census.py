"""Predicts an income above 50K: a linear model, a deep one, and both joined, over census data."""

import argparse
import csv
import json
import os
import random
import shutil
import sys
import zlib

import numpy as np
import tensorflow as tf

_CSV_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "occupation",
    "hours_per_week",
    "income",
]
_CSV_COLUMN_DEFAULTS = [[0], [""], [0.0], [""], [0.0], [""], [0.0], [""]]
_WORKCLASSES = ["Private", "Self-emp", "Federal-gov", "Never-worked"]
_EDUCATIONS = ["HS-grad", "Bachelors", "Masters", "Doctorate", "11th"]
_OCCUPATIONS = ["Tech-support", "Sales", "Craft-repair", "Farming-fishing", "Armed-Forces", "?"]
_ROWS = {"train": 80, "eval": 40}

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", default="census_model")
parser.add_argument("--data_dir", default="census_data")
parser.add_argument("--models", default="wide_1,wide_deep_2")
parser.add_argument("--train_epochs", type=int, default=4)
parser.add_argument("--epochs_per_eval", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=20)


def write_census(path, rows, seed):
    rng = random.Random(seed)
    with open(path, "w", newline="") as output:
        writer = csv.writer(output)
        for _ in range(rows):
            age, number = rng.randint(17, 80), rng.randint(0, 4)
            hours = rng.randint(10, 60)
            rich = age / 20 + number + hours / 30 + rng.uniform(-2, 2) > 6
            row = [age, rng.choice(_WORKCLASSES), rng.randint(1, 40) / 10, _EDUCATIONS[number], number + 8]
            row += [rng.choice(_OCCUPATIONS), hours, ">50K" if rich else "<=50K"]
            writer.writerow(row)


def build_model_columns():
    """Builds a set of wide and deep feature columns."""
    age = tf.feature_column.numeric_column("age")
    education_num = tf.feature_column.numeric_column(
        "education_num", normalizer_fn=lambda number: (number - 10.0) / 3.0
    )
    hours_per_week = tf.feature_column.numeric_column("hours_per_week", normalizer_fn=lambda x: x / 40.0)
    education = tf.feature_column.categorical_column_with_vocabulary_list(
        "education", _EDUCATIONS[:-1], num_oov_buckets=1
    )
    workclass = tf.feature_column.categorical_column_with_vocabulary_list(
        "workclass", _WORKCLASSES, default_value=0
    )
    occupation = tf.feature_column.categorical_column_with_hash_bucket("occupation", hash_bucket_size=12)
    age_buckets = tf.feature_column.bucketized_column(age, boundaries=[25, 35, 45, 55, 65])

    base_columns = [education, workclass, occupation, age_buckets]
    crossed_columns = [
        tf.feature_column.crossed_column(["education", "occupation"], hash_bucket_size=30),
        tf.feature_column.crossed_column([age_buckets, "education", "occupation"], hash_bucket_size=50),
    ]
    deep_columns = [
        education_num,
        hours_per_week,
        tf.feature_column.indicator_column(workclass),
        tf.feature_column.indicator_column(education),
        tf.feature_column.embedding_column(
            occupation, dimension=3, initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=4)
        ),
        tf.feature_column.embedding_column(
            tf.feature_column.crossed_column(["workclass", age_buckets], 20),
            dimension=2,
            combiner="sqrtn",
            initializer=tf.constant_initializer(0.1),
        ),
    ]
    return base_columns + crossed_columns, deep_columns


class PretrainedWeights(tf.estimator.SessionRunHook):
    """Starts a new training from weights that depend on nothing but the variables' names."""

    def begin(self):
        self._variables = tf.compat.v1.trainable_variables()

    def after_create_session(self, session, coord):
        if session.run(tf.compat.v1.train.get_global_step()) > 0:
            return
        for variable in self._variables:
            if "hiddenlayer" in variable.name or "logits" in variable.name:
                rng = np.random.RandomState(zlib.crc32(variable.op.name.encode()) % 2**31)
                variable.load(rng.uniform(-0.3, 0.3, variable.shape.as_list()), session)


def build_estimator(model_dir, model_type, version):
    """Builds an estimator appropriate for the given model type, of TensorFlow 1 or 2."""
    wide_columns, deep_columns = build_model_columns()
    hidden_units = [8, 4]
    run_config = tf.estimator.RunConfig(
        session_config=tf.compat.v1.ConfigProto(device_count={"GPU": 0}),
        tf_random_seed=3,
        save_summary_steps=5,
        keep_checkpoint_max=3,
    )
    common = {"model_dir": model_dir, "config": run_config, "weight_column": "fnlwgt"}
    common["label_vocabulary"] = ["<=50K", ">50K"]
    if version == 1:
        sparse_ftrl = tf.compat.v1.train.FtrlOptimizer(0.05, l1_regularization_strength=0.01)
        ftrl = tf.compat.v1.train.FtrlOptimizer(learning_rate=0.05)
        adagrad = tf.compat.v1.train.AdagradOptimizer(learning_rate=0.02)
    else:
        sparse_ftrl, ftrl, adagrad = "Ftrl", "Ftrl", "Adagrad"
    names = tf.compat.v1.estimator if version == 1 else tf.estimator
    if model_type == "wide":
        return names.LinearClassifier(feature_columns=wide_columns, optimizer=sparse_ftrl, **common)
    if model_type == "deep":
        return names.DNNClassifier(
            feature_columns=deep_columns,
            hidden_units=hidden_units,
            optimizer=adagrad,
            activation_fn=tf.nn.tanh,
            **common,
        )
    return names.DNNLinearCombinedClassifier(
        linear_feature_columns=wide_columns,
        linear_optimizer=ftrl,
        dnn_feature_columns=deep_columns,
        dnn_hidden_units=hidden_units,
        dnn_optimizer=adagrad,
        dnn_activation_fn=tf.nn.tanh,
        **common,
    )


def input_fn(data_file, num_epochs, shuffle, batch_size, with_labels=True):
    """Generates an input function for the Estimator."""

    def parse_csv(value):
        columns = tf.io.decode_csv(value, record_defaults=_CSV_COLUMN_DEFAULTS)
        features = dict(zip(_CSV_COLUMNS, columns, strict=True))
        labels = features.pop("income")
        return (features, labels) if with_labels else features

    dataset = tf.data.TextLineDataset(data_file)
    if shuffle:
        dataset = dataset.shuffle(buffer_size=_ROWS["train"], seed=5)
    return dataset.map(parse_csv, num_parallel_calls=2).repeat(num_epochs).batch(batch_size)


def export_model(model, model_type, export_dir):
    wide_columns, deep_columns = build_model_columns()
    columns = {"wide": wide_columns, "deep": deep_columns, "wide_deep": wide_columns + deep_columns}[
        model_type
    ]
    feature_spec = tf.feature_column.make_parse_example_spec(columns)
    example_input_fn = tf.estimator.export.build_parsing_serving_input_receiver_fn(feature_spec)
    path = model.export_saved_model(export_dir, example_input_fn)
    return {name: str(spec.dtype.name) for name, spec in sorted(feature_spec.items())}, path


def serve(path):
    """Classifies one person by the exported model."""
    loaded = tf.saved_model.load(path)

    def feature(value):
        if isinstance(value, str):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))

    person = {"age": 40.0, "workclass": "Private", "education": "Masters", "education_num": 12.0}
    person |= {"occupation": "Sales", "hours_per_week": 45.0}
    features = tf.train.Features(feature={name: feature(value) for name, value in person.items()})
    serialized = tf.train.Example(features=features).SerializeToString()
    outputs = loaded.signatures["serving_default"](tf.constant([serialized]))
    return {name: plain(value.numpy()) for name, value in sorted(outputs.items())}


def plain(value):
    value = np.asarray(value)
    return value.astype(str).tolist() if value.dtype.kind in "OS" else value.tolist()


def floats(metrics):
    return {name: float(value) for name, value in sorted(metrics.items())}


def epochs(args, train_file, test_file, model_type, version):
    """Trains and evaluates every `epochs_per_eval` epochs, then predicts and exports."""
    model_dir = os.path.join(args.model_dir, f"{model_type}_{version}")
    shutil.rmtree(model_dir, ignore_errors=True)
    model = build_estimator(model_dir, model_type, version)
    results = []
    for _ in range(args.train_epochs // args.epochs_per_eval):
        model.train(
            lambda: input_fn(train_file, args.epochs_per_eval, True, args.batch_size),
            hooks=[PretrainedWeights()],
        )
        results.append(floats(model.evaluate(lambda: input_fn(test_file, 1, False, args.batch_size))))
    people = model.predict(lambda: input_fn(test_file, 1, False, 7, with_labels=False))
    spec, path = export_model(model, model_type, os.path.join("exported", f"{model_type}_{version}"))
    return {
        "results": results,
        "predictions": [
            {name: plain(value) for name, value in sorted(person.items())} for person in list(people)[:9]
        ],
        "variables": model.get_variable_names(),
        "spec": spec,
        "served": serve(path),
    }


def with_exporters(args, train_file, test_file):
    """The same by train_and_evaluate, which keeps the best model and the last."""
    model = build_estimator(os.path.join(args.model_dir, "exporters"), "wide_deep", 1)
    model = tf.compat.v1.estimator.add_metrics(
        model, lambda labels, predictions: {"mean_p": tf.compat.v1.metrics.mean(predictions["logistic"])}
    )
    wide_columns, deep_columns = build_model_columns()
    spec = tf.feature_column.make_parse_example_spec(wide_columns + deep_columns)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    train_spec = tf.estimator.TrainSpec(
        lambda: input_fn(train_file, None, True, args.batch_size), max_steps=9, hooks=[PretrainedWeights()]
    )
    eval_spec = tf.estimator.EvalSpec(
        lambda: input_fn(test_file, 1, False, args.batch_size),
        steps=None,
        name="held_out",
        exporters=[
            tf.estimator.BestExporter("best", receiver, exports_to_keep=2),
            tf.estimator.FinalExporter("final", receiver, assets_extra={"columns.txt": "columns.txt"}),
        ],
        start_delay_secs=0,
        throttle_secs=0,
    )
    with open("columns.txt", "w") as output:
        output.write("\n".join(_CSV_COLUMNS))
    result, exports = tf.estimator.train_and_evaluate(model, train_spec, eval_spec)
    return {"result": floats(result), "exports": [type(path).__name__ for path in exports]}


def main():
    args = parser.parse_args()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    os.makedirs(args.data_dir)
    train_file, test_file = (os.path.join(args.data_dir, f"adult.{name}") for name in ("data", "test"))
    write_census(train_file, _ROWS["train"], seed=1)
    write_census(test_file, _ROWS["eval"], seed=2)
    results = {
        name: epochs(args, train_file, test_file, name[:-2], version=int(name[-1]))
        for name in args.models.split(",")
    }
    results["exporters"] = with_exporters(args, train_file, test_file)
    print(json.dumps(results))


if __name__ == "__main__":
    sys.exit(main())
