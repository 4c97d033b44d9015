"""A model_dir on a file system that only tf.io.gfile reads: ram://, TensorFlow's own, which stands for gs://."""

import json
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as tf1

import estimator_core as est
from tests.estimator_core.programs import batch_of, weight_model_fn

gfile = tf.io.gfile


def model_fn(features, labels, mode):
    return weight_model_fn(features, labels, mode, {"learning_rate": 0.25})


serving_input_receiver_fn = est.export.build_raw_serving_input_receiver_fn({"x": tf.TensorSpec([None])})


def served(path, x):
    model = tf.saved_model.load(tf.compat.as_str(path))
    return model.signatures["serving_default"](x=tf.constant([x]))["y"].numpy().tolist()


@pytest.fixture
def model_dir(tmp_path):
    return f"ram://{tmp_path.name}/model"


@pytest.fixture
def estimator(model_dir):
    config = est.RunConfig(save_checkpoints_steps=2, keep_checkpoint_max=2, save_summary_steps=3)
    return est.Estimator(model_fn, model_dir, config)


def checkpoints(model_dir):
    return sorted(name for name in gfile.listdir(model_dir) if name.endswith(".index"))


def test_a_model_is_trained_continued_evaluated_and_read(estimator, model_dir, input_fn, eval_input_fn):
    estimator.train(input_fn, max_steps=3)  # w = 2 - 2 / 2^3
    assert estimator.latest_checkpoint() == f"{model_dir}/model.ckpt-3"
    estimator.train(input_fn, steps=2)  # w = 2 - 2 / 2^5
    assert estimator.get_variable_names() == ["global_step", "weight"]
    assert estimator.get_variable_value("weight") == 1.9375
    assert checkpoints(model_dir) == ["model.ckpt-3.index", "model.ckpt-5.index"]

    result = estimator.evaluate(eval_input_fn)
    # Batches of (1, 2) and (3), whose losses are w^2 * 2.5 and w^2 * 9; the result is their mean.
    assert result["loss"] == pytest.approx(1.9375**2 * 5.75)
    older = f"{model_dir}/model.ckpt-3"
    assert estimator.evaluate(eval_input_fn, checkpoint_path=older)["global_step"] == 3
    assert [row["y"] for row in estimator.predict(eval_input_fn)] == [1.9375, 3.875, 5.8125]
    with estimator.predictor(serving_input_receiver_fn) as predict:
        assert predict({"x": [2.0]})["y"].tolist() == [3.875]
    events = [name for name in gfile.listdir(model_dir) if "tfevents" in name]
    iterators = (tf1.train.summary_iterator(os.path.join(model_dir, name)) for name in events)
    assert "loss" in {value.tag for found in iterators for event in found for value in event.summary.value}


def test_a_broken_checkpoint_is_passed_over(estimator, model_dir, input_fn):
    estimator.train(input_fn, max_steps=4)
    with gfile.GFile(f"{model_dir}/model.ckpt-4.index", "w") as file:
        file.write("not an index")
    assert estimator.latest_checkpoint() == f"{model_dir}/model.ckpt-2"


def test_an_export_can_be_served_and_leaves_nothing_else(estimator, model_dir, input_fn):
    estimator.train(input_fn, max_steps=1)
    with gfile.GFile(f"{model_dir}/words", "w") as file:
        file.write("ash")
    base, extra = f"{model_dir}/export", {"lists/words": f"{model_dir}/words"}
    path = estimator.export_saved_model(base, serving_input_receiver_fn, assets_extra=extra)
    assert served(path, 3.0) == [3.0]
    with gfile.GFile(os.path.join(tf.compat.as_str(path), "assets.extra/lists/words")) as file:
        assert file.read() == "ash"
    assert gfile.listdir(base) == [os.path.basename(tf.compat.as_str(path))]


def test_exporters_write_and_delete_their_exports(estimator, model_dir, input_fn, eval_input_fn):
    exporters = [
        est.BestExporter("best", serving_input_receiver_fn, exports_to_keep=1),
        est.LatestExporter("latest", serving_input_receiver_fn, exports_to_keep=1),
        est.FinalExporter("final", serving_input_receiver_fn),
    ]
    train_spec = est.TrainSpec(input_fn, max_steps=4)
    eval_spec = est.EvalSpec(input_fn, steps=1, exporters=exporters, start_delay_secs=0, throttle_secs=0)
    est.train_and_evaluate(estimator, train_spec, eval_spec)
    for name in ("best", "latest", "final"):
        (version,) = gfile.listdir(f"{model_dir}/export/{name}")
        assert served(f"{model_dir}/export/{name}/{version}", 1.0) == [1.875]
    with gfile.GFile(f"{model_dir}/best_eval_result.best.json") as file:
        assert json.loads(file.read())["loss"] == 0.125**2


@pytest.mark.more
def test_warm_start_from_the_newest_checkpoint(estimator, model_dir, input_fn):
    estimator.train(input_fn, max_steps=4)  # w = 1.875
    for number, start in enumerate((model_dir, f"{model_dir}/model.ckpt-4")):
        other = est.Estimator(model_fn, f"{model_dir}-{number}", warm_start_from=start)
        assert other.train(input_fn, steps=1).get_variable_value("weight") == 1.9375
    other = est.Estimator(model_fn, f"{model_dir}-older", warm_start_from=f"{model_dir}/model.ckpt-2")
    with pytest.raises(ValueError, match="only from the newest"):  # ram:// can't
        other.train(input_fn, steps=1)


def test_early_stopping_reads_evaluations(estimator, model_dir, input_fn, eval_input_fn):
    for step in (2, 4):
        estimator.train(input_fn, max_steps=step)
        estimator.evaluate(eval_input_fn)  # the loss grows with the weight
    often = {"run_every_secs": None, "run_every_steps": 1}
    hook = est.experimental.stop_if_no_decrease_hook(estimator, "loss", 1, **often)
    other = est.Estimator(model_fn, f"{model_dir}-stopped").train(input_fn, hooks=[hook], max_steps=20)
    assert other.get_variable_value("global_step") < 20


@pytest.mark.more
def test_boosted_trees_are_read_from_it(model_dir):
    x = np.arange(8, dtype=np.float32)
    input_fn = batch_of({"x": x}, (x > 3).astype(np.int64))
    columns = [tf.feature_column.numeric_column("x")]
    trees = est.BoostedTreesClassifier(columns, 1, model_dir=model_dir, n_trees=2, max_depth=1)
    trees.train(input_fn, max_steps=2)
    assert trees.evaluate(input_fn)["accuracy"] == 1
    assert trees.experimental_feature_importances(normalize=True) == {"x": 1}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("checkpoint_format", ["checkpoint", "saver"])
def test_a_keras_model_is_trained_and_read(model_dir, checkpoint_format):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="layer")])
    model.compile("sgd", "mse")
    config = est.RunConfig(model_dir=model_dir)
    estimator = est.model_to_estimator(model, config=config, checkpoint_format=checkpoint_format)
    input_fn = batch_of([[1.0]], [[2.0]], repeat=None)
    estimator.train(input_fn, max_steps=2)
    (row,) = estimator.predict(lambda: input_fn().take(1))
    (prediction,) = row.values()
    assert est.to_keras(estimator, model)(np.ones((1, 1))).numpy()[0] == prediction
