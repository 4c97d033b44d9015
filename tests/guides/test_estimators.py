"""Whole programs with premade and custom Estimators print, log and leave the same as with tf.estimator."""

import math
import os
import re

import numpy as np
import pytest
import tensorflow as tf


@pytest.mark.more
def test_a_premade_estimator(run_program, capsys, caplog):
    names = run_program("linear_classifier")
    metrics, prediction = names["metrics"], names["prediction"]
    assert list(metrics) == (
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
    assert metrics["global_step"] == 120
    # Who knows the place is right for 0.3 * 0.9 + 0.3 * 0.5 + 0.4 * 0.9 = 78% of the plants; who
    # gives up all of them for 0.3 * 0.1 + 0.3 * 0.5 + 0.4 * 0.9 = 54%.
    assert metrics["accuracy"] > metrics["accuracy_baseline"] + 0.05
    assert [*prediction] == [
        "logits", "logistic", "probabilities", "class_ids", "classes", "all_class_ids", "all_classes",
    ]  # fmt: skip
    assert prediction["all_classes"].tolist() == [b"0", b"1"]
    assert prediction["logistic"][0] == pytest.approx(1 / (1 + math.exp(-prediction["logits"][0])))
    printed = capsys.readouterr().out
    assert "global_step: 120\n" in printed
    assert "all_class_ids: [0 1]\n" in printed
    log = caplog.text
    # Weights of 0 give every plant a chance of 1/2: a loss of ln 2.
    assert "loss = 0.6931472, step = 0" in log
    assert "Evaluation [8/8]" in log
    assert re.search(r"Saving dict for global step 120: accuracy = 0\.\d+, accuracy_baseline", log)
    assert f"Saving 'checkpoint_path' summary for global step 120: {names['model_dir']}" in log


@pytest.mark.more
def test_object_based_checkpoints(run_program, capsys):
    names = run_program("object_based_checkpoint")
    assert names["checkpoint"].step.numpy() == 14
    assert "trained for 14 steps\n" in capsys.readouterr().out
    latest = tf.train.latest_checkpoint(names["MODEL_DIR"])
    assert os.path.basename(latest) == "model.ckpt-14"
    # The weights come back too, into the variables of a model that has been built.
    scales = names["scales"]
    scales(tf.zeros([1, 1]))
    names["checkpoint"].restore(latest)
    saved = tf.train.load_variable(latest, "model/convert/_kernel/.ATTRIBUTES/VARIABLE_VALUE")
    np.testing.assert_array_equal(scales.convert.kernel.numpy(), saved)
    # ... and another call of train continues from them.
    names["estimator"].train(names["readings"], steps=4)
    names["checkpoint"].restore(tf.train.latest_checkpoint(names["MODEL_DIR"]))
    assert names["checkpoint"].step.numpy() == 18


@pytest.mark.sampled(1)
def test_a_saved_model(run_program, capsys, caplog):
    names = run_program("parsing_saved_model")
    # 4 examples * 150 / 20 = 30 batches.
    assert names["classifier"].get_variable_value("global_step") == 30
    assert os.path.dirname(names["export_path"].decode()) == names["export_base"]
    low, high = names["ripening"](3.0), names["ripening"](10.0)
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
    # 9 and 11 hours are labelled 1, 2 and 4 hours are labelled 0.
    assert low["logistic"] < high["logistic"]
    assert high["classes"].numpy().tolist() == [[b"1"]]
    assert "'logistic': <tf.Tensor: shape=(1, 1), dtype=float32" in capsys.readouterr().out
    for line in (
        "Signatures INCLUDED in export for Classify: ['serving_default', 'classification']",
        "Signatures INCLUDED in export for Regress: ['regression']",
        "Signatures INCLUDED in export for Predict: ['predict']",
    ):
        assert line in caplog.text
