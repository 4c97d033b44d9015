import base64
import os
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2
from tfx.types import standard_artifacts

import estimator_core as estimator
from components.serving_check.executor import LimitExceededError

from .conftest import LABEL, SPEC, receiver  # noqa: TID252

slow = pytest.mark.slow  # each starts a process that imports TensorFlow


def negated(features):
    return {**features, "x": -features["x"]}


def without_word(features):
    return {**features, "word": tf.zeros_like(features["word"])}


def cast_wrong(features):
    return {**features, "x": tf.cast(tf.cast(features["x"], tf.int32), tf.float32)}


def of_the_batch(features):
    is_alone = tf.cast(tf.equal(tf.size(features["x"]), 1), tf.float32)
    return {**features, "x": features["x"] * (1 - is_alone)}


def by_python(features):
    (x,) = tf.numpy_function(lambda x: [x], [features["x"]], [tf.float32])
    return {**features, "x": tf.ensure_shape(x, [None, 1])}


@pytest.mark.more
def test_an_honest_model_is_blessed_measured_and_warmed_up(make_served, check):
    result, blessing = check(make_served(receiver()))
    assert (result.failures, result.not_checked) == ([], [])
    assert blessing.get_int_custom_property("blessed") == 1
    assert os.path.exists(os.path.join(blessing.uri, "INFRA_BLESSED"))
    assert set(result.signatures) == {"serving_default", "classification", "regression", "predict"}
    predict = result.signatures["predict"]
    compared = {(one["output"], one["prediction"], one["one_by_one"]) for one in predict["compared"]}
    assert {("logistic", "logistic", False), ("logistic", "logistic", True)} <= compared
    assert predict["not_compared"] == []
    counts = {one["one_by_one"]: one["num_rows"] for one in predict["compared"]}
    assert counts[False] == 300
    assert 1 <= counts[True] <= 100  # as many as 2 seconds allow
    assert 0 < predict["latency_ms"]["p50"] <= predict["latency_ms"]["p99"]
    assert 0 < result.load_seconds < 60
    assert 0 < result.memory_mb < 1000
    # Rows to compare predictions with: every ninth of 300, without the label.
    assert len(result.background) == 32
    background = [tf.train.Example.FromString(base64.b64decode(row)).features for row in result.background]
    assert {name for row in background for name in row.feature} == {"x", "word"}
    # The file is one that TensorFlow Serving reads: a PredictionLog in each record.
    file = Path(blessing.uri) / "assets.extra" / "tf_serving_warmup_requests"
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record)
        for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator()
    ]
    assert len(logs) == 4 * 5
    request = logs[-1].predict_log.request
    (serialized,) = tf.make_ndarray(next(iter(request.inputs.values())))
    example = tf.train.Example.FromString(serialized)
    assert set(example.features.feature) <= {"x", "word"}  # not the label


@pytest.mark.more
def test_a_serving_function_that_negates_is_stopped_with_the_rows(make_served, check):
    result, blessing = check(make_served(receiver(negated)))
    assert blessing.get_int_custom_property("blessed") == 0
    (message,) = result.failures
    assert message == blessing.get_string_custom_property("blessing_message")
    assert message.startswith("the exported model gives other predictions than in the evaluation: ")
    assert " of 300 rows; most: " in message
    assert " instead of " in message
    assert "x=" in message
    assert not (Path(blessing.uri) / "assets.extra").exists()
    # x far from 0: the served probability of the row that differs most is that of the opposite x.
    compared = result.signatures["predict"]["compared"]
    (logistic,) = (one for one in compared if one["output"] == "logistic" and not one["one_by_one"])
    assert logistic["num_different"] > 290
    worst = logistic["worst"][0]
    assert abs(worst["served"][0] - worst["judged"][0]) > 0.5


@slow
@pytest.mark.parametrize(
    ("change", "is_early", "expected"),
    [
        pytest.param(without_word, False, r"differs in (20[1-9]|2[1-9]\d|300) of 300 rows", id="no column"),
        pytest.param(cast_wrong, False, r"differs in (29[1-9]|300) of 300 rows", id="a wrong cast"),
        pytest.param(dict, True, "differs in 300 of 300 rows", id="an old checkpoint"),
        pytest.param(of_the_batch, False, "other predictions for single rows than for a batch", id="batches"),
    ],
)
def test_a_model_that_answers_otherwise_is_found(make_served, check, trained, change, is_early, expected):
    model = make_served(receiver(change), checkpoint=trained.early if is_early else None)
    (message,) = check(model)[0].failures
    assert re.search(expected, message)


