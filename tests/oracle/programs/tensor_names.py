"""Tensors of canned models by the names that programs log: their values, in each mode."""

import os

import tensorflow as tf

from tests.oracle.programs.program import Scenario

tf1 = tf.compat.v1
LOSSES = tf1.losses.Reduction
X = tf.feature_column.numeric_column("x")
FEATURES = {"x": [[1.0], [2.0], [4.0]], "weight": [[1.0], [3.0], [0.5]]}
INTEGERS, WORDS = [[1], [0], [1]], [["b"], ["a"], ["b"]]
CASES = {
    "Classifier": {
        "binary": ({}, INTEGERS),
        "weighted": ({"weight_column": "weight"}, INTEGERS),
        "mean": ({"loss_reduction": LOSSES.SUM_OVER_BATCH_SIZE}, INTEGERS),
        "words": ({"label_vocabulary": ["a", "b"]}, WORDS),
        "classes": ({"n_classes": 3}, [[1], [2], [0]]),
        "classes of words": ({"n_classes": 3, "label_vocabulary": ["a", "b", "c"]}, WORDS),
    },
    "Regressor": {
        "one": ({}, [[1.0], [0.5], [3.0]]),
        "two": ({"label_dimension": 2}, [[1.0, 2.0], [0.5, 0.0], [3.0, 1.0]]),
        "mean": ({"loss_reduction": LOSSES.MEAN}, [[1.0], [0.5], [3.0]]),
    },
}
FAMILIES = {
    "Linear": {"feature_columns": [X]},
    "DNN": {"feature_columns": [X], "hidden_units": [2]},
    "DNNLinearCombined": {"linear_feature_columns": [X], "dnn_feature_columns": [X], "dnn_hidden_units": [2]},
    "Baseline": {},
}
SCOPES = {"Linear": "linear/", "DNN": "dnn/"}
LOGITS = {
    "Linear": "linear/linear_model/linear_model/linear_model/weighted_sum",
    "DNN": "dnn/logits/BiasAdd",
    "DNNLinearCombined": "add",
    "Baseline": "baseline/Mul",
}


def _names(family, kind, case, mode):
    """Returns the names that the reference gives to logits, loss and predictions."""
    head = SCOPES.get(family, "") + "head/"
    names = [LOGITS[family]]
    if kind == "Classifier":
        is_binary = not case.startswith("classes")
        classes = "hash_table_Lookup/LookupTableFindV2" if "words" in case else "str_classes"
        predictions = ["probabilities", "class_ids", classes, "Tile", "Tile_1"]
        predictions += ["logistic", "ExpandDims"] if is_binary else ["ExpandDims_2"]
        names += [f"{head}predictions/{name}" for name in predictions]
    if mode != "infer":
        names += [f"{head}weighted_loss/Sum", *([f"{head}weighted_loss/value"] if case == "mean" else [])]
    if mode == "train" and case != "mean":
        names.append(f"{head}truediv")
    return names


def _plain(value):
    """Returns an array as lists, with text for bytes."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def _values(estimator, labels, mode, names):
    """Returns the values of named tensors, with 0.25 in all weights."""
    with tf.Graph().as_default():
        tf1.train.create_global_step()
        features = {name: tf.constant(value) for name, value in FEATURES.items()}
        labels = None if mode == "infer" else tf.constant(labels)
        estimator.model_fn(features, labels, mode, estimator.config)
        with tf1.Session() as session:
            session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            session.run([each.assign(each * 0 + 0.25) for each in tf1.trainable_variables()])
            values = session.run({name: f"{name}:0" for name in names})
    return {name: _plain(value.tolist()) for name, value in values.items()}


def _run(e, model_dir):
    seen = {}
    for family, columns in FAMILIES.items():
        for kind, cases in CASES.items():
            for case, (arguments, labels) in cases.items():
                if family != "Linear" and case not in ("binary", "classes", "one"):
                    continue  # the heads are the same
                folder = os.path.join(model_dir, family, kind, case)
                make = getattr(e, family + kind)
                estimator = make(model_dir=folder, **columns, **arguments)
                for mode in ("train", "eval", "infer"):
                    names = _names(family, kind, case, mode)
                    seen[f"{family}{kind} {case} {mode}"] = _values(estimator, labels, mode, names)
    return seen


SCENARIOS = {"canned_tensor_names": Scenario(_run, v1=True)}
