import inspect
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import estimator_core as est
from tests.estimator_core.programs import example
from tests.estimator_core.tree_programs import Table, columns, config

TABLE = Table()
TREES = ["n_trees=100", "max_depth=6", "learning_rate=0.1", "l1_regularization=0.0"]
TREES += ["l2_regularization=0.0", "tree_complexity=0.0", "min_node_weight=0.0", "config=None"]
TREES += ["center_bias=False", "pruning_mode='none'", "quantile_sketch_epsilon=0.01"]
TREES += ["train_in_memory=False"]


def classifier(model_dir, **arguments):
    arguments = {"n_trees": 6, "max_depth": 3, "config": config(model_dir), **arguments}
    return est.BoostedTreesClassifier(columns(), 1, **arguments)


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (est.BoostedTreesClassifier, ["n_classes=2", "weight_column=None", "label_vocabulary=None"]),
        (est.BoostedTreesRegressor, ["label_dimension=1", "weight_column=None"]),
    ],
)
def test_the_arguments_are_those_of_tf_estimator(kind, own):
    found = [
        name if argument.default is argument.empty else f"{name}={argument.default!r}"
        for name, argument in inspect.signature(kind).parameters.items()
    ]
    wanted = ["feature_columns", "n_batches_per_layer", "model_dir=None", *own, *TREES]
    assert found == [*wanted, "warm_start_from=None", "early_stopping=None", "min_node_examples=1"]
    assert getattr(est.v1, kind.__name__) is kind
    assert est.v1.BoostedTreesEstimator is est.BoostedTreesEstimator


def test_training_in_memory_wants_one_batch(tmp_path):
    settings = {"train_in_memory": True, "n_trees": 2, "config": config(tmp_path)}
    model = est.BoostedTreesRegressor(columns(), n_batches_per_layer=1, **settings)
    model.train(TABLE.input_fn(labels=TABLE.score.astype(np.float32)))
    assert model.get_variable_value("global_step") == 12
    with pytest.raises(ValueError, match="n_batches_per_layer must be 1"):
        est.BoostedTreesRegressor(columns(), n_batches_per_layer=2, train_in_memory=True)


def test_weights_of_an_estimator_are_its_heads():
    for head in (est.RegressionHead(), est.RegressionHead(weight_column="v")):
        with pytest.raises(ValueError, match="give the head the weight_column"):
            est.BoostedTreesEstimator(columns(), 1, head, weight_column="w")
    head = est.RegressionHead(weight_column=tf.feature_column.numeric_column("w"))
    assert est.BoostedTreesEstimator(columns(), 1, head, weight_column="w")


def test_a_tpu_and_a_strategy_are_refused(tmp_path):
    model = est.tpu.to_tpu_estimator(classifier(tmp_path), train_batch_size=400, use_tpu=True)
    with pytest.raises(ValueError, match="A TPU can't grow"):
        model.train(TABLE.input_fn(repeat=True), steps=1)
    strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
    model = classifier(tmp_path, config=config(tmp_path, train_distribute=strategy))
    with pytest.raises(ValueError, match="in one process"):
        model.train(TABLE.input_fn())


@pytest.mark.more
def test_explanations_add_up_and_importances_name_the_columns(tmp_path):
    model = classifier(tmp_path).train(TABLE.input_fn())
    importances = model.experimental_feature_importances(normalize=True)
    assert sorted(importances) == ["a", "b", "word"]
    assert sum(importances.values()) == pytest.approx(1)
    assert model.experimental_feature_importances()["a"] > 1
    keys = ["logits", "probabilities"]
    input_fn = TABLE.input_fn(batch_size=150)
    explained = list(model.experimental_predict_with_explanations(input_fn, keys))
    assert len(explained) == 400
    for found in explained:
        assert sorted(found) == ["bias", "dfc", "logits", "probabilities"]
        total = found["bias"] + sum(found["dfc"].values())
        assert total == pytest.approx(found["probabilities"][1], abs=1e-6)
    for found in model.experimental_predict_with_explanations(input_fn, method="tree_shap"):
        total = found["bias"] + sum(found["dfc"].values())
        assert total == pytest.approx(found["logits"][0], abs=1e-6)


@pytest.mark.more
def test_explanations_of_a_checkpoint_and_added_metrics(tmp_path):
    def mean(predictions):
        return {"mean": tf.compat.v1.metrics.mean(predictions["logistic"])}

    model = classifier(tmp_path).train(TABLE.input_fn(), max_steps=3)
    first = model.latest_checkpoint()
    with_mean = est.add_metrics(model, mean).train(TABLE.input_fn())
    assert with_mean.get_variable_value("global_step") == 18
    metrics = with_mean.evaluate(TABLE.input_fn())
    assert metrics["mean"] == pytest.approx(metrics["prediction/mean"])
    predictions = list(model.predict(TABLE.input_fn(), checkpoint_path=first))
    explained = model.experimental_predict_with_explanations(TABLE.input_fn(), checkpoint_path=first)
    for found, expected in zip(explained, predictions, strict=True):
        total = found["bias"] + sum(found["dfc"].values())
        assert total == pytest.approx(expected["logistic"][0], abs=1e-6)


@pytest.mark.more
def test_nothing_to_explain_before_training_or_of_three_classes_which_need_a_model_dir_of_their_own(tmp_path):
    with pytest.raises(ValueError, match="call train first"):
        classifier(tmp_path).experimental_feature_importances()
    with pytest.raises(ValueError, match="call train first"):
        next(classifier(tmp_path).experimental_predict_with_explanations(TABLE.input_fn()))
    model = classifier(tmp_path, n_classes=3).train(TABLE.input_fn(labels=TABLE.three_classes))
    assert model.experimental_feature_importances()["a"] > 0
    with pytest.raises(ValueError, match="models with one logit"):
        next(model.experimental_predict_with_explanations(TABLE.input_fn()))
    with pytest.raises(ValueError, match="another architecture"):
        classifier(tmp_path).evaluate(TABLE.input_fn())


SERVING = """
import sys
sys.modules["lightgbm"] = None   # as if it was not there
import numpy as np, tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
examples = np.load(sys.argv[2], allow_pickle=True)
found = model.signatures["predict"](examples=tf.constant(examples))
np.save(sys.argv[3], found["logistic"].numpy())
"""


@pytest.mark.more
def test_the_exported_model_answers_without_the_library(tmp_path):
    model = classifier(tmp_path / "model").train(TABLE.input_fn())
    spec = tf.feature_column.make_parse_example_spec(columns())
    receiver_fn = est.export.build_parsing_serving_input_receiver_fn(spec)
    path = model.export_saved_model(str(tmp_path / "export"), receiver_fn).decode()

    cells = zip(*TABLE.numbers.T, TABLE.word, strict=True)
    rows = [example(a=float(a), b=float(b), word=str(word)) for a, b, word in cells]
    np.save(tmp_path / "rows.npy", np.array(rows, object), allow_pickle=True)
    files = [path, str(tmp_path / "rows.npy"), str(tmp_path / "found.npy")]
    subprocess.run([sys.executable, "-c", SERVING, *files], check=True, capture_output=True)
    expected = [found["logistic"] for found in model.predict(TABLE.input_fn())]
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-6)