@slow
def test_a_model_that_needs_python_code_is_found(make_served, check):
    failures = check(make_served(receiver(by_python)))[0].failures
    assert len(failures) == 4
    assert failures[0].startswith("the signature 'serving_default': it fails: ")
    assert "pyfunc" in failures[0]


@slow
def test_a_model_whose_operation_tensorflow_lacks_is_found(make_served, check):
    model = make_served(receiver())
    file = Path(model.uri) / "Format-Serving" / "saved_model.pb"
    content = file.read_bytes()
    # Names of one length, so that the protocol buffer stays valid.
    assert b"\x0eParseExampleV2" in content
    file.write_bytes(content.replace(b"\x0eParseExampleV2", b"\x0eParseExampleXX"))
    (message,) = check(model)[0].failures
    assert "can't be loaded in a process that has only TensorFlow and NumPy" in message
    assert "ParseExampleXX" in message


@slow
def test_a_serving_function_that_needs_the_label_is_found(make_served, check):
    def without_label(features):
        return {name: features[name] for name in SPEC}

    model = make_served(receiver(without_label, {**SPEC, **LABEL}))
    result, _ = check(model)
    assert result.failures == ["the signature 'serving_default': it needs the label, which no client has"]
    assert len(result.not_checked) == 3  # the other signatures


@slow
def test_columns_are_sent_as_tensors_where_a_signature_takes_them(make_served, check):
    def receive():
        inputs = {
            "x": tf.compat.v1.placeholder(tf.float32, [None]),
            "word": tf.compat.v1.placeholder(tf.string, [None, 1]),
        }
        features = {"x": inputs["x"][:, tf.newaxis], "word": inputs["word"]}
        return estimator.export.ServingInputReceiver(features, inputs)

    result, _ = check(make_served(receive))
    assert result.failures == []
    assert result.signatures["predict"]["rows"] == 270  # those with a word


@slow
def test_a_model_without_evaluation_model_is_compared_with_itself(make_served, check):
    result, _ = check(make_served(receiver(), judged=False))
    assert result.failures == []
    compared = result.signatures["serving_default"]["compared"]
    assert {one["output"] for one in compared} == {"classes", "scores"}
    # Classes have a counterpart; logits have none among the outputs that were judged.
    assert "logits" in result.signatures["predict"]["not_compared"]


@slow
def test_a_model_that_loads_slowly_is_above_the_limit(make_served, check, tmp_path):
    vocabulary = tmp_path / "vocabulary.txt"
    numbers = np.arange(3_000_000)
    vocabulary.write_text("\n".join(map(str, numbers)))

    def look_up(features):
        line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        words = tf.lookup.TextFileInitializer(str(vocabulary), tf.string, line, tf.int64, number)
        table = tf.lookup.StaticVocabularyTable(words, num_oov_buckets=1)
        no_number = tf.cast(table.lookup(features["word"]), tf.float32)  # 3,000,000
        return {**features, "x": features["x"] * tf.minimum(no_number, 1.0)}

    slow_model = make_served(receiver(look_up))
    with pytest.raises(LimitExceededError, match=r"loading it takes .* s, but max_load_seconds is 0\.2\. "):
        check(slow_model, max_load_seconds=0.2)


@slow
@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"max_latency_ms": 1e-3}, r"calls of '\w+' with one row take up to .* ms"),
        ({"max_memory_mb": 1e-3}, "it needs .* MB of memory"),
    ],
)
def test_latency_and_memory_have_limits(make_served, check, limit, message):
    with pytest.raises(LimitExceededError, match=message):
        check(make_served(receiver()), **limit)


def test_a_model_that_was_not_blessed_is_not_asked(make_artifact, check):
    result, blessing = check(make_artifact(standard_artifacts.Model), blessed=0)  # to ask it is an error
    assert result.rows == 0
    message = blessing.get_string_custom_property("blessing_message")
    assert message == "not run: the Evaluator did not bless the model"
    assert blessing.get_int_custom_property("blessed") == 0


def test_a_model_that_is_held_is_asked(make_artifact, check):
    with pytest.raises(FileNotFoundError):
        check(make_artifact(standard_artifacts.Model), blessed=0, held=1)


def test_a_check_that_is_off_blesses(make_artifact, check):
    result, blessing = check(make_artifact(standard_artifacts.Model), enabled=False)
    assert blessing.get_int_custom_property("blessed") == 1
    assert result.not_checked == ["the exported model: the check is switched off"]
