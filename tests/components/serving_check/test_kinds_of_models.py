"""The outputs of canned models of all kinds, beside their predictions in the evaluation model."""

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as estimator
from components.serving_check.clean_process import ask_model, load
from components.serving_check.comparison import compare
from components.serving_check.executor import judged_predictions
from components.serving_check.rows import Rows

from ..conftest import example  # noqa: TID252

X = tf.feature_column.numeric_column
NUMBER, ID, WORD = (tf.io.FixedLenFeature([1], kind) for kind in (tf.float32, tf.int64, tf.string))
WORDS = ["high", "low", "mid"]


def two_heads(model_dir):
    head = estimator.MultiHead([estimator.BinaryClassHead(name="is"), estimator.RegressionHead(name="much")])

    def model_fn(features, labels, mode):
        value = tf.compat.v1.get_variable("w", initializer=0.7) * features["x"]
        return head.create_estimator_spec(
            features, mode, {"is": value, "much": 2 * value}, labels, train_op_fn=_one_step
        )

    return estimator.Estimator(model_fn, model_dir)


def own_names(model_dir):
    def model_fn(features, labels, mode):
        value = tf.compat.v1.get_variable("w", initializer=0.7) * features["x"]
        return estimator.EstimatorSpec(
            mode,
            predictions={"price": value},
            loss=tf.reduce_mean(value) if mode != "infer" else None,
            train_op=_one_step(value),
            export_outputs={
                "serving_default": estimator.export.PredictOutput({"cost": value, "tax": 0.2 * value})
            },
        )

    return estimator.Estimator(model_fn, model_dir)


def _one_step(loss):
    return tf.compat.v1.assign_add(tf.compat.v1.train.get_global_step(), 1)


KINDS = {
    "binary": (lambda d: estimator.LinearClassifier([X("x")], model_dir=d), {"y": ID}),
    "classes": (
        lambda d: estimator.DNNClassifier([4], [X("x")], n_classes=3, model_dir=d), {"y": ID},
    ),
    "words": (
        lambda d: estimator.LinearClassifier(
            [X("x")], n_classes=3, label_vocabulary=WORDS, model_dir=d
        ),
        {"y": WORD},
    ),
    "regression": (
        lambda d: estimator.DNNLinearCombinedRegressor(
            linear_feature_columns=[X("x")], dnn_feature_columns=[X("x")], dnn_hidden_units=[4],
            model_dir=d,
        ),
        {"y": NUMBER},
    ),
    "trees": (
        lambda d: estimator.BoostedTreesClassifier(
            [X("x")], n_batches_per_layer=1, n_trees=3, max_depth=2, model_dir=d
        ),
        {"y": ID},
    ),
    "two heads": (two_heads, {"is": ID, "much": NUMBER}),
    "own names": (own_names, {"y": NUMBER}),
}  # fmt: skip


@pytest.mark.more
@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_model_of_any_kind_equals_what_was_judged(kind, tmp_path):
    make, labels = KINDS[kind]
    x = np.linspace(-2, 2, 60, dtype=np.float32)
    of_type = {
        tf.float32: [3 * one for one in x.tolist()],
        tf.int64: (x > 0).astype(int).tolist(),
        tf.string: [WORDS[i % 3] for i in range(60)],
    }
    values = {name: of_type[spec.dtype] for name, spec in labels.items()}

    def input_fn():
        arrays = {name: np.array(one)[:, np.newaxis] for name, one in values.items()}
        given = arrays if len(arrays) > 1 else arrays["y"]
        return tf.data.Dataset.from_tensors(({"x": x[:, np.newaxis]}, given)).repeat(20)

    def eval_input_receiver_fn():
        raw = estimator.export.build_parsing_serving_input_receiver_fn({"x": NUMBER, **labels})()
        features = dict(raw.features)
        found = {name: features.pop(name) for name in labels}
        return estimator.export.EvalInputReceiver(features, raw.receiver_tensors, found.get("y", found))

    trained = make(str(tmp_path / "model_dir"))
    trained.train(input_fn)
    receive = estimator.export.build_parsing_serving_input_receiver_fn({"x": NUMBER})
    served = trained.export_saved_model(str(tmp_path / "served"), receive).decode()
    judged = trained.experimental_export_all_saved_models(
        str(tmp_path / "judged"), {estimator.ModeKeys.EVAL: eval_input_receiver_fn}
    ).decode()
    rows = Rows(
        [example({"x": one}) for one in x.tolist()],
        [
            example({"x": one, **{name: of[i] for name, of in values.items()}})
            for i, one in enumerate(x.tolist())
        ],
        {"x": [[one] for one in x.tolist()]},
    )
    sent = {"examples": rows.examples, "columns": rows.columns}
    answers = ask_model(load(served), sent, rows.with_label, num_calls=3)["signatures"]
    expected = judged_predictions(judged, served, rows)
    assert "serving_default" in answers
    for name, answer in answers.items():
        compared, without = compare(name, (answer["index"], answer["outputs"]), expected, 1e-4)
        assert without == (["tax"] if kind == "own names" else []), name
        assert [one.output for one in compared if one.num_different] == []
        assert {one.num_rows for one in compared} == {60}
