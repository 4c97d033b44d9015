"""The programs of TensorFlow's guide to Estimators give what the guide shows."""

import math
import os
import re

import numpy as np
import pytest
import tensorflow as tf


def test_a_premade_estimator(run_program, capsys, caplog):
    names = run_program("premade")
    assert list(names["result"]) == (
        [
            "accuracy",
            "accuracy_baseline",
            "auc",
            "auc_precision_recall",
            "average_loss",
            "label/mean",
            "loss",
            "precision",
            "prediction/mean",
            "recall",
            "global_step",
        ]
    )
    assert names["result"]["global_step"] == 100
    # Who knows the class can tell 0.3 * 0.8 + 0.2 * 0.5 + 0.5 * 0.9 = 79% of the passengers; who
    # says that nobody survives is right for 0.3 * 0.2 + 0.2 * 0.5 + 0.5 * 0.9 = 61%.
    assert names["result"]["accuracy"] > names["result"]["accuracy_baseline"] + 0.05
    assert [*names["pred"]] == [
        "logits",
        "logistic",
        "probabilities",
        "class_ids",
        "classes",
        "all_class_ids",
        "all_classes",
    ]
    assert names["pred"]["all_classes"].tolist() == [b"0", b"1"]
    assert names["pred"]["logistic"][0] == pytest.approx(
        1 / (1 + math.exp(-names["pred"]["logits"][0]))
    )
    printed = capsys.readouterr().out
    assert "global_step : 100\n" in printed
    assert "all_class_ids : [0 1]\n" in printed
    log = caplog.text
    # Weights of 0 give every passenger a chance of 1/2: a loss of ln 2.
    assert "loss = 0.6931472, step = 0" in log
    assert "Evaluation [10/10]" in log
    assert re.search(r"Saving dict for global step 100: accuracy = 0\.\d+, accuracy_baseline", log)
    assert f"Saving 'checkpoint_path' summary for global step 100: {names['model_dir']}" in log


def test_object_based_checkpoints(run_program, tmp_path):
    names = run_program("object_checkpoints")
    assert names["ckpt"].step.numpy() == 10
    latest = tf.train.latest_checkpoint("./tf_estimator_example/")
    assert os.path.basename(latest) == "model.ckpt-10"
    # The weights come back too, into the variables of a network that has been built.
    net = names["net"]
    net(tf.zeros([1, 1]))
    names["ckpt"].restore(latest)
    saved = tf.train.load_variable(latest, "net/l1/_kernel/.ATTRIBUTES/VARIABLE_VALUE")
    np.testing.assert_array_equal(net.l1.kernel.numpy(), saved)
    # ... and another call of train continues from them.
    names["est"].train(names["toy_dataset"], steps=5)
    names["ckpt"].restore(tf.train.latest_checkpoint("./tf_estimator_example/"))
    assert names["ckpt"].step.numpy() == 15


def test_a_saved_model(run_program, capsys, caplog):
    names = run_program("saved_model")
    # 4 examples * 200 / 16 = 50 batches.
    assert names["estimator"].get_variable_value("global_step") == 50
    assert os.path.dirname(names["estimator_path"].decode()) == names["estimator_base_path"]
    low, high = names["predict"](1.5), names["predict"](3.5)
    shapes = {name: (value.shape.as_list(), value.dtype.name) for name, value in low.items()}
    assert shapes == {
        "logistic": ([1, 1], "float32"),
        "logits": ([1, 1], "float32"),
        "all_classes": ([1, 2], "string"),
        "probabilities": ([1, 2], "float32"),
        "all_class_ids": ([1, 2], "int32"),
        "classes": ([1, 1], "string"),
        "class_ids": ([1, 1], "int64"),
    }
    # x = 1 and 2 are labelled 1, x = 3 and 4 are labelled 0.
    assert low["logistic"] > high["logistic"]
    assert high["classes"].numpy().tolist() == [[b"0"]]
    assert "'logistic': <tf.Tensor: shape=(1, 1), dtype=float32" in capsys.readouterr().out
    for line in (
        "Signatures INCLUDED in export for Classify: ['serving_default', 'classification']",
        "Signatures INCLUDED in export for Regress: ['regression']",
        "Signatures INCLUDED in export for Predict: ['predict']",
    ):
        assert line in caplog.text
